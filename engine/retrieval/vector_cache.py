"""Cache of vectors in SQLite, so that no text is embedded twice.

The key of a vector is its model (weights and tokenizer, not the name), the pooling, the token limit and the
SHA-256 of the text. A damaged row or file is a miss.
"""

import sqlite3
import time
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, check_several
from ..layers.tracing import Array
from ..models.prompts import Role
from ..weights.fetch import Progress
from .embedding_model import Model, embedding_spec
from .embedding_spec import EmbeddingSpec
from .sqlite_file import connect_ours, transaction

T = TypeVar("T")

MAX_BYTES = 512 * 1024**2  # of vectors: 350,000 of 384 numbers
KEYS_PER_QUERY = 500
FRESH_NS = 600 * 10**9  # a use within this time of the last is not written: it takes as long as the reading
WHOLE_FILE = ("", "-wal", "-shm")  # suffixes of the files of an SQLite database
FLOAT32 = np.dtype("<f4")
# The index by use has all columns that eviction reads, so that it reads no vector.
CACHE_SCHEMA = (
    "CREATE TABLE vectors (key BLOB PRIMARY KEY, used INTEGER, n_bytes INTEGER, checksum BLOB, vector BLOB)",
    "CREATE INDEX vectors_by_use ON vectors (used, n_bytes)",
)


