"""A workspace: documents, settings, index, question sets and runs in one SQLite file.

The file holds texts, numbers and JSON only, so opening one executes no code. It is written in one
transaction: at any time it holds all of the old state or all of the new.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
from pydantic import BeforeValidator, TypeAdapter

from ..documents.document import Chunk, Document, Section, with_bounded_names
from ..errors import UNREADABLE, DocumentError, InputError
from ..retrieval.embedding_spec import EmbeddingSpec
from ..retrieval.index import Index, index_vectors
from ..retrieval.sqlite_file import connect, connect_ours
from ..wording import reason_of
from .workspace_file import Row, Rows, as_document_errors, check_bytes, read_rows, write_rows

K = TypeVar("K")
T = TypeVar("T")

FLOAT32 = np.dtype("<f4")
JSON = BeforeValidator(json.loads)  # of a column, before its content is checked
StampRow = tuple[int, str, str, str, int, int, bytes | None]
# Headings, and the context before them where a chunk has one.
Above = tuple[str, ...] | tuple[tuple[str, ...], str]
ChunkRow = tuple[int, int, int, int, int, Annotated[Above, JSON], int | None, int | None, bytes | None]


@dataclass(frozen=True)
class Tables:
    """The rows of a workspace's file by table, as `engine.storage.workspace_file` names their columns."""

    documents: list[tuple[int, str, str, str, str]]
    settings: list[tuple[int, Annotated[dict[str, Any], JSON]]]
    stamp: list[StampRow]
    chunks: list[ChunkRow]
    question_sets: list[tuple[int, str, Annotated[list[dict[str, Any]], JSON]]]
    runs: list[tuple[int, str, str, Annotated[dict[str, Any], JSON]]]


@dataclass(frozen=True)
class Metadata:
    """Sections, date, tags and notes of a document."""

    sections: tuple[Section, ...]
    date: str = ""
    tags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


TABLES, METADATA = TypeAdapter(Tables), TypeAdapter(Metadata)


@dataclass(frozen=True)
class SavedRun:
    """Result of an experiment: any JSON object, with a name and an ISO 8601 time."""

    name: str
    time: str
    content: Mapping[str, Any]


@dataclass(frozen=True)
class Workspace:
    """Everything that a user works with."""

    documents: tuple[Document, ...] = ()  # of different names
    settings: Mapping[str, Any] = field(default_factory=dict)  # any JSON object
    index: Index | None = None
    # questions are any JSON objects
    question_sets: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    runs: tuple[SavedRun, ...] = ()
    # digest of the file that this was read from or written to, by which `save_workspace` detects writes of
    # others; empty for a new workspace
    saved_as: str = field(default="", compare=False)


def save_workspace(path: Path, workspace: Workspace) -> Workspace:
    """Write a workspace to a new file, or over an older state of it; cached embeddings there are kept.

    Only changed tables are written, in one transaction. While another session writes, this one waits, and
    raises after a timeout. Returns the same workspace with the ``saved_as`` of the file. Raises `InputError`
    where the workspace cannot be restored from a file: two documents have one name, a text has half of a
    surrogate pair, a chunk has no document, or a value is not JSON, and `DocumentError` where the workspace
    is too large; or the file belongs to another program, is damaged, of a newer version, not writable,
    locked, or was changed since ``workspace.saved_as``.
    """
    rows = checked_rows(workspace)
    with as_document_errors(path.name), closing(connect_ours(str(path))) as connection:
        return replace(workspace, saved_as=write_rows(connection, rows, workspace.saved_as, path.name))


def open_workspace(path: Path) -> Workspace:
    """Read the workspace that a file holds.

    Raises `DocumentError` where the file is missing, not a workspace, damaged, of a newer version, or too
    large.
    """
    with as_document_errors(path.name):
        if not path.is_file():
            raise DocumentError(f"{path} does not exist: give a file that was saved as a workspace")
        with closing(connect(str(path))) as connection:
            return read_workspace(connection, path.name)


