"""The affine map."""

from typing import NamedTuple, Protocol

import numpy as np

from engine.layers.tracing import Array


class Matrix(Protocol):
    """An array ``(d_out, d_in)``, or one held in another form that gives its rows and its transpose."""

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
    """``x W^T + b``.

    Parameters
    ----------
    x
        Input, ``(..., d_in)``.
    weight
        ``(d_out, d_in)``, rows are outputs as in ``torch.nn.Linear``.
    bias
        ``(d_out,)`` or None.

    Returns
    -------
    Array
        ``(..., d_out)``.
    """
    y: Array = x @ weight.T  # (..., d_in), (d_out, d_in) -> (..., d_out)
    if bias is not None:
        y += bias
    return y
