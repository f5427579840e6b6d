"""Files of a corpus with their documents and chunks as JSON values, and back."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.documents.document import Chunk, Document
from engine.documents.document_row import metadata_json, to_document


@dataclass(frozen=True)
class IndexedFile:
    """A file of the corpus as it was read: its state by then, its documents and their chunks."""

    name: str
    size: int
    mtime_ns: int
    sha256: str
    documents: tuple[Document, ...] = field(repr=False)
    chunks: tuple[Chunk, ...] = field(repr=False)


def file_row(file: IndexedFile) -> list[Any]:
    """Return a file of the corpus as a JSON value; a chunk is a span of one of its documents."""
    places = {document.name: place for place, document in enumerate(file.documents)}
    documents = [
        [document.name, document.title, document.text, metadata_json(document)] for document in file.documents
    ]
    chunks = [
        [places[chunk.document], *span_row(chunk), None if chunk.parent is None else span_row(chunk.parent)]
        for chunk in file.chunks
    ]
    return [file.name, file.size, file.mtime_ns, file.sha256, documents, chunks]


def span_row(chunk: Chunk) -> list[Any]:
    """Return a chunk's span, and what else is known of it."""
    return [chunk.start, chunk.end, chunk.n_tokens, list(chunk.headings), chunk.page]


def to_file(row: Sequence[Any]) -> IndexedFile:
    """Restore a file of the corpus from a JSON value."""
    name, size, mtime_ns, digest, document_rows, chunk_rows = row
    documents = tuple(to_document(*each) for each in document_rows)
    parents: dict[tuple[int, int, int], Chunk] = {}  # by document and span: each is made once
    chunks = []
    for place, *span, large in chunk_rows:
        parent = None
        if large is not None:
            parent = parents.setdefault((place, *large[:2]), to_chunk(documents[place], large))
        chunks.append(to_chunk(documents[place], span, parent))
    return IndexedFile(name, size, mtime_ns, digest, documents, tuple(chunks))


def to_chunk(document: Document, span: Sequence[Any], parent: Chunk | None = None) -> Chunk:
    """Restore a chunk of a document from its row."""
    start, end, n_tokens, headings, page = span
    text = document.text[start:end]
    return Chunk(document.name, start, end, text, n_tokens, tuple(headings), page, parent)
