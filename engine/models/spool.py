"""Vectors by key, in bounded memory."""

from collections.abc import Sequence
from tempfile import SpooledTemporaryFile

import numpy as np

from engine.layers.tracing import Array

MEMORY_BYTES = 32 * 1024**2


class VectorSpool:
    """Vectors by key: in memory while they are few, in a temporary file when they are many."""

    def __init__(self, width: int, dtype: np.dtype) -> None:
        self._width, self._dtype = width, dtype
        self._rows: dict[bytes, int] = {}
        self._file = SpooledTemporaryFile(max_size=MEMORY_BYTES)  # noqa: SIM115 (lives as long as the spool)

    def __contains__(self, key: bytes) -> bool:
        return key in self._rows

    def append(self, keys: Sequence[bytes], vectors: Array) -> None:
        """Keep one row of ``vectors (n_keys, width)`` for each key, none of which is known yet."""
        self._file.seek(0, 2)
        self._file.write(vectors.tobytes())
        self._rows.update(zip(keys, range(len(self._rows), len(self._rows) + len(keys)), strict=True))

    def read(self, keys: Sequence[bytes]) -> Array:
        """Return the vectors of some keys, ``(n_keys, width)``."""
        size = self._width * self._dtype.itemsize
        rows = bytearray()
        for key in keys:
            self._file.seek(self._rows[key] * size)
            rows += self._file.read(size)
        return np.frombuffer(rows, self._dtype).reshape(len(keys), self._width)

    def close(self) -> None:
        """Forget everything."""
        self._file.close()
