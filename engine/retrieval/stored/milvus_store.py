"""Vectors of an index in Milvus (https://milvus.io): on a server or a cluster, or in a file by milvus-lite.

Each state of an index has a collection of its own, whose rows have the numbers of its chunks. It is written
once, counted, and never changed; the next state has another. So a reader finds one state or the other, as it
does with files.
"""

import logging
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from ...errors import DocumentError, InputError
from ...installed import install_command
from ...layers.tracing import Array
from ...wording import counted, printable
from ..index_kinds import exact_nearest

PREFIX, IN_FOLDER = "milvus:", "folder"
TOKEN = "GLASSBOX_MILVUS_TOKEN"  # the variable of the environment: an address, a blank, and its token
CALL_S = 10  # within which a call that fails is repeated
RETRY_S = 0.5
ROWS_PER_S = 1000  # the slowest speed that timeouts allow
MESSAGE_BYTES = 4 * 1024**2  # of vectors in one call
MOST_ROWS = 16_384  # of one result: https://milvus.io/docs/limitations.md
QUESTIONS = 64  # of one search
ROW, VECTOR = "row", "vector"  # the fields of a collection
LOCK_FILE, LOCK_S = "LOCK", 0.1  # of milvus-lite

_clients: dict[str, Any] = {}
_connecting = Lock()


