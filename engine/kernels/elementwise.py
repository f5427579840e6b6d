"""Compiled twins (numba) of GELU, gated units, norms and RoPE.

They are the functions of the same names in `engine.layers`, for float32; all but gated units and the RMS norm
work in place. They start no threads and release Python's lock, so every core can run them at once. Signatures
are fixed: importing this module compiles the functions, or reads them from numba's cache.
"""

import numpy as np
from numba import float32, int64, void

from engine.kernels.gemm import FAST, exp
from engine.kernels.jit import njit
from engine.kernels.work_split import floats_at
from engine.layers.activation import gated as numpy_gated
from engine.layers.tracing import Array

OPTIONS = {"fastmath": FAST, "nogil": True, "cache": True, "error_model": "numpy"}
VECTOR, MATRIX = float32[::1], float32[:, ::1]

SQRT_HALF = np.float32(np.sqrt(0.5))


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
def gelu_of(x: np.float32) -> np.float32:
    """``x * Phi(x)`` of a number."""
    return np.float32(0.5) * x * (np.float32(1) + erf(x * SQRT_HALF))


@njit(fastmath=FAST, inline="always")
def mean_and_scale(x: Array, i: int, eps: np.float32) -> tuple[np.float32, np.float32]:
    """Mean of row ``i``, and ``1 / sqrt(var + eps)``."""
    reciprocal = np.float32(1) / np.float32(x.shape[1])
    total = np.float32(0)
    for j in range(x.shape[1]):
        total += x[i, j]
    mean = total * reciprocal
    squares = np.float32(0)
    for j in range(x.shape[1]):
        squares += (x[i, j] - mean) * (x[i, j] - mean)
    return mean, np.float32(1) / np.sqrt(squares * reciprocal + eps)


@njit(void(MATRIX), **OPTIONS)
def _gelu(x: Array) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] = gelu_of(x[i, j])


@njit(void(MATRIX, VECTOR, VECTOR, float32), **OPTIONS)
def _layer_norm(x: Array, weight: Array, bias: Array, eps: np.float32) -> None:
    for i in range(x.shape[0]):
        mean, scale = mean_and_scale(x, i, eps)
        for j in range(x.shape[1]):
            x[i, j] = (x[i, j] - mean) * scale * weight[j] + bias[j]


@njit(void(int64, int64, int64, int64, MATRIX), **OPTIONS)
def _geglu(gate: int, gate_stride: int, up: int, up_stride: int, y: Array) -> None:
    n_tokens, d_ff = y.shape
    for i in range(n_tokens):
        a, b = floats_at(gate + i * gate_stride, d_ff), floats_at(up + i * up_stride, d_ff)
        for j in range(d_ff):
            y[i, j] = gelu_of(a[j]) * b[j]


@njit(void(int64, int64, int64, int64, MATRIX), **OPTIONS)
def _swiglu(gate: int, gate_stride: int, up: int, up_stride: int, y: Array) -> None:
    n_tokens, d_ff = y.shape
    for i in range(n_tokens):
        a, b = floats_at(gate + i * gate_stride, d_ff), floats_at(up + i * up_stride, d_ff)
        for j in range(d_ff):
            y[i, j] = a[j] / (np.float32(1) + exp(min(-a[j], np.float32(88)))) * b[j]


@njit(void(int64, int64, int64, int64, MATRIX, MATRIX), **OPTIONS)
def _apply_rope(x: int, head_stride: int, token_stride: int, n_heads: int, cos: Array, sin: Array) -> None:
    n_tokens, half = cos.shape
    for i in range(n_tokens):
        for head in range(n_heads):
            pair = x + head * head_stride + i * token_stride
            first, second = floats_at(pair, half), floats_at(pair + 4 * half, half)
            for j in range(half):
                u, v = first[j], second[j]
                first[j] = u * cos[i, j] - v * sin[i, j]
                second[j] = v * cos[i, j] + u * sin[i, j]


@njit(void(int64, int64, int64, int64, int64, VECTOR, float32, int64, int64, int64), **OPTIONS)
def _rms_norm(
    x: int,
    outer_stride: int,
    stride: int,
    n_outer: int,
    n_rows: int,
    weight: Array,
    eps: np.float32,
    y: int,
    y_outer_stride: int,
    y_stride: int,
) -> None:
    d = len(weight)
    for outer in range(n_outer):
        for i in range(n_rows):
            row = floats_at(x + outer * outer_stride + i * stride, d)
            out = floats_at(y + outer * y_outer_stride + i * y_stride, d)
            squares = np.float32(0)
            for j in range(d):
                squares += row[j] * row[j]
            scale = np.float32(1) / np.sqrt(squares / np.float32(d) + eps)
            for j in range(d):
                out[j] = row[j] * scale * weight[j]


def gelu(x: Array) -> Array:
    """``x * Phi(x)`` of ``(n_tokens, d_ff)``, in place."""
    _gelu(x)
    return x


def layer_norm(x: Array, weight: Array, bias: Array, eps: float) -> Array:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` of ``(n_tokens, d_model)``, in place."""
    _layer_norm(x, weight, bias, np.float32(eps))
    return x


GATED = {"gelu": _geglu, "silu": _swiglu}


def gated(gate: Array, up: Array, activation: str) -> Array:
    """``activation(gate) * up`` of ``(n_tokens, d_ff)`` each; NumPy does the work of other activations."""
    if activation not in GATED:
        return numpy_gated(gate, up, activation)
    y = np.empty(gate.shape, np.float32)
    GATED[activation](gate.ctypes.data, gate.strides[0], up.ctypes.data, up.strides[0], y)
    return y


def apply_rope(x: Array, cos: Array, sin: Array) -> Array:
    """Rotate each pair ``(x[i], x[i + d_head / 2])`` of ``(n_heads, n_tokens, d_head)``, in place."""
    _apply_rope(x.ctypes.data, *x.strides[:2], len(x), cos, sin)
    return x


def rms_norm(x: Array, weight: Array, eps: float) -> Array:
    """``x / sqrt(mean(x^2) + eps) * weight`` of ``(n_tokens, d)``, or of ``(n_heads, n_tokens, d)``."""
    y = np.empty_like(x)  # with the heads of a token side by side, where x has them so
    rows, out = (array if array.ndim == 3 else array[None] for array in (x, y))
    sizes = rows.ctypes.data, *rows.strides[:2], *rows.shape[:2]
    _rms_norm(*sizes, weight, np.float32(eps), out.ctypes.data, *out.strides[:2])
    return y
