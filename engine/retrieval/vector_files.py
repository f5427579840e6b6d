"""Files of chunks with their vectors, made here or elsewhere: .npz and Parquet.

Vectors alone do not say how they were made, so the model that embeds the questions has to be named; a chunk
is embedded by it again, and its vector has to be the same.
"""

import tokenize
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..documents.document import Chunk, Document
from ..errors import DocumentError, InputError
from ..installed import PROGRAM
from ..layers.norm import l2_normalize
from ..layers.tracing import Array
from ..limited_process import Limits
from ..limited_reader import LIMITS, read_limited
from ..wording import reason_of
from .embedding_model import Model, embedding_spec, encode_by
from .index import Index, index_vectors

LEAST_COSINE = 0.99  # of a chunk's vector with that which the named model makes: float16 stays far above
MOST_CHARACTERS = 100_000_000  # of a document, and those of all documents that no chunk holds
MAX_UNPACKED = 2_000_000_000  # bytes
MOST_APART = 200 * 1024**2  # bytes of a file that is read in a child process: the largest that the app takes
ROW_BYTES = 200  # of a row of Parquet, whose repeated texts are stored once
ARRAYS = ("documents", "starts", "ends", "text", "text_starts", "vectors")
COLUMNS = ("document", "start", "end", "text", "vector")


@dataclass(frozen=True)
class Rows:
    """The content of a file, one row a chunk; ``vectors`` is float32 ``(n_chunks, d_model)``."""

    documents: Sequence[str]
    starts: Sequence[int]
    ends: Sequence[int]
    texts: Sequence[str]
    vectors: Array
    contexts: Sequence[str]  # as in `Chunk.context`


def save_npz(path: Path, index: Index, ids: Sequence[Sequence[int]]) -> None:
    """Write an index, and the token ids of its chunks, to an .npz file that `read_index` reads.

    One row a chunk: ``documents`` (names), ``starts``, ``ends``, ``vectors (n_chunks, d_model)``. The texts
    of all chunks stand one after the other in ``text`` (UTF-8), and ``text_starts`` says where each begins;
    in the same way ``ids`` and ``id_starts`` hold the token ids. ``contexts`` are put before the texts.
    """
    texts = [chunk.text.encode() for chunk in index.chunks]
    np.savez(
        path,
        documents=np.array([chunk.document for chunk in index.chunks]),
        starts=np.array([chunk.start for chunk in index.chunks]),
        ends=np.array([chunk.end for chunk in index.chunks]),
        text=np.frombuffer(b"".join(texts), np.uint8),
        text_starts=np.cumsum([0, *map(len, texts)]),
        ids=np.concatenate([np.asarray(each) for each in ids]),
        id_starts=np.cumsum([0, *map(len, ids)]),
        vectors=index.vectors,
        contexts=np.array([chunk.context for chunk in index.chunks]),
    )


def read_index(
    path: Path,
    model: Model,
    pooling: str | None = None,
    content: bytes | None = None,
    limits: Limits = LIMITS,
) -> Index:
    """Read chunks and vectors, which are scaled to length 1, into an index.

    The file is an .npz that `save_npz` wrote, or a Parquet file with the columns of `COLUMNS`: name of the
    document, its span and text, and a list of numbers. An uploaded file is given by its name and content.
    ``model`` and ``pooling`` are those that made the vectors, as in `build_index`. The file is read in a
    child process with ``limits``, unless it is so large that it can only be one's own. Raises `DocumentError`
    where the file is missing, damaged, of another format, or its rows do not fit together, and `InputError`
    where the vectors were made by another model, or otherwise.
    """
    if path.suffix.lower() not in READERS:
        raise DocumentError(f"{path.name} ends in none of {', '.join(READERS)}: give vectors as one of these")
    if content is None and not path.is_file():
        raise DocumentError(f"there is no file {path}: check the path")
    if content is None:
        content = path.read_bytes()
    if len(content) <= MOST_APART:
        rows = read_limited(read_rows, path.name, content, limits=limits)
    else:
        rows = read_rows(path.name, content)
    places = zip(rows.documents, rows.starts, rows.ends, rows.texts, strict=True)
    contexts = zip(places, rows.contexts, strict=True)
    chunks = [Chunk(*place, 0, context=context) for place, context in contexts]
    texts, vectors = [chunk.indexed for chunk in chunks], l2_normalize(rows.vectors)
    idf = None
    if pooling == "idf" and (encoder := model.as_encoder) is not None:
        model = encoder.with_idf(texts)
        idf = model.idf
    spec = embedding_spec(model, pooling, None)
    if vectors.shape[1] != spec.d_model:
        raise InputError(
            f"{path.name} holds vectors of {vectors.shape[1]} numbers, and those of {spec} have "
            f"{spec.d_model}: name the model that made them"
        )
    row = next(number for number, text in enumerate(texts) if text.strip())
    [again] = encode_by(spec, "document", [texts[row]], model)  # (d_model,)
    if (cosine := float(vectors[row] @ again)) < LEAST_COSINE:
        raise InputError(
            f"{path.name} does not hold vectors of {spec}: that of chunk {row} has a cosine of {cosine:.3f} "
            f"with the model's, less than {LEAST_COSINE}: name the model, pooling and prompts that made them"
        )
    n_tokens = map(len, model.tokenizer.ids_batch(texts))
    chunks = [replace(chunk, n_tokens=n) for chunk, n in zip(chunks, n_tokens, strict=True)]
    return index_vectors(chunks, vectors, spec, idf, documents_of(chunks, path.name))


