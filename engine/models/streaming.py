"""Embedding a stream of texts, equal texts once.

Memory holds a block of texts and some 150 bytes for every distinct text so far; their vectors are in a
temporary file.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from hashlib import blake2b
from itertools import islice
from tempfile import SpooledTemporaryFile

import numpy as np

from ..layers.tracing import Array
from ..tokenizers.encoding import check_text
from ..weights.fetch import Progress

BLOCK_TEXTS = 1024
MEMORY_BYTES = 32 * 1024**2


class VectorSpool:
    """Vectors by key: in memory up to `MEMORY_BYTES`, then in a temporary file."""

    def __init__(self, width: int, dtype: np.dtype) -> None:
        self._width, self._dtype = width, dtype
        self._rows: dict[bytes, int] = {}
        self._file = SpooledTemporaryFile(max_size=MEMORY_BYTES)  # noqa: SIM115 (lives as long as the spool)

    def __contains__(self, key: bytes) -> bool:
        return key in self._rows

    def append(self, keys: Sequence[bytes], vectors: Array) -> None:
        """Add one row of ``vectors (n_keys, width)`` for each of some new keys."""
        self._file.seek(0, 2)
        self._file.write(vectors.tobytes())
        self._rows.update(zip(keys, range(len(self._rows), len(self._rows) + len(keys)), strict=True))

    def read(self, keys: Sequence[bytes]) -> Array:
        """Return the vectors of keys, ``(n_keys, width)``."""
        size = self._width * self._dtype.itemsize
        rows = bytearray()
        for key in keys:
            self._file.seek(self._rows[key] * size)
            rows += self._file.read(size)
        return np.frombuffer(rows, self._dtype).reshape(len(keys), self._width)

    def close(self) -> None:
        """Delete all vectors."""
        self._file.close()


def each_once(
    texts: Iterable[str],
    embed: Callable[[list[str], Progress], Array],
    spool: VectorSpool,
    on_progress: Progress | None,
) -> Iterator[Array]:
    """Yield the vectors of texts, `BLOCK_TEXTS` at a time, in order.

    ``embed`` embeds new texts, ``(n_texts, width)``, and reports its progress; ``spool`` stores the vectors,
    and is closed at the end; ``on_progress`` is called with texts done and 0.
    """
    n_done = 0

    def report(done: int, total: int) -> None:
        if on_progress is not None and done < total:
            on_progress(n_done + done, 0)

    with closing(spool):
        source = iter(texts)
        while block := list(islice(source, BLOCK_TEXTS)):
            for number, text in enumerate(block, start=n_done):
                check_text(text, f"text {number}")
            keys = [blake2b(text.encode(), digest_size=16).digest() for text in block]
            new = {key: text for key, text in zip(keys, block, strict=True) if key not in spool}
            spool.append(list(new), embed(list(new.values()), report))
            n_done += len(block)
            if on_progress is not None:
                on_progress(n_done, 0)
            yield spool.read(keys)
