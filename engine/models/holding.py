"""How a decoder holds its matrices: packed for the compiled kernels, or as float32."""

import numpy as np

from engine.layers.linear import Matrix
from engine.weights.stored import StoredTensor


def hold(stored: StoredTensor, packed: bool) -> Matrix:
    """Return a matrix in the form that its model holds it in."""
    if not packed:
        return stored.float32()
    from engine.layers.packed import pack  # needs numba

    kept = stored.kept()
    return pack(kept.kind, np.ascontiguousarray(kept.rows))
