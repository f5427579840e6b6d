"""How a decoder holds its matrices: packed for the compiled kernels, or as float32."""

import numpy as np

from engine.layers.linear import Matrix
from engine.weights.stored import StoredTensor, stack


def hold(packed: bool, *parts: StoredTensor) -> Matrix:
    """Return a matrix, or several that read the same input one below the other, as its model holds it."""
    if not packed:
        return np.concatenate([part.float32() for part in parts])
    from engine.layers.packed import pack  # needs numba

    stacked = stack(parts)
    return pack(stacked.kind, np.ascontiguousarray(stacked.rows))
