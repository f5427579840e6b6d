"""Compiled twins (numba) of GELU and layer norm.

They are the functions of the same names in `engine.layers`, for float32, in place. They start no threads and
release Python's lock, so every core can run them at once. Signatures are fixed: importing this module
compiles the functions, or reads them from numba's cache.
"""

import numpy as np
from numba import float32, void

from engine.kernels.jit import njit
from engine.layers.tracing import Array

# Sums may be reordered and products fused with sums, which SIMD needs; infinities and NaN stay.
FAST = {"reassoc", "contract", "nsz", "arcp"}
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


def gelu(x: Array) -> Array:
    """``x * Phi(x)`` of ``(n_tokens, d_ff)``, in place."""
    _gelu(x)
    return x


def layer_norm(x: Array, weight: Array, bias: Array, eps: float) -> Array:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` of ``(n_tokens, d_model)``, in place."""
    _layer_norm(x, weight, bias, np.float32(eps))
    return x