def documents_of(chunks: Sequence[Chunk], name: str) -> list[Document]:
    """Return the documents that the chunks of a file are of; what no chunk holds is read as line breaks."""
    texts: dict[str, list[str]] = {chunk.document: [] for chunk in chunks}
    ends = dict.fromkeys(texts, 0)
    n_missing = 0
    for chunk in sorted(chunks, key=lambda chunk: chunk.start):
        gap = chunk.start - ends[chunk.document]
        n_missing += max(0, gap)
        if n_missing > MOST_CHARACTERS:
            raise DocumentError(
                f"{name} lacks over {MOST_CHARACTERS:,} characters between its chunks: give starts and ends "
                "that count the characters of each document"
            )
        piece = "\n" * gap + chunk.text[max(0, -gap) :]
        texts[chunk.document].append(piece)
        ends[chunk.document] += len(piece)
    return [Document(document, "".join(pieces)) for document, pieces in texts.items()]


def read_rows(name: str, content: bytes) -> Rows:
    """Read a file's content by its ending, and check it; errors of the libraries become `DocumentError`."""
    try:
        rows = READERS[Path(name).suffix.lower()](name, content)
    except (
        *(OSError, ValueError, EOFError, RuntimeError),
        *(zipfile.BadZipFile, zlib.error, tokenize.TokenError),
    ) as error:
        raise DocumentError(
            f"{name} cannot be read ({reason_of(error) or type(error).__name__}): write it again"
        ) from error
    check_rows(rows, name)
    return rows


def check_unpacked(n_bytes: int) -> None:
    """Refuse a small file that becomes gigabytes."""
    if n_bytes > MAX_UNPACKED:
        raise ValueError(f"it unpacks to {n_bytes / 1e9:,.1f} GB, over {MAX_UNPACKED / 1e9:,.0f}")


def read_npz(name: str, content: bytes) -> Rows:
    """Read what `save_npz` wrote; the token ids are not needed."""
    arrays = np.load(BytesIO(content), allow_pickle=False)
    if not isinstance(arrays, np.lib.npyio.NpzFile):
        raise ValueError("it is a single array")
    with arrays as found:
        check_names(name, ARRAYS, found.files)
        with zipfile.ZipFile(BytesIO(content)) as members:
            check_unpacked(sum(member.file_size for member in members.infolist()))
        documents, starts, ends, text, text_starts, vectors = (found[each] for each in ARRAYS)
        # Files of earlier versions have none.
        contexts = found["contexts"] if "contexts" in found.files else np.full(np.shape(documents), "")
    for label, array, kind in (
        ("documents", documents, np.str_),
        ("starts", starts, np.integer),
        ("ends", ends, np.integer),
        ("text", text, np.uint8),
        ("text_starts", text_starts, np.integer),
        ("vectors", vectors, np.floating),
        ("contexts", contexts, np.str_),
    ):
        if not isinstance(array, np.ndarray):
            raise ValueError(f"{label} is no array")
        if not np.issubdtype(array.dtype, kind) or array.ndim != (2 if label == "vectors" else 1):
            raise ValueError(f"{label} is {array.dtype} of shape {array.shape}")
    borders = text_starts.tolist()
    if len(borders) != len(documents) + 1 or [0, *borders, len(text)] != sorted([0, *borders, len(text)]):
        raise ValueError("text_starts does not divide the text into a piece for each chunk")
    texts = [text[start:end].tobytes().decode() for start, end in pairwise(borders)]
    return Rows(documents.tolist(), starts.tolist(), ends.tolist(), texts, single(vectors), contexts.tolist())


