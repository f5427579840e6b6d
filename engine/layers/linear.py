"""The affine map."""

from typing import NamedTuple

from engine.layers.tracing import Array


class Linear(NamedTuple):
    """Parameters of an affine map: weight ``(d_out, d_in)`` and bias ``(d_out,)`` or None."""

    weight: Array
    bias: Array | None = None


def linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
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