class VectorCache:
    """Vectors by spec and text; the least recently used are evicted above ``max_bytes``.

    Threads may share a cache, and processes its file. A file that cannot be used (damaged, of another
    program, not writable, or locked for too long) is left unchanged: the cache continues in memory, and
    ``notice``, empty otherwise, reports it in a line for the user. Only hashes of the texts are stored.

    The SQLite file is created if missing, and may be a workspace's; without a path vectors are in memory, as
    long as the cache exists. The file is about a third larger than ``max_bytes`` of vectors.
    """

    def __init__(self, path: Path | None = None, max_bytes: int = MAX_BYTES) -> None:
        if max_bytes < 0:
            raise InputError(f"max_bytes is {max_bytes}: give 0 or more")
        self.notice = ""
        self._path, self._max_bytes = path, max_bytes
        self._lock = RLock()
        self._connection: sqlite3.Connection | None = None
        self._run(lambda connection: None)

    def get_many(self, texts: Sequence[str], spec: EmbeddingSpec) -> tuple[Array, NDArray[np.bool_]]:
        """Look up vectors ``(n_texts, d_model)``, 0 if missing, and which texts have one ``(n_texts,)``."""
        keys = spec.keys(texts)
        found = self._run(lambda connection: look_up(connection, keys)) if keys else {}
        vectors = np.zeros((len(keys), spec.d_model), np.float32)
        known = np.zeros(len(keys), bool)
        for row, key in enumerate(keys):
            check, blob = found.get(key, (None, None))
            right = isinstance(blob, bytes) and len(blob) == FLOAT32.itemsize * spec.d_model
            if right and check == checksum(key, blob):  # else it is missing or damaged
                vectors[row], known[row] = np.frombuffer(blob, FLOAT32), True
        known &= np.isfinite(vectors).all(axis=1)
        vectors[~known] = 0
        return vectors, known

    def put_many(self, texts: Sequence[str], vectors: Array, spec: EmbeddingSpec) -> None:
        """Store the vectors ``(n_texts, d_model)`` of texts; those that are not finite are not stored."""
        if vectors.shape != (len(texts), spec.d_model):
            raise InputError(f"vectors of shape {vectors.shape} for {len(texts)} texts of {spec.d_model}")
        now = time.time_ns()
        finite = set(np.flatnonzero(np.isfinite(vectors).all(axis=1)).tolist())
        blobs = [row.tobytes() for row in vectors.astype(FLOAT32)]
        rows = [
            (key, now, len(blob), checksum(key, blob), blob)
            for number, (key, blob) in enumerate(zip(spec.keys(texts), blobs, strict=True))
            if number in finite
        ]

        def write(connection: sqlite3.Connection) -> None:
            connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?, ?)", rows)
            evict(connection, self._max_bytes)

        self._run(write)

    @property
    def n_vectors(self) -> int:
        """Number of stored vectors, of all specs."""
        return self._run(lambda connection: connection.execute("SELECT count(*) FROM vectors").fetchone()[0])

    def close(self) -> None:
        """Close the file, which the next use opens again; vectors in memory are lost."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def remove(self) -> None:
        """Close the file, and delete it."""
        self.close()
        if self._path is not None:
            for suffix in WHOLE_FILE:
                self._path.with_name(f"{self._path.name}{suffix}").unlink(missing_ok=True)

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``work`` in one transaction; if the file fails, run it on an empty cache in memory."""
        with self._lock:
            try:
                return self._transaction(work)
            except (sqlite3.Error, OSError, ValueError) as error:  # ValueError: a null character in the path
                if self._path is None:
                    raise
                self.close()
                self.notice = (
                    f"{self._path} cannot keep embeddings ({error}): they are kept in memory until the app "
                    f"stops; make room on a full disk, move a damaged file away, or give another path"
                )
                self._path = None
                return self._transaction(work)

    def _transaction(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._connection is None:
            self._connection = new = connect_ours(":memory:" if self._path is None else str(self._path))
            with transaction(new):
                if not new.execute("SELECT 1 FROM sqlite_master WHERE name = 'vectors'").fetchone():
                    for statement in CACHE_SCHEMA:
                        new.execute(statement)
            new.execute("PRAGMA synchronous = NORMAL")  # a lost vector is computed again
        with transaction(self._connection):
            return work(self._connection)


def look_up(connection: sqlite3.Connection, keys: Sequence[bytes]) -> dict[bytes, tuple[Any, Any]]:
    """Return checksum and vector of every stored key, and mark them as used now."""
    found: dict[bytes, tuple[Any, Any]] = {}
    now = time.time_ns()
    for start in range(0, len(keys), KEYS_PER_QUERY):
        some = keys[start : start + KEYS_PER_QUERY]
        marks = ", ".join("?" * len(some))
        rows = connection.execute(f"SELECT key, checksum, vector FROM vectors WHERE key IN ({marks})", some)
        found.update((key, (check, blob)) for key, check, blob in rows)
        stale = f"key IN ({marks}) AND +used < ?"
        connection.execute(f"UPDATE vectors SET used = ? WHERE {stale}", [now, *some, now - FRESH_NS])
    return found


def checksum(key: bytes, blob: bytes) -> bytes:
    """Return the checksum of a vector under its key; a damaged or misplaced row does not match it."""
    return blake2b(blob, digest_size=8, key=key).digest()


def evict(connection: sqlite3.Connection, max_bytes: int) -> None:
    """Delete the least recently used vectors until the rest fits."""
    [n_bytes] = connection.execute("SELECT coalesce(sum(n_bytes), 0) FROM vectors").fetchone()
    if n_bytes > max_bytes:
        connection.execute(
            "DELETE FROM vectors WHERE rowid IN (SELECT rowid FROM (SELECT rowid, sum(n_bytes) OVER "
            "(ORDER BY used DESC, rowid DESC) AS newest FROM vectors) WHERE newest > ?)",
            [max_bytes],
        )


def cached_encode(
    texts: Sequence[str],
    encoder: Model,
    pooling: str | None,
    max_tokens: int | None,
    cache: VectorCache,
    on_progress: Progress | None = None,
    role: Role = "document",
) -> Array:
    """Embed texts by one pooling, as `cached_encode_all`: float32 ``(n_texts, d_model)``."""
    own = embedding_spec(encoder, pooling, max_tokens).pooling
    return cached_encode_all(texts, encoder, [own], max_tokens, cache, on_progress, role)[own]


def cached_encode_all(
    texts: Sequence[str],
    encoder: Model,
    poolings: Sequence[str],
    max_tokens: int | None,
    cache: VectorCache,
    on_progress: Progress | None = None,
    role: Role = "document",
) -> dict[str, Array]:
    """Embed texts by several poolings in one pass, each distinct text once, and only those not in the cache.

    Vectors are stored after every `block_texts` of the model, so that a run that was stopped or failed
    continues from there. With compiled kernels a text's vector does not depend on the other texts; without
    them, or before they are loaded, it may differ from that of `Encoder.encode` by float32 rounding.

    ``on_progress`` is called with texts done, those in the cache included, and in all; it may raise to stop.
    Returns vectors by pooling, float32 ``(n_texts, d_model)``, rows of length 1.
    """
    check_several(texts)
    specs = {pooling: embedding_spec(encoder, pooling, max_tokens) for pooling in poolings}
    prompted = encoder.prompts.before(role, texts)
    found = {pooling: cache.get_many(prompted, spec) for pooling, spec in specs.items()}
    lacking = [pooling for pooling, (_, known) in found.items() if not known.all()]
    rows: dict[str, list[int]] = {}  # places of each missing text
    for row in sorted({row for pooling in lacking for row in np.flatnonzero(~found[pooling][1]).tolist()}):
        rows.setdefault(texts[row], []).append(row)
    missing, n_found = list(rows), len(texts) - len(rows)

    def report(done: int) -> None:
        if on_progress is not None:
            on_progress(n_found + done, len(texts))

    report(0)
    for start in range(0, len(missing), encoder.block_texts):
        block = missing[start : start + encoder.block_texts]

        def show(done: int, _: int, start: int = start) -> None:
            report(start + done)

        new = encoder.encode_as(role, block, lacking, max_tokens=max_tokens, on_progress=show)
        for pooling in lacking:
            cache.put_many(encoder.prompts.before(role, block), new[pooling], specs[pooling])
            for text, vector in zip(block, new[pooling], strict=True):
                found[pooling][0][rows[text]] = vector
    return {pooling: vectors for pooling, (vectors, _) in found.items()}