def merged(base: Workspace, ours: Workspace, theirs: Workspace) -> Workspace:
    """Return another session's workspace with the changes that this one made since a common state.

    In a question set that both changed they are merged question by question; ours win conflicts, and no index
    is kept.
    """
    documents, runs = (
        three_way(*({key(each): each for each in getattr(one, part)} for one in (base, ours, theirs)))
        for part, key in (("documents", attrgetter("name")), ("runs", attrgetter("time", "name")))
    )
    tables = [dict(one.question_sets) for one in (base, ours, theirs)]
    sets = three_way(*tables)
    for name in {name for table in tables for name in table}:
        before, *after = (table.get(name, []) for table in tables)
        if before not in after:  # both changed it
            if questions := three_way(numbered(before), *map(numbered, after)):
                sets[name] = list(questions.values())
            else:
                sets.pop(name, None)
    every = [one.settings for one in (base, ours, theirs)]
    within = {key for key in ours.settings if all(isinstance(table.get(key, {}), dict) for table in every)}
    inner = {key: three_way(*(table.get(key, {}) for table in every)) for key in within}
    settings = three_way(*every) | inner
    return Workspace(tuple(documents.values()), settings, None, sets, tuple(runs.values()), theirs.saved_as)


def numbered(questions: Sequence[dict[str, Any]]) -> dict[tuple[str, int], dict[str, Any]]:
    """Return questions by their content and how many equal ones stand before."""
    seen: Counter[str] = Counter()
    table = {}
    for question in questions:
        content = json.dumps(question, sort_keys=True)
        table[content, seen[content]] = question
        seen[content] += 1
    return table


def three_way(base: Mapping[K, T], ours: Mapping[K, T], theirs: Mapping[K, T]) -> dict[K, T]:
    """Merge two tables that were changed independently since ``base``; ours win conflicts."""
    unchanged = {key: value for key, value in theirs.items() if ours.get(key) == base.get(key)}
    changed = {key: value for key, value in ours.items() if value != base.get(key)}
    return unchanged | changed


def export_workspace(workspace: Workspace) -> bytes:
    """Return the content of a workspace file, for a download; errors as in `save_workspace`."""
    rows = checked_rows(workspace)
    with as_document_errors("the workspace"), closing(connect_ours(":memory:")) as connection:
        write_rows(connection, rows, "", "the workspace")
        content = connection.serialize()
    check_bytes("the workspace", len(content))
    return content


def import_workspace(name: str, content: bytes) -> Workspace:
    """Read a workspace from the content of the file ``name``; `DocumentError` as in `open_workspace`."""
    check_bytes(name, len(content))
    with as_document_errors(name), closing(connect(":memory:")) as connection:
        # Clear the write-ahead flags in the header: a database in memory has no log.
        connection.deserialize(content[:18] + b"\1\1" + content[20:])
        return read_workspace(connection, name)


def read_workspace(connection: sqlite3.Connection, name: str) -> Workspace:
    """Read the workspace of an open file."""
    rows, digest = read_rows(connection, name)
    return replace(from_rows(rows), saved_as=digest)


def checked_rows(workspace: Workspace) -> Rows:
    """Return the rows of a workspace, or raise `InputError` if they would not restore it."""
    try:
        rows = to_rows(workspace)
        again = from_rows(rows)
    except UNREADABLE as error:
        raise InputError(f"the workspace cannot be saved: {reason_of(error)}") from error
    for part in ("documents", "settings", "question_sets", "runs"):
        if getattr(again, part) != getattr(workspace, part):
            raise InputError(f"the workspace's {part} hold what JSON does not, such as a tuple: use a list")
    if workspace.index and again.index and again.index.chunks != workspace.index.chunks:
        raise InputError("the workspace's chunks are not spans of its documents: build the index again")
    return rows


def document_row(number: int, document: Document) -> Row:
    """Return the row of a document."""
    metadata = Metadata(document.sections, document.date, document.tags, document.notes)
    about = to_json(METADATA.dump_python(metadata))
    return number, document.name, document.title, document.text, about


def to_document(row: tuple[int, str, str, str, str]) -> Document:
    """Restore a document from its row, which in the first version had nothing but sections."""
    _, name, title, text, about = row
    content = json.loads(about)
    known = METADATA.validate_python({"sections": content} if isinstance(content, list) else content)
    document = Document(name, text, title, known.sections, known.date, known.tags, known.notes)
    return with_bounded_names(document)


