"""Compiled twin (numba) of `engine.layers.linear`, by the precision of the matrix."""

from typing import Any

from engine.kernels import gemm
from engine.kernels.gemm_int8 import int8_linear
from engine.layers.quantization import Int8Matrix
from engine.layers.tracing import Array


def linear(x: Array, weight: Any, bias: Array | None = None) -> Array:
    """``x W^T + b``: ``(n_tokens, d_in) -> (n_tokens, d_out)``, for arrays and rounded matrices."""
    if isinstance(weight, Int8Matrix):
        return int8_linear(x, weight, bias)
    return gemm.linear(x, weight, bias)
