"""Files of a corpus with their documents and chunks as lines of JSON, and back.

Large lines are mapped, and a document or chunk is read from its place in them when it is asked for.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, TypeVar, overload

import numpy as np
from pydantic import TypeAdapter

from ...documents.document import Chunk, Document, with_bounded_names
from ...errors import UNREADABLE, DocumentError
from ...layers.tracing import Array
from ...wording import reason_of
from ..index_kinds import require_whole

T = TypeVar("T")
KEPT_DOCUMENTS = 64  # those that were read last

# Start, end, tokens, headings, page and context of a chunk, whose text is this span of its document; folders
# of earlier versions have no context.
Span = (
    tuple[int, int, int, tuple[str, ...], int | None, str] | tuple[int, int, int, tuple[str, ...], int | None]
)


@dataclass(frozen=True)
class IndexedFile:
    """A file of the corpus: its name, the SHA-256 of its content, its documents and their chunks."""

    name: str
    sha256: str
    documents: tuple[Document, ...] = field(default=(), repr=False)
    chunks: tuple[Chunk, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class FileRow:
    """A file as it is written: of each chunk the place of its document, its span, and that of its parent."""

    name: str
    sha256: str
    documents: tuple[Document, ...]
    chunks: list[tuple[int, Span, Span | None]]


ROW, DOCUMENT, SPAN = TypeAdapter(FileRow), TypeAdapter(Document), TypeAdapter(Span)


def write_lines(out: IO[bytes], files: Iterable[IndexedFile]) -> dict[str, Array]:
    """Write each file of the corpus as a line of JSON; return where its parts are, for `stored_rows`.

    The first and last byte + 1 of each file and document; for each chunk before them the row of its document;
    the documents' rows in the order of the `digest` of their names, and of those with notes.
    """
    at, of_files, of_documents, of_chunks = 0, list[Any](), list[Any](), list[Any]()
    digests, noted = list[int](), list[int]()

    def put(content: bytes) -> tuple[int, int]:
        nonlocal at
        at += out.write(content)
        return at - len(content), at

    def put_list(rows: Iterable[Any]) -> Iterator[tuple[int, int]]:
        for number, row in enumerate(rows):
            put(b", " if number else b"")
            yield put(json_of(row))

    for file in files:
        start, n_before = at, len(of_documents)
        put(b'{"name": %b, "sha256": %b, "documents": [' % (json_of(file.name), json_of(file.sha256)))
        of_documents += put_list(map(DOCUMENT.dump_python, file.documents))
        digests += [digest(document.name) for document in file.documents]
        noted += [row for row, document in enumerate(file.documents, n_before) if document.notes]
        put(b'], "chunks": [')
        row_of = {document.name: row for row, document in enumerate(file.documents)}
        rows = [
            (row_of[each.document], span_of(each), each.parent and span_of(each.parent))
            for each in file.chunks
        ]
        of_chunks += ((n_before + row[0], *place) for row, place in zip(rows, put_list(rows), strict=True))
        put(b"]}\n")
        of_files.append((start, at))
    order = np.argsort(np.array(digests, np.uint64), kind="stable")
    arrays = {"file_places": of_files, "document_places": of_documents, "chunk_places": of_chunks}
    found = {name: np.array(places, np.int64) for name, places in arrays.items()}
    return found | {
        "name_digests": np.array(digests, np.uint64)[order],
        "name_rows": order,
        "noted": np.array(noted, np.int64),
    }


def digest(name: str) -> int:
    """Return 64 bits of a name."""
    return int.from_bytes(blake2b(name.encode(errors="surrogatepass"), digest_size=8).digest())


@dataclass(frozen=True, eq=False)
class StoredRows(Sequence[T]):
    """Parts of a mapped file; ``read`` makes one of its JSON and its place, a row of ``places``."""

    content: Array
    places: Array = field(repr=False)
    read: Callable[[Any, list[int]], T] = field(repr=False)

    def __len__(self) -> int:
        return len(self.places)

    @overload
    def __getitem__(self, row: int) -> T: ...

    @overload
    def __getitem__(self, row: slice) -> tuple[T, ...]: ...

    def __getitem__(self, row: int | slice) -> T | tuple[T, ...]:
        """Read a part, or several."""
        if isinstance(row, slice):
            return tuple(self[each] for each in range(*row.indices(len(self))))
        place = self.places[row].tolist()
        require_whole(self.content)
        try:
            return self.read(json.loads(self.content[slice(*place[-2:])].tobytes()), place)
        except UNREADABLE as error:
            require_whole(self.content)
            raise DocumentError(
                f"the index is damaged ({reason_of(error)}): index the corpus again with --rebuild"
            ) from error


@dataclass(frozen=True, eq=False)
class StoredDocuments(Mapping[str, Document]):
    """Documents by their names; ``rows`` are those of the sorted ``digests`` of the names."""

    documents: StoredRows[Document]
    digests: Array = field(repr=False)
    rows: Array = field(repr=False)

    def __len__(self) -> int:
        return len(self.documents)

    def __iter__(self) -> Iterator[str]:
        return (document.name for document in self.documents)

    def __getitem__(self, name: str) -> Document:
        """Read a document."""
        own = np.uint64(digest(name))
        for row in self.rows[slice(*np.searchsorted(self.digests, [own, own + np.uint64(1)]))].tolist():
            if (document := self.documents[row]).name == name:
                return document
        raise KeyError(name)


def stored_rows(
    path: Path, arrays: Mapping[str, Array]
) -> tuple[Sequence[IndexedFile], Sequence[Chunk], Mapping[str, Document]]:
    """Map the lines that `write_lines` wrote; return the files, the chunks and the documents in them."""
    from ...kernels.cut_files import survive_cuts  # numba, which a small index does without

    content = np.memmap(path, np.uint8, "r")
    survive_cuts(content)
    documents = StoredRows(content, arrays["document_places"], lambda row, _: to_document(row))
    document_at = lru_cache(KEPT_DOCUMENTS)(documents.__getitem__)

    def to_chunk(row: Any, place: list[int]) -> Chunk:
        document, (_, span, large) = document_at(place[0]), row
        parent = None if large is None else chunk_of(document, SPAN.validate_python(large))
        return chunk_of(document, SPAN.validate_python(span), parent)

    chunks = StoredRows(content, arrays["chunk_places"], to_chunk)
    files = StoredRows(content, arrays["file_places"], lambda row, _: to_file(row))
    return files, chunks, StoredDocuments(documents, arrays["name_digests"], arrays["name_rows"])


def to_document(row: Any) -> Document:
    """Restore a document."""
    return with_bounded_names(DOCUMENT.validate_python(row))


def span_of(chunk: Chunk) -> Span:
    """Return a chunk without its document and text."""
    return chunk.start, chunk.end, chunk.n_tokens, chunk.headings, chunk.page, chunk.context


def to_file(content: Any) -> IndexedFile:
    """Restore a file of the corpus."""
    row = ROW.validate_python(content)
    for document in row.documents:
        with_bounded_names(document)
    parents: dict[tuple[int, Span], Chunk] = {}  # each is made once
    chunks = []
    for place, span, large in row.chunks:
        parent = None
        if large is not None:
            parent = parents.setdefault((place, large), chunk_of(row.documents[place], large))
        if place < 0:
            raise ValueError(f"{row.name:.80} has no document {place}")
        chunks.append(chunk_of(row.documents[place], span, parent))
    return IndexedFile(row.name, row.sha256, row.documents, tuple(chunks))


def chunk_of(document: Document, span: Span, parent: Chunk | None = None) -> Chunk:
    """Return the chunk of a document that is a span of it."""
    start, end, n_tokens, headings, page, *context = span
    if not (0 <= start <= end <= len(document.text) and n_tokens >= 0):
        raise ValueError(f"{document.name:.80} has no characters {start} to {end} of {n_tokens} tokens")
    return Chunk(
        document.name, start, end, document.text[start:end], n_tokens, headings, page, parent, *context
    )


def line_of(content: object) -> bytes:
    """Return a JSON value as a line; raises for half of a surrogate pair."""
    return json_of(content) + b"\n"


def json_of(content: object) -> bytes:
    """Return a JSON value; raises for half of a surrogate pair."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
