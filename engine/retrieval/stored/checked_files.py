"""The files of an index folder that somebody else may have made, read only where they are as they should."""

import tokenize
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...layers.tracing import Array

MOST_OF_MANIFEST = 10_000_000  # bytes
IN_MEMORY = 50_000_000  # bytes of an array that is read, and not mapped
LONGEST = 1.001  # of vectors of length 1, rounded to float16
# The type of each array of an index, and its number of axes.
ARRAYS: dict[str, tuple[type[Any], int]] = {
    "vectors": (np.float32, 2),
    "unrelated": (np.float32, 2),
    "idf": (np.float32, 1),
    "starts": (np.integer, 1),
    "rows": (np.integer, 1),
    "impacts": (np.float32, 1),
    "sparse_starts": (np.integer, 1),
    "sparse_rows": (np.integer, 1),
    "sparse": (np.float32, 1),
    "ann": (np.uint8, 1),
    **{f"{name}_places": (np.integer, 2) for name in ("file", "document", "chunk")},
    "name_digests": (np.unsignedinteger, 1),
    "name_rows": (np.integer, 1),
    "noted": (np.integer, 1),
}


def require(holds: bool, what: str) -> None:
    """Raise `ValueError` where a condition does not hold."""
    if not holds:
        raise ValueError(what)


def ordinary(path: Path, most: int | None = MOST_OF_MANIFEST) -> Path:
    """Return the path of an ordinary file of at most so many bytes; a pipe would never end."""
    n_bytes = path.stat().st_size
    require(path.is_file(), f"its {path.name:.80} is no ordinary file")
    require(
        most is None or n_bytes <= most, f"its {path.name:.80} has {n_bytes:,} bytes, too many to be read"
    )
    return path


def read_array(path: Path) -> Array:
    """Read an array, or map a large one; the file holds it and nothing else."""
    try:
        mapped = np.load(ordinary(path, None), mmap_mode="r")
    except (SyntaxError, tokenize.TokenError, EOFError) as error:  # of its header
        raise ValueError(f"its {path.name:.80} is no array") from error
    is_whole = isinstance(mapped, np.memmap) and mapped.offset + mapped.nbytes == path.stat().st_size
    require(is_whole, f"its {path.name:.80} is no array, or has more bytes than one")
    kind, n_axes = ARRAYS.get(path.stem, (mapped.dtype.type, mapped.ndim))
    fits = np.issubdtype(mapped.dtype, kind) and mapped.ndim == n_axes
    require(fits, f"its {path.stem:.80} are {mapped.dtype} of shape {mapped.shape}")
    if mapped.nbytes <= IN_MEMORY:
        return np.array(mapped)
    from ...kernels.cut_files import survive_cuts  # numba, which a small index does without

    survive_cuts(mapped)
    return mapped


def check_arrays(
    arrays: Mapping[str, Array], n_chunks: int, d_model: int, vocabulary: Mapping[str, int]
) -> None:
    """Raise `ValueError` for arrays that are not those of an index of so many chunks and these words."""
    for name in ("vectors", "unrelated"):
        if (found := arrays.get(name)) is not None:  # Milvus may have the vectors
            fits = len(found) > 0 and found.shape[1] == d_model
            require(fits, f"its {name} are of shape {found.shape}, not of {d_model} numbers")
            if is_read(found):
                with np.errstate(over="ignore"):
                    lengths = np.linalg.norm(found, axis=1)
                require(bool((lengths <= LONGEST).all()), f"its {name} are not of length 1")  # nor is NaN
    if (idf := arrays.get("idf")) is not None:
        require(bool(np.isfinite(idf).all()), "its idf are not finite")
    check_postings(arrays["starts"], arrays["rows"], arrays["impacts"], n_chunks, len(vocabulary))
    are_numbered = sorted(vocabulary.values()) == list(range(len(vocabulary)))
    require(are_numbered, "its words are not numbered one by one")


def check_postings(starts: Array, rows: Array, impacts: Array, n_chunks: int, n_words: int) -> None:
    """Raise `ValueError` for an inverted index that is not one of so many words in so many chunks."""
    are_finite = not is_read(impacts) or np.isfinite(impacts).all()
    require(bool(are_finite), "its weights of words are not finite")
    is_divided = len(starts) == n_words + 1 and starts[0] == 0 and (np.diff(starts) >= 0).all()
    is_divided = is_divided and starts[-1] == len(rows) == len(impacts)
    require(bool(is_divided), "its postings are not divided among its words")
    are_chunks = not is_read(rows) or not len(rows) or (rows.min() >= 0 and rows.max() < n_chunks)
    require(bool(are_chunks), f"its postings are of other chunks than its {n_chunks}")


def is_read(array: Array) -> bool:
    """Whether an array is in memory: the content of a mapped one is not checked, as that would read it."""
    return not isinstance(array, np.memmap)
