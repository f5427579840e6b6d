"""Random blocks of the quantised types."""

import numpy as np

from engine.weights.quantized import HALVES, QUANTIZED


def random_blocks(rng, kind, n_rows, n_blocks, scale=1.0):
    """Bytes of a matrix, ``(n_rows, n_blocks * bytes of a block)``: any codes, d and dmin of size ``scale``."""
    own = QUANTIZED[kind]
    rows = rng.integers(0, 256, (n_rows, n_blocks * own.n_bytes), dtype=np.uint8)
    fields = own.split(rows)  # views
    for name in set(HALVES) & set(fields):
        fields[name][:] = rng.normal(0, scale, (n_rows, n_blocks, 1)).astype(np.float16).view(np.uint8)
    if "e" in fields:
        fields["e"][:] = rng.integers(110, 130, (n_rows, n_blocks, 1))
    return rows