def read_parquet(name: str, content: bytes) -> Rows:
    """Read the columns of `COLUMNS`."""
    try:
        import pyarrow
        from pyarrow import compute, parquet
    except ImportError as error:
        raise DocumentError(
            f"{name} needs pyarrow, which is not installed: pip install pyarrow, or give an .npz file"
        ) from error
    try:
        names = parquet.read_schema(pyarrow.BufferReader(content)).names
        check_names(name, COLUMNS, names)
        stored = parquet.read_metadata(pyarrow.BufferReader(content))
        groups = [stored.row_group(number) for number in range(stored.num_row_groups)]
        check_unpacked(sum(group.total_byte_size for group in groups) + ROW_BYTES * stored.num_rows)
        # Threads would take memory of the child process.
        table = parquet.read_table(
            pyarrow.BufferReader(content), columns=list(COLUMNS), use_threads=False, pre_buffer=False
        )
        for column in COLUMNS:
            if table[column].null_count:
                raise ValueError(f"column {column} has {table[column].null_count} empty cells")
        lists = table["vector"]
        lengths = compute.unique(compute.list_value_length(lists)).to_pylist()
        if len(lengths) > 1:
            raise ValueError(f"its vectors have {lengths[0]} numbers, and {lengths[1]}")
        flat = single(compute.list_flatten(lists).to_numpy())
        columns = {column: table[column].to_pylist() for column in COLUMNS[:-1]}
    except pyarrow.ArrowMemoryError:
        raise  # beyond the limits of the child process
    except pyarrow.ArrowException as error:
        raise ValueError(str(error)) from error
    vectors = flat.reshape(table.num_rows, -1) if table.num_rows else flat[None]
    names, texts = columns["document"], columns["text"]
    return Rows(names, columns["start"], columns["end"], texts, vectors, [""] * len(names))


def single(vectors: Array) -> Array:
    """Return numbers as float32; those too large for it become infinite, and are refused as such."""
    with np.errstate(over="ignore"):
        return vectors.astype(np.float32, copy=False)


READERS: dict[str, Callable[[str, bytes], Rows]] = {".npz": read_npz, ".parquet": read_parquet}


def check_names(name: str, wanted: Sequence[str], found: Sequence[str]) -> None:
    """Raise `DocumentError` for arrays or columns that a file lacks."""
    if missing := [each for each in wanted if each not in found]:
        raise DocumentError(
            f"{name} lacks {', '.join(missing)} of {', '.join(wanted)}: write it with {PROGRAM} "
            "embed, or add them"
        )


def check_rows(rows: Rows, name: str) -> None:
    """Raise `DocumentError` for the first row that is no span of a document with a vector."""
    lengths = {len(rows.documents), len(rows.starts), len(rows.ends), len(rows.texts), len(rows.vectors)}
    lengths.add(len(rows.contexts))
    if len(lengths) != 1 or not rows.texts:
        raise DocumentError(f"{name} holds no chunks, or not as many of each column: write it again")
    spans = zip(rows.documents, rows.starts, rows.ends, rows.texts, strict=True)
    for number, (document, start, end, text) in enumerate(spans):
        if problem := row_problem(document, start, end, text):
            raise DocumentError(f"{name}, chunk {number}: {problem}")
    if not any(text.strip() for text in rows.texts):
        raise DocumentError(f"{name} holds no text, only white space: write it again")
    lengths_of_vectors = np.linalg.norm(rows.vectors, axis=1)  # (n_chunks,)
    wrong = np.flatnonzero(~((lengths_of_vectors > 0) & (lengths_of_vectors < np.inf)))
    if wrong.size:
        raise DocumentError(f"{name}, chunk {wrong[0]}: its vector is zero or not finite: embed it again")


def row_problem(document: Any, start: Any, end: Any, text: Any) -> str:
    """Return what is wrong with the document, span and text of a chunk, empty if nothing is."""
    if not (isinstance(document, str) and isinstance(text, str) and document):
        return "its document and text have to be strings, and the document not empty"
    if not (isinstance(start, int) and isinstance(end, int)):
        return f"its start {start!r:.80} and end {end!r:.80} have to be whole numbers"
    if not 0 <= start <= end <= MOST_CHARACTERS or end - start != len(text):
        return (
            f"its text has {len(text)} characters, and does not stand at {start} to {end}: starts and ends "
            f"count characters of the document, up to {MOST_CHARACTERS:,}"
        )
    return ""
