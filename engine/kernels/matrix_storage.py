"""How a decoder stores its matrices: packed for the compiled kernels, or as float32."""

import numpy as np

from engine.layers.linear import Matrix
from engine.weights.stored import StoredTensor, stack


def pack_or_float(packed: bool, *parts: StoredTensor) -> Matrix:
    """Return a matrix, or several with the same input stacked into one: packed, or as float32."""
    if not packed:
        return np.concatenate([part.float32() for part in parts])
    from engine.kernels.packed import pack  # needs numba

    stacked = stack(parts)
    return pack(stacked.kind, np.ascontiguousarray(stacked.rows))
