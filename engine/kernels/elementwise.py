"""Compiled twins (numba) of GELU, gated units, norms and RoPE.

They are the functions of the same names in `engine.layers`, for float32; all but gated units and the RMS norm
work in place. They start no threads and release Python's lock, so every core can run them at once. Signatures
are fixed: importing this module compiles the functions, or reads them from numba's cache.
"""

from collections.abc import Callable

import numpy as np
from numba import float32, int64, void

from ..layers.activation import gated as numpy_gated
from ..layers.tracing import Array
from . import rows
from .jit import njit
from .memory import floats_at
from .rows import FAST

OPTIONS = {"fastmath": FAST, "nogil": True, "cache": True, "error_model": "numpy"}
VECTOR, MATRIX = float32[::1], float32[:, ::1]


@njit(void(MATRIX), **OPTIONS)
def _gelu(x: Array) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] = rows.gelu(x[i, j])


@njit(void(MATRIX, VECTOR, VECTOR, float32), **OPTIONS)
def _layer_norm(x: Array, weight: Array, bias: Array, eps: np.float32) -> None:
    for i in range(x.shape[0]):
        rows.layer_norm(x[i], weight, bias, eps, x[i])


@njit(fastmath=FAST, error_model="numpy")
def gate_rows(
    f: Callable[[np.float32], np.float32], gate: int, gate_stride: int, up: int, up_stride: int, y: Array
) -> None:
    """Write ``f(gate) * up`` to ``y``, row by row."""
    n_tokens, d_ff = y.shape
    for i in range(n_tokens):
        a, b = floats_at(gate + i * gate_stride, d_ff), floats_at(up + i * up_stride, d_ff)
        for j in range(d_ff):
            y[i, j] = f(a[j]) * b[j]


@njit(void(int64, int64, int64, int64, MATRIX), **OPTIONS)
def _geglu(gate: int, gate_stride: int, up: int, up_stride: int, y: Array) -> None:
    gate_rows(rows.gelu, gate, gate_stride, up, up_stride, y)


@njit(void(int64, int64, int64, int64, MATRIX), **OPTIONS)
def _swiglu(gate: int, gate_stride: int, up: int, up_stride: int, y: Array) -> None:
    gate_rows(rows.silu, gate, gate_stride, up, up_stride, y)


@njit(void(int64, int64, int64, int64, MATRIX), **OPTIONS)
def _geglu_new(gate: int, gate_stride: int, up: int, up_stride: int, y: Array) -> None:
    gate_rows(rows.gelu_new, gate, gate_stride, up, up_stride, y)


@njit(void(int64, int64, int64, int64, MATRIX, MATRIX), **OPTIONS)
def _apply_rope(x: int, head_stride: int, token_stride: int, n_heads: int, cos: Array, sin: Array) -> None:
    n_tokens, half = cos.shape
    for i in range(n_tokens):
        for head in range(n_heads):
            pair = x + head * head_stride + i * token_stride
            rows.rotate(floats_at(pair, half), floats_at(pair + 4 * half, half), cos[i], sin[i])


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
            rows.rms_norm(row, weight, eps, out)


def gelu(x: Array) -> Array:
    """``x * Phi(x)`` of ``(n_tokens, d_ff)``, in place."""
    _gelu(x)
    return x


def layer_norm(x: Array, weight: Array, bias: Array, eps: float) -> Array:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` of ``(n_tokens, d_model)``, in place."""
    _layer_norm(x, weight, bias, np.float32(eps))
    return x


GATED = {"gelu": _geglu, "silu": _swiglu, "gelu_new": _geglu_new}


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
    heads, out = (array if array.ndim == 3 else array[None] for array in (x, y))
    sizes = heads.ctypes.data, *heads.strides[:2], *heads.shape[:2]
    _rms_norm(*sizes, weight, np.float32(eps), out.ctypes.data, *out.strides[:2])
    return y
