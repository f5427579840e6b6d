"""Random blocks of the quantised types."""

import numpy as np

from engine.weights.quantized import QUANTIZED


def random_blocks(rng, kind, n_rows, n_blocks, scale=1.0):
    """Bytes of blocks with any codes, ``(n_rows, bytes of a row)``; d and dmin are of size ``scale``."""
    own = QUANTIZED[kind]
    rows = rng.integers(0, 256, (n_rows, n_blocks * own.n_bytes), dtype=np.uint8)
    fields = own.split(rows)  # views
    for name in own.halves:
        fields[name][:] = rng.normal(0, scale, (n_rows, n_blocks, 1)).astype(np.float16).view(np.uint8)
    if "e" in fields:
        fields["e"][:] = rng.integers(110, 130, (n_rows, n_blocks, 1))
    return rows
