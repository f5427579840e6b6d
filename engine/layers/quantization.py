"""Vectors in 8 bits: a whole number from -127 to 127 for each component, and a scale for all of them."""

import numpy as np

from engine.layers.tracing import Array

LARGEST_CODE = 127
SMALLEST_SCALE = np.finfo(np.float32).tiny  # below it numbers lose digits: the vector counts as zeros


def quantize(x: Array) -> tuple[Array, Array]:
    """``scale = max |x| / 127`` and ``codes = round(x / scale)`` of each vector, halves to even.

    Parameters
    ----------
    x
        ``(..., d)``. A component that is no finite number leaves the whole vector none.

    Returns
    -------
    tuple of Array
        The codes, int8 ``(..., d)``, and the scales, float32 ``(...)``.
    """
    x = x.astype(np.float32, copy=False)
    scales = np.abs(x).max(axis=-1) / np.float32(LARGEST_CODE)
    with np.errstate(invalid="ignore"):  # of infinity and NaN, which the scale keeps
        codes = np.rint(x / np.where(scales >= SMALLEST_SCALE, scales, 1)[..., None]).astype(np.int8)
    return codes, scales


def dequantize(codes: Array, scales: Array) -> Array:
    """``codes * scale``: int8 ``(..., d)`` and float32 ``(...)`` to float32 ``(..., d)``."""
    return codes * scales[..., None]
