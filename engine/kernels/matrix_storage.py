"""How a decoder stores its matrices: packed for the compiled kernels, or as float32."""

from itertools import groupby

import numpy as np

from engine.layers.linear import Matrix
from engine.weights.stored import StoredTensor


def pack_or_float(packed: bool, *parts: StoredTensor) -> Matrix:
    """Return a matrix, or several with the same input stacked into one: packed, or as float32.

    Packed, each keeps its own type; neighbours of one type are packed together.
    """
    if not packed:
        return np.concatenate([part.float32() for part in parts])
    from engine.kernels.packed import StackedMatrix, pack  # needs numba

    by_kind = [(kind, [part.rows for part in own]) for kind, own in groupby(parts, lambda part: part.kind)]
    matrices = [pack(kind, rows[0] if len(rows) == 1 else np.concatenate(rows)) for kind, rows in by_kind]
    return matrices[0] if len(matrices) == 1 else StackedMatrix(tuple(matrices))
