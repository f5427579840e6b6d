"""Compiled twins (numba) of the steps that NumPy needs several passes over memory for.

Each is the function of the same name in ``linear``, ``norm`` or ``activation``, for float32, and
may overwrite its first argument. None of them starts threads or holds Python's lock, so one worker
a core runs them side by side. Signatures are fixed: importing this module compiles everything, or
reads what an earlier import on this machine compiled.
"""

import numpy as np
from numba import float32, njit, void

from engine.layers.tracing import Array, Tracer, no_trace

# Sums may be reordered and products fused with sums, which vector instructions need; infinities and
# NaN keep their meaning.
FAST = {"reassoc", "contract", "nsz", "arcp"}
MATRIX, VECTOR = float32[:, ::1], float32[::1]

# Attention scores that are worked on at once: a quarter of a common second-level cache.
SCORE_BYTES = 256 * 1024

ONE, HALF = np.float32(1), np.float32(0.5)
SQRT_HALF = np.float32(np.sqrt(0.5))
LOG2_E = np.float32(np.log2(np.e))
LN2_HIGH = np.float32(0.693359375)  # ln 2 in two parts, the first exact in few bits
LN2_LOW = np.float32(np.log(2) - 0.693359375)


@njit(fastmath=FAST, inline="always")
def exp(x: np.float32) -> np.float32:
    """``e^x`` for x <= 88, within 1e-7 of it: ``2^n e^r`` with ``|r| <= ln(2) / 2``.

    The compiler turns this into vector instructions, which it does not for a call of ``exp``. The
    polynomial is that of Cephes' expf (Moshier 1989).
    """
    x = max(x, np.float32(-87))  # below lie numbers too small for float32's full precision
    n = np.floor(x * LOG2_E + HALF)
    r = x - n * LN2_HIGH - n * LN2_LOW
    p = np.float32(1.9875691500e-4)
    p = p * r + np.float32(1.3981999507e-3)
    p = p * r + np.float32(8.3334519073e-3)
    p = p * r + np.float32(4.1665795894e-2)
    p = p * r + np.float32(1.6666665459e-1)
    p = p * r + np.float32(5.0000001201e-1)
    power = np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)  # 2^n by its bits
    return (p * r * r + r + ONE) * power


@njit(fastmath=FAST, inline="always")
def erf(x: np.float32) -> np.float32:
    """Error function within 4e-7: the rational approximation of Eigen's float erf on [-4, 4]."""
    x = min(max(x, np.float32(-4)), np.float32(4))
    z = x * x
    p = np.float32(-2.72614225801306e-10)
    p = p * z + np.float32(2.77068142495902e-08)
    p = p * z + np.float32(-2.10102402082508e-06)
    p = p * z + np.float32(-5.69250639462346e-05)
    p = p * z + np.float32(-7.34990630326855e-04)
    p = p * z + np.float32(-2.95459980854025e-03)
    p = p * z + np.float32(-1.60960333262415e-02)
    q = np.float32(-1.45660718464996e-05)
    q = q * z + np.float32(-2.13374055278905e-04)
    q = q * z + np.float32(-1.68282697438203e-03)
    q = q * z + np.float32(-7.37332916720468e-03)
    q = q * z + np.float32(-1.42647390514189e-02)
    return x * p / q


@njit(void(MATRIX, VECTOR), fastmath=FAST, nogil=True, cache=True)
def _add_bias(x: Array, bias: Array) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] += bias[j]


@njit(void(MATRIX), fastmath=FAST, nogil=True, cache=True, error_model="numpy")
def _gelu(x: Array) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] = HALF * x[i, j] * (ONE + erf(x[i, j] * SQRT_HALF))


@njit(inline="always")
def ordered(bits: np.int32) -> np.int32:
    """Turn the bits of a float32 into an integer that compares as it does, and back.

    The compiler finds the largest of many integers with vector instructions, but not of floats,
    among which there may be NaN.
    """
    return bits ^ ((bits >> np.int32(31)) & np.int32(0x7FFFFFFF))


@njit(void(MATRIX), fastmath=FAST, nogil=True, cache=True, error_model="numpy")
def _softmax(x: Array) -> None:
    bits = x.view(np.int32)
    for i in range(x.shape[0]):
        order = ordered(bits[i, 0])
        for j in range(x.shape[1]):
            order = max(order, ordered(bits[i, j]))
        largest = np.int32(ordered(order)).view(np.float32)
        total = np.float32(0)
        for j in range(x.shape[1]):
            x[i, j] = exp(x[i, j] - largest)
            total += x[i, j]
        share = ONE / total
        for j in range(x.shape[1]):
            x[i, j] *= share


@njit(void(MATRIX, VECTOR, VECTOR, float32), fastmath=FAST, nogil=True, cache=True, error_model="numpy")
def _layer_norm(x: Array, weight: Array, bias: Array, eps: np.float32) -> None:
    share = ONE / np.float32(x.shape[1])
    for i in range(x.shape[0]):
        total = np.float32(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        mean = total * share
        squares = np.float32(0)
        for j in range(x.shape[1]):
            squares += (x[i, j] - mean) * (x[i, j] - mean)
        scale = ONE / np.sqrt(squares * share + eps)
        for j in range(x.shape[1]):
            x[i, j] = (x[i, j] - mean) * scale * weight[j] + bias[j]


def linear(x: Array, weight: Array, bias: Array) -> Array:
    """``x W^T + b``: ``(n_tokens, d_in) -> (n_tokens, d_out)``; the product is the BLAS's."""
    y: Array = x @ weight.T
    _add_bias(y, bias)
    return y


def gelu(x: Array) -> Array:
    """``x * Phi(x)`` of ``(n_tokens, d_ff)``, in place."""
    _gelu(x)
    return x


def attention(query: Array, key: Array, value: Array, trace: Tracer = no_trace) -> Array:
    """``softmax(Q K^T / sqrt(d_head)) V``, all of them ``(n_heads, n_tokens, d_head)``; nothing is traced.

    Some heads at a time, so that their scores are still in the core's cache when they are needed.
    """
    n_heads, n_tokens, d_head = query.shape
    group = max(1, SCORE_BYTES // (4 * n_tokens * n_tokens))
    # Laid out so that putting the heads side by side again costs nothing.
    context = np.empty((n_tokens, n_heads, d_head), np.float32).swapaxes(0, 1)
    for start in range(0, n_heads, group):
        heads = slice(start, start + group)
        # Scaling the queries scales the scores, of which there are more.
        scores = (query[heads] * np.float32(1 / np.sqrt(d_head))) @ key[heads].swapaxes(1, 2)
        _softmax(scores.reshape(-1, n_tokens))
        np.matmul(scores, value[heads], out=context[heads])
    return context


def layer_norm(x: Array, weight: Array, bias: Array, eps: float) -> Array:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` of ``(n_tokens, d_model)``, in place."""
    _layer_norm(x, weight, bias, np.float32(eps))
    return x