def to_rows(workspace: Workspace) -> Rows:
    """Return the rows of a workspace by table."""
    index = workspace.index
    return {
        "documents": [document_row(number, document) for number, document in enumerate(workspace.documents)],
        "settings": [(0, to_json(dict(workspace.settings)))],
        "stamp": [spec_row(index)] if index else [],
        "chunks": chunk_rows(index, workspace.documents) if index else [],
        "question_sets": [
            (number, name, to_json(questions))
            for number, (name, questions) in enumerate(workspace.question_sets.items())
        ],
        "runs": [
            (number, each.name, each.time, to_json(dict(each.content)))
            for number, each in enumerate(workspace.runs)
        ],
    }


def from_rows(rows: Rows) -> Workspace:
    """Restore a workspace from its rows; raises with the value in the message if one is wrong."""
    tables = TABLES.validate_python(rows)
    documents = tuple(map(to_document, tables.documents))
    if len({document.name for document in documents}) < len(documents):
        raise ValueError("two documents have one name")
    [(_, settings)] = tables.settings
    runs = tuple(SavedRun(name, time, content) for _, name, time, content in tables.runs)
    for run in runs:
        datetime.fromisoformat(run.time)
    return Workspace(
        documents,
        settings,
        to_index(tables.stamp, tables.chunks, documents),
        {name: questions for _, name, questions in tables.question_sets},
        runs,
    )


def spec_row(index: Index) -> Row:
    """Return the row of an index's embedding settings."""
    spec, idf = index.spec, None if index.idf is None else index.idf.astype(FLOAT32).tobytes()
    return (0, spec.model, spec.name, spec.pooling, int(spec.max_tokens), int(spec.d_model), idf)


def chunk_rows(index: Index, documents: Sequence[Document]) -> list[Row]:
    """Return the rows of chunks and their vectors, each parent once and before its children."""
    places = {document.name: place for place, document in enumerate(documents)}
    parents: dict[Chunk, int] = {}
    rows: list[Row] = []

    def add(chunk: Chunk, parent: int | None, vector: bytes | None) -> int:
        if chunk.document not in places:
            raise ValueError(
                f"its index has chunks of {chunk.document}, which it lacks: build the index again"
            )
        span = (places[chunk.document], int(chunk.start), int(chunk.end), int(chunk.n_tokens))
        above = (chunk.headings, chunk.context) if chunk.context else chunk.headings
        page = None if chunk.page is None else int(chunk.page)
        rows.append((len(rows), *span, to_json(above), page, parent, vector))
        return len(rows) - 1

    for chunk, vector in zip(index.chunks, index.vectors.astype(FLOAT32), strict=True):
        if chunk.parent is not None and chunk.parent not in parents:
            parents[chunk.parent] = add(chunk.parent, None, None)
        add(chunk, parents[chunk.parent] if chunk.parent is not None else None, vector.tobytes())
    return rows


def to_index(
    stamp: Sequence[StampRow], rows: Sequence[ChunkRow], documents: Sequence[Document]
) -> Index | None:
    """Restore an index from its stamp and its chunks; None without a stamp."""
    if not stamp and not rows:
        return None
    [(_, model, name, pooling, max_tokens, d_model, idf)] = stamp
    spec = EmbeddingSpec(model, pooling, max_tokens, d_model, name)
    parents: dict[int, Chunk] = {}
    chunks, vectors = [], []
    for place, number, start, stop, n_tokens, above, page, parent, vector in rows:
        document = documents[number]
        if not 0 <= start <= stop <= len(document.text):
            raise ValueError(f"{document.name} has no characters {start} to {stop}")
        if vector is None and parent is not None:
            raise ValueError("the parent of a chunk has a parent")
        around = None if parent is None else parents[parent]
        text = document.text[start:stop]
        headings, context = above if above and isinstance(above[0], tuple) else (above, "")
        chunk = Chunk(document.name, start, stop, text, n_tokens, headings, page, around, context)
        if vector is None:
            parents[place] = chunk
        else:
            chunks.append(chunk)
            vectors.append(vector)
    if not vectors:
        raise ValueError("the index has no chunks")
    matrix = np.frombuffer(b"".join(vectors), FLOAT32).reshape(len(chunks), spec.d_model)
    if not np.isfinite(matrix).all():
        raise ValueError("a vector is not finite")
    words = None if idf is None else np.frombuffer(idf, FLOAT32)  # (vocab_size,)
    return index_vectors(chunks, matrix, spec, words, documents)


def to_json(value: object) -> str:
    """Return a value as JSON; raises for other values."""
    return json.dumps(value, allow_nan=False)
