"""The formulas of a row of float32 numbers, compiled: exponential, GELU, gates, norms, softmax and rotation.

They are inlined where encoders (`elementwise`, `attention`), decoders (`row_ops`, `attention_ops`) and
training (`training`) call them, and compiled with the options of their caller, which are `FAST`.
"""

import numpy as np

from ..layers.tracing import Array
from .jit import njit

# Sums may be reordered, and products fused with sums.
FAST = {"reassoc", "contract", "nsz", "arcp"}

LOG2_E = np.float32(np.log2(np.e))
LN2_HIGH = np.float32(0.693359375)  # ln 2 in two parts, the first exact in few bits
LN2_LOW = np.float32(np.log(2) - 0.693359375)
SQRT_HALF = np.float32(np.sqrt(0.5))
GELU_SCALE = np.float32(np.sqrt(2 / np.pi))


@njit(fastmath=FAST, inline="always")
def exp(x: np.float32) -> np.float32:
    """``e^x`` for x <= 88, within 1e-7 of it: ``2^n e^r`` with ``|r| <= ln(2) / 2``.

    The compiler vectorises this, but not a call of ``exp``. The polynomial is that of Cephes' expf
    (Moshier 1989).
    """
    x = max(x, np.float32(-87))  # smaller powers are subnormal in float32
    n = np.floor(x * LOG2_E + np.float32(0.5))
    r = x - n * LN2_HIGH - n * LN2_LOW
    p = np.float32(1.9875691500e-4)
    p = p * r + np.float32(1.3981999507e-3)
    p = p * r + np.float32(8.3334519073e-3)
    p = p * r + np.float32(4.1665795894e-2)
    p = p * r + np.float32(1.6666665459e-1)
    p = p * r + np.float32(5.0000001201e-1)
    power = np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)  # 2^n by its bits
    return (p * r * r + r + np.float32(1)) * power


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


@njit(fastmath=FAST, inline="always")
def gelu(x: np.float32) -> np.float32:
    """``x Phi(x)``."""
    return np.float32(0.5) * x * (np.float32(1) + erf(x * SQRT_HALF))


@njit(fastmath=FAST, inline="always")
def gelu_new(x: np.float32) -> np.float32:
    """The tanh approximation of GELU, ``x sigmoid(2 inner)``."""
    inner = GELU_SCALE * (x + np.float32(0.044715) * x * x * x)
    return x / (np.float32(1) + exp(min(np.float32(-2) * inner, np.float32(88))))


@njit(fastmath=FAST, inline="always")
def silu(x: np.float32) -> np.float32:
    """``x sigmoid(x)``."""
    return x / (np.float32(1) + exp(min(-x, np.float32(88))))


@njit(fastmath=FAST, inline="always")
def mean_and_scale(x: Array, eps: np.float32) -> tuple[np.float32, np.float32]:
    """Mean of a row, and ``1 / sqrt(var + eps)``."""
    reciprocal = np.float32(1) / np.float32(len(x))
    total, squares = np.float32(0), np.float32(0)
    for j in range(len(x)):
        total += x[j]
    mean = total * reciprocal
    for j in range(len(x)):
        squares += (x[j] - mean) * (x[j] - mean)
    return mean, np.float32(1) / np.sqrt(squares * reciprocal + eps)


@njit(fastmath=FAST, inline="always")
def layer_norm(x: Array, weight: Array, bias: Array, eps: np.float32, y: Array) -> None:
    """Write ``(x - mean) / sqrt(var + eps) * weight + bias`` to ``y``, which may be ``x``."""
    mean, scale = mean_and_scale(x, eps)
    for j in range(len(x)):
        y[j] = (x[j] - mean) * scale * weight[j] + bias[j]


@njit(fastmath=FAST, inline="always")
def rms_norm(x: Array, weight: Array, eps: np.float32, y: Array) -> None:
    """Write ``x / sqrt(mean(x^2) + eps) * weight`` to ``y``."""
    squares = np.float32(0)
    for j in range(len(x)):
        squares += x[j] * x[j]
    scale = np.float32(1) / np.sqrt(squares / np.float32(len(x)) + eps)
    for j in range(len(x)):
        y[j] = x[j] * scale * weight[j]


@njit(fastmath=FAST, inline="always")
def rotate(first: Array, second: Array, cos: Array, sin: Array) -> None:
    """RoPE, in place: rotate the pairs ``(first[j], second[j])``."""
    for j in range(len(first)):
        u, v = first[j], second[j]
        first[j] = u * cos[j] - v * sin[j]
        second[j] = v * cos[j] + u * sin[j]


@njit(inline="always")
def ordered(bits: np.int32) -> np.int32:
    """Map the bits of a float32 to an integer of the same order, and back.

    The compiler vectorises the maximum of integers, but not of floats, among which there may be NaN.
    """
    return bits ^ ((bits >> np.int32(31)) & np.int32(0x7FFFFFFF))


@njit(fastmath=FAST, inline="always")
def maximum(x: Array) -> np.float32:
    """Maximum of numbers; where there is NaN, it is NaN or that of the others."""
    bits = x.view(np.int32)
    order = ordered(bits[0])
    for j in range(len(x)):
        order = max(order, ordered(bits[j]))
    return np.int32(ordered(order)).view(np.float32)


@njit(fastmath=FAST, inline="always")
def exponentials(x: Array, largest: np.float32) -> np.float32:
    """Write ``exp(x - largest)`` in place, and return the sum."""
    total = np.float32(0)
    for j in range(len(x)):
        x[j] = exp(x[j] - largest)
        total += x[j]
    return total


@njit(fastmath=FAST, inline="always")
def softmax(x: Array) -> None:
    """``exp(x) / sum(exp(x))`` of a row of scores, in place."""
    reciprocal = np.float32(1) / exponentials(x, maximum(x))
    for j in range(len(x)):
        x[j] *= reciprocal