@dataclass(frozen=True)
class MilvusVectors:
    """Vectors of the chunks of an index, in a collection of Milvus, where they are searched exactly."""

    uri: str  # address of a server, or path of a file of milvus-lite
    collection: str
    n_chunks: int
    d_model: int
    sha256: str  # of the bytes of all vectors, float32

    @property
    def shape(self) -> tuple[int, int]:
        """``(n_chunks, d_model)``."""
        return self.n_chunks, self.d_model

    def write(self, vectors: Array) -> None:
        """Store vectors ``(n_chunks, d_model)`` in a new collection; raise unless all are there."""
        from pymilvus import DataType, MilvusClient

        schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field(ROW, DataType.INT64, is_primary=True)
        schema.add_field(VECTOR, DataType.FLOAT_VECTOR, dim=self.d_model)
        kinds = MilvusClient.prepare_index_params()
        kinds.add_index(VECTOR, index_type="FLAT", metric_type="IP")
        with client_of(self.uri) as client:
            client.create_collection(
                self.collection, schema=schema, index_params=kinds, consistency_level="Strong", timeout=CALL_S
            )
            for rows in self._slices():
                pairs = zip(range(rows.start, rows.stop), vectors[rows], strict=True)
                # A repeated call may have been carried out the first time, too.
                client.upsert(
                    self.collection, [{ROW: row, VECTOR: vector} for row, vector in pairs], timeout=CALL_S
                )
            client.flush(self.collection, timeout=self._long_s)
        self.check()

    def check(self) -> None:
        """Raise an error unless the collection is there with all rows.

        Raises `FileNotFoundError` where there is no such collection, and `DocumentError` where Milvus cannot
        be reached, or rows are missing.
        """
        if is_file(self.uri) and not Path(self.uri).exists():  # milvus-lite would make an empty one
            raise FileNotFoundError(2, "no such file", self.uri)
        with client_of(self.uri) as client:
            if not client.has_collection(self.collection, timeout=CALL_S):
                raise FileNotFoundError(2, "no such collection", self.collection)
            client.load_collection(self.collection, timeout=self._long_s)  # into the server's memory
            [row] = client.query(self.collection, output_fields=["count(*)"], timeout=CALL_S)
        if (n := int(row["count(*)"])) != self.n_chunks:
            raise self._damaged(f"holds {n:,} of {counted(self.n_chunks, 'vector')}")

    def nearest(self, questions: Array, k: int) -> tuple[Array, Array]:
        """Return inner products and rows of the ``k`` nearest: two arrays ``(n_questions, k)``."""
        if k > MOST_ROWS:
            return exact_nearest(self.fetch_all(), questions, k)
        found: list[Any] = []
        with client_of(self.uri) as client:
            for start in range(0, len(questions), QUESTIONS):
                found += client.search(
                    self.collection,
                    list(questions[start : start + QUESTIONS]),
                    limit=k,
                    anns_field=VECTOR,
                    search_params={"metric_type": "IP"},
                    timeout=CALL_S,
                )
        if any(len(hits) != k for hits in found):
            raise self._damaged("lacks vectors")
        rows = np.array([[hit[ROW] for hit in hits] for hits in found], np.int64)  # (n_questions, k)
        scores = np.array([[hit["distance"] for hit in hits] for hits in found], np.float32)
        order = np.lexsort((rows, -scores))  # of equal scores the first chunk
        return np.take_along_axis(scores, order, 1), np.take_along_axis(rows, order, 1)

    def fetch(self, rows: Sequence[int] | Array) -> Array:
        """Return the vectors of some rows: float32 ``(n_rows, d_model)``."""
        wanted, places = np.unique(np.asarray(rows, np.int64), return_inverse=True)
        step = self._slices()[0].stop
        parts = [np.empty((0, self.d_model), np.float32)]
        with client_of(self.uri) as client:
            for start in range(0, len(wanted), step):
                some = wanted[start : start + step].tolist()
                found = client.get(self.collection, some, output_fields=[ROW, VECTOR], timeout=CALL_S)
                by_row = {each[ROW]: each[VECTOR] for each in found}
                if by_row.keys() != set(some):
                    raise self._damaged("lacks vectors")
                parts.append(np.array([by_row[row] for row in some], np.float32))
        return np.concatenate(parts)[places]

    def fetch_all(self) -> Array:
        """Return all vectors, checked to be those that were stored."""
        vectors = np.empty(self.shape, np.float32)
        for rows in self._slices():
            vectors[rows] = self.fetch(np.arange(rows.start, rows.stop))
        if digest_of_vectors(vectors) != self.sha256:
            raise self._damaged("holds other vectors than were stored")
        return vectors

    def drop(self) -> None:
        """Remove the collection, if it is there."""
        if is_file(self.uri) and not Path(self.uri).exists():
            return
        with client_of(self.uri) as client:
            client.drop_collection(self.collection, timeout=CALL_S)

    @property
    def _long_s(self) -> int:
        """Timeout of a call that reads or writes all rows."""
        return CALL_S + self.n_chunks // ROWS_PER_S

    def _slices(self) -> list[slice]:
        """Slices of the rows that one call takes."""
        step = max(1, min(MOST_ROWS, MESSAGE_BYTES // (4 * self.d_model)))
        return [slice(start, min(start + step, self.n_chunks)) for start in range(0, self.n_chunks, step)]

    def _damaged(self, how: str) -> DocumentError:
        return DocumentError(
            f"the collection {self.collection} in Milvus at {self.uri} {how}: index the corpus again with "
            "--rebuild"
        )


def new_collection(uri: str, vectors: Array) -> MilvusVectors:
    """Name a collection for vectors ``(n_chunks, d_model)``, which is not written yet."""
    n_chunks, d_model = vectors.shape
    name = f"glassbox_{secrets.token_hex(8)}"
    return MilvusVectors(uri, name, n_chunks, d_model, digest_of_vectors(vectors))


def milvus_uri(store: str) -> str:
    """Return the address, or the absolute path of a file, that ``milvus:URI`` names."""
    uri = store.removeprefix(PREFIX)
    parts, path = urlsplit(""), ""
    with suppress(
        ValueError, OSError, RuntimeError
    ):  # of a bracket, a name that is too long, an unknown user
        parts, path = urlsplit(uri), str(Path(uri).expanduser().resolve())
    if parts.scheme in ("http", "https"):
        if "@" in parts.netloc:
            raise InputError(f"the address of Milvus holds a password: leave it out, and set {TOKEN}")
        if parts.hostname:
            return uri
    elif path and store.startswith(PREFIX) and "://" not in uri and uri.endswith(".db"):
        return path
    raise InputError(
        f"{store!r:.200} names no store of vectors: give {PREFIX}http://host:19530 for a server, "
        f"{PREFIX}FILE.db for a file, or {IN_FOLDER}"
    )


def is_file(uri: str) -> bool:
    """Whether an address is the path of a file of milvus-lite."""
    return "://" not in uri


def digest_of_vectors(vectors: Array) -> str:
    """SHA-256 of vectors ``(n, d)``."""
    digest = sha256()
    for start in range(0, len(vectors), MOST_ROWS):
        digest.update(np.ascontiguousarray(vectors[start : start + MOST_ROWS], "<f4").data)
    return digest.hexdigest()


@contextmanager
def client_of(uri: str) -> Iterator[Any]:
    """Yield the client of an address, connected once; its errors become a `DocumentError` of one line."""
    import_pymilvus()
    import grpc
    from pymilvus.exceptions import MilvusException

    try:
        with _connecting:
            if uri not in _clients:
                _clients[uri] = connect(uri)
        yield _clients[uri]
    except (MilvusException, grpc.RpcError, grpc.FutureTimeoutError, ConnectionError, TimeoutError) as error:
        reason = printable(getattr(error, "message", "") or str(error))[:150]
        raise DocumentError(
            f"Milvus at {uri} failed ({reason}): see that it runs and has room, and try again, or keep the "
            f"vectors in the folder with --store {IN_FOLDER} --rebuild"
        ) from error


def import_pymilvus() -> None:
    """Import pymilvus without its own messages; raise `InputError` where it is not installed."""
    try:
        import milvus_lite  # noqa: F401
        import pymilvus  # noqa: F401
    except ImportError as error:
        raise InputError(
            f"vectors in Milvus need packages that are not installed: {install_command('cluster')}"
        ) from error
    for name in ("pymilvus", "milvus_lite", "grpc"):  # which print each failure before they raise it
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def connect(uri: str) -> Any:
    """Connect to a server, or start milvus-lite for a file."""
    from pymilvus import MilvusClient
    from pymilvus.exceptions import MilvusException

    if is_file(uri):
        check_free(Path(uri))
    deadline = time.monotonic() + (0 if is_file(uri) else CALL_S)
    while True:
        try:
            return MilvusClient(uri, token=token_for(uri), timeout=CALL_S)
        except MilvusException:  # unlike other calls it is not repeated by pymilvus
            if time.monotonic() > deadline:
                raise
            time.sleep(RETRY_S)


def token_for(uri: str) -> str:
    """Return the token in the environment if it is for this address: a folder may name any."""
    address, _, token = os.environ.get(TOKEN, "").partition(" ")
    return token.strip() if address == uri else ""


def check_free(path: Path) -> None:
    """Raise `DocumentError` for a file that another process has open."""
    from huggingface_hub.utils import WeakFileLock  # type: ignore[attr-defined]  # documented there

    if not path.exists():
        return
    if not path.is_dir():
        raise DocumentError(f"{path} is no file of milvus-lite 3, which are folders: give another name")
    try:
        with WeakFileLock(path / LOCK_FILE, timeout=LOCK_S):
            pass
    except TimeoutError as error:
        raise DocumentError(
            f"{path} is in use by another process, and milvus-lite serves one a file: wait until it ends, "
            f"or use a server ({PREFIX}http://host:19530)"
        ) from error


def release(uri: str) -> None:
    """Close the connection to an address; a file is free for other processes then."""
    with _connecting:
        client = _clients.pop(uri, None)
        if client is None:
            return
        client.close()
        if is_file(uri):
            from milvus_lite.server_manager import server_manager_instance

            server_manager_instance.release_server(uri)
