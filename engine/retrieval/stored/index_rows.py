"""Files of a corpus with their documents and chunks as lines of JSON, and back."""

import json
from dataclasses import dataclass, field

from pydantic import TypeAdapter

from ...documents.document import Chunk, Document, with_bounded_names

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


ROW = TypeAdapter(FileRow)


def file_line(file: IndexedFile) -> bytes:
    """Return a file of the corpus as a line of JSON."""
    places = {document.name: place for place, document in enumerate(file.documents)}
    chunks = [
        (places[chunk.document], span_of(chunk), None if chunk.parent is None else span_of(chunk.parent))
        for chunk in file.chunks
    ]
    return line_of(ROW.dump_python(FileRow(file.name, file.sha256, file.documents, chunks)))


def span_of(chunk: Chunk) -> Span:
    """Return a chunk without its document and text."""
    return chunk.start, chunk.end, chunk.n_tokens, chunk.headings, chunk.page, chunk.context


def to_file(line: bytes) -> IndexedFile:
    """Restore a file of the corpus."""
    row = ROW.validate_python(json.loads(line))
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
    return f"{json.dumps(content, ensure_ascii=False, allow_nan=False)}\n".encode()
