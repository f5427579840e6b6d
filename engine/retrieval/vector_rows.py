"""The rows of files of chunks with vectors, `engine.retrieval.vector_files`: read without a model."""

import tokenize
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DocumentError
from ..installed import PROGRAM
from ..layers.tracing import Array
from ..wording import reason_of

MOST_CHARACTERS = 100_000_000  # of a document, and those of all documents that no chunk holds
MAX_UNPACKED = 2_000_000_000  # bytes
ROWS = 1000  # of Parquet, read at once
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
    if find_spec("pyarrow") is None:
        raise DocumentError(
            f"{name} needs pyarrow, which is not installed: pip install pyarrow, or give an .npz file"
        )
    import pyarrow
    from pyarrow import compute, parquet

    texts: dict[str, list[Any]] = {column: [] for column in COLUMNS[:-1]}
    vectors = np.empty((0, 0), np.float32)
    try:
        file = parquet.ParquetFile(pyarrow.BufferReader(content))
        check_names(name, COLUMNS, file.schema_arrow.names)
        n_rows, n_groups = file.metadata.num_rows, file.num_row_groups
        n_bytes = sum(file.metadata.row_group(number).total_byte_size for number in range(n_groups))
        check_unpacked(n_bytes + ROW_BYTES * n_rows)
        # Threads would take memory of the child process.
        for batch in file.iter_batches(ROWS, columns=list(COLUMNS), use_threads=False):
            for column in COLUMNS:
                if n_null := batch[column].null_count:
                    raise ValueError(f"column {column} has {n_null} empty cells")
            start, lists = len(texts["text"]), batch["vector"]
            lengths = compute.unique(compute.list_value_length(lists)).to_pylist()
            if not vectors.size:
                check_unpacked(4 * n_rows * lengths[0])
                vectors = np.empty((n_rows, lengths[0]), np.float32)
            if lengths != [vectors.shape[1]]:
                raise ValueError(f"its vectors have {vectors.shape[1]} numbers, and {lengths[-1]}")
            flat = single(compute.list_flatten(lists).to_numpy(zero_copy_only=False))
            vectors[start : start + len(lists)] = flat.reshape(len(lists), -1)
            for column, cells in texts.items():
                cells += batch[column].to_pylist()
    except pyarrow.ArrowMemoryError:
        raise  # beyond the limits of the child process
    except pyarrow.ArrowException as error:
        raise ValueError(str(error)) from error
    contexts = [""] * len(vectors)
    return Rows(texts["document"], texts["start"], texts["end"], texts["text"], vectors, contexts)


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
