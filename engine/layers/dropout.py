"""Inverted dropout (Srivastava et al. 2014): kept values are scaled up in training, none at inference."""

import numpy as np

from .tracing import Array


def dropout(x: Array, rate: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Set a random share ``rate`` of ``x`` to 0 and divide the rest by ``1 - rate``; any shape.

    Returns ``x * mask``, and the mask of 0 and ``1 / (1 - rate)``, which the gradient needs; both have the
    shape and dtype of ``x``. The same state of ``rng`` gives the same mask on any machine. Raises
    `ValueError` where ``rate`` is not in [0, 1).
    """
    if not 0 <= rate < 1:
        raise ValueError(f"a dropout rate of {rate:g} is outside 0 <= rate < 1: at 1 nothing would be left")
    kept = rng.random(x.shape, dtype=np.float32) >= rate
    mask = kept * x.dtype.type(1 / (1 - rate))
    return x * mask, mask


def dropout_backward(d_y: Array, mask: Array) -> Array:
    """Gradient of `dropout` from its mask: 0 for dropped values."""
    return d_y * mask
