"""The affine map and its gradient."""

from typing import NamedTuple, Protocol

import numpy as np

from .quantization import Int8Matrix, int8_linear
from .tracing import Array


class Matrix(Protocol):
    """An array ``(d_out, d_in)``, or a quantized matrix that returns its rows and its transpose."""

    @property
    def shape(self) -> tuple[int, ...]: ...  # noqa: D102
    @property
    def dtype(self) -> np.dtype: ...  # noqa: D102
    @property
    def nbytes(self) -> int: ...  # noqa: D102
    @property
    def T(self) -> Array: ...  # noqa: D102
    def __getitem__(self, rows: Array) -> Array: ...


class Linear(NamedTuple):
    """Parameters of an affine map: weight ``(d_out, d_in)`` and bias ``(d_out,)`` or None."""

    weight: Matrix
    bias: Array | None = None


def linear(x: Array, weight: Matrix, bias: Array | None = None) -> Array:
    """``x W^T + b``: ``(..., d_in) -> (..., d_out)``.

    The weight is ``(d_out, d_in)``, rows are outputs as in ``torch.nn.Linear``; the bias is ``(d_out,)`` or
    None. A rounded matrix rounds x, too.
    """
    if x.ndim > 2:  # stack the rows of a batch, for a single product
        return linear(x.reshape(-1, x.shape[-1]), weight, bias).reshape(*x.shape[:-1], weight.shape[0])
    # (n_rows, d_in), (d_out, d_in) -> (n_rows, d_out)
    y: Array = int8_linear(x, weight) if isinstance(weight, Int8Matrix) else x @ weight.T
    if bias is not None:
        y += bias
    return y


def linear_backward(d_y: Array, x: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Gradients of `linear`: ``d_y (..., d_out)`` and ``x (..., d_in)`` to ``d_x, d_weight, d_bias``.

    ``d_x = d_y W`` of ``(..., d_in)``, ``d_weight = d_y^T x`` of ``(d_out, d_in)`` and ``d_bias``, the sum of
    ``d_y``, of ``(d_out,)``; the last two sum over all leading axes.
    """
    d_rows = d_y.reshape(-1, d_y.shape[-1])  # (n_rows, d_out)
    d_x = (d_rows @ weight).reshape(x.shape)
    d_weight = d_rows.T @ x.reshape(-1, x.shape[-1])  # (d_out, n_rows), (n_rows, d_in) -> (d_out, d_in)
    return d_x, d_weight, d_rows.sum(axis=0)
