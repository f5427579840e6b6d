"""Indexes that find the nearest vectors without reading all of them, by FAISS: one table.

HNSW walks a graph of near neighbours (Malkov and Yashunin 2018); IVF reads the lists of vectors whose
centroids are nearest; product quantisation keeps codes in place of vectors (Jégou, Douze and Schmid 2011).
Each may miss a near vector, so its recall is measured against exact search before it is used
(`index_choice`).
"""

import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DocumentError, check_choice
from ..layers.tracing import Array
from ..weights.fetch import Progress

if TYPE_CHECKING:
    import faiss

FLAT, AUTO = "flat", "auto"
LEAST_PER_LIST = 39  # vectors for each centroid, that FAISS asks for
EXACT_SHARE = 2  # exact search where more than one in so many vectors would be a candidate
TRAINED_PER_CENTROID, ITERATIONS = 40, 10  # of k-means: 64 and 25 took 3.4 times as long, for the same recall
PARAMETERS = {"efSearch": "SearchParametersHNSW", "nprobe": "SearchParametersIVF"}
ADDED_AT_ONCE = 10_000  # vectors
CUT = "a file of the index was cut while it is searched: open a whole index"
MOST_SPARE = 100  # times its `candidates`, that a kind finds beyond those that are asked for


@dataclass(frozen=True)
class IndexKind:
    """A kind of index, with its name and description for people."""

    label: str
    help: str
    # FAISS's words for ``index_factory``, with the number of ``lists`` and of ``halves``, half the length of
    # a vector; empty for exact search, which reads the vectors where they are
    factory: str = ""
    effort: str = ""  # the search parameter that trades time for recall: ``efSearch`` or ``nprobe``
    candidates: int = 1  # to find for each that is asked for; the best by exact products are returned


# To add a kind, add an entry: the app and the command line take names and descriptions from here.
INDEX_KINDS = {
    FLAT: IndexKind("exact", "Reads every vector, and misses none."),
    "hnsw": IndexKind(
        "HNSW",
        "A graph of near neighbours: the fastest, with the most memory and the longest build.",
        "HNSW32,Flat",
        "efSearch",
    ),
    "ivf": IndexKind("IVF", "Lists of near vectors; the nearest are read.", "IVF{lists},Flat", "nprobe"),
    "ivf-sq8": IndexKind(
        "IVF, 8 bits a number",
        "Lists of vectors in a quarter of the memory; the best candidates are scored again, exactly.",
        "IVF{lists},SQ8",
        "nprobe",
        4,
    ),
    "ivf-pq": IndexKind(
        "IVF-PQ",
        "Lists of product-quantised vectors in a sixteenth of the memory; the best candidates are scored "
        "again, exactly.",
        "IVF{lists},PQ{halves}x4fs",
        "nprobe",
        16,  # with 8, questions to a million chunks have a recall@10 of 0.91 in place of 0.97
    ),
}


def check_index_kind(name: str) -> None:
    """Raise `InputError` for a name that is neither one of `INDEX_KINDS` nor `AUTO`."""
    check_choice("index kind", name, (*INDEX_KINDS, AUTO))


@dataclass(frozen=True)
class AnnIndex:
    """An index for approximate nearest neighbours; the vectors are kept elsewhere."""

    kind: str  # one of `INDEX_KINDS` but `FLAT`
    effort: int  # how thoroughly it searches: the value of the kind's parameter
    _faiss: "faiss.Index" = field(repr=False, compare=False)

    def nearest(
        self, vectors: Array, questions: Array, k: int, allowed: Array | None = None
    ) -> tuple[Array, Array]:
        """Return inner products and rows of the ``k`` nearest vectors that it finds, nearest first.

        Arguments and shapes are those of `exact_nearest`, which is used where ``k`` is a large share of the
        vectors that may be found, and for questions for which fewer than ``k`` are found.
        """
        found = self.candidates(len(vectors), questions, k, allowed)
        if found is None:
            return exact_nearest(vectors, questions, k, allowed)
        near = rows_of(vectors, np.maximum(found, 0).ravel()).reshape(*found.shape, -1)
        scores = np.einsum("qd,qcd->qc", questions, near)  # (n_questions, n_candidates)
        scores = np.where(found >= 0, scores, np.float32(-np.inf))
        order = np.lexsort((found, -scores))[:, :k]
        scores, rows = np.take_along_axis(scores, order, 1), np.take_along_axis(found, order, 1)
        if (short := np.isneginf(scores[:, -1])).any():
            scores[short], rows[short] = exact_nearest(vectors, questions[short], k, allowed)
        return scores, rows

    def candidates(
        self, n_vectors: int, questions: Array, k: int, allowed: Array | None = None
    ) -> Array | None:
        """Return rows among which the ``k`` nearest of some vectors are: ``(n_questions, n)``, -1 for none.

        None where they would be a large share of those that may be found.
        """
        per = INDEX_KINDS[self.kind].candidates
        n = min(per * k, k + per * MOST_SPARE)
        if EXACT_SHARE * n > (n_vectors if allowed is None else len(allowed)):
            return None
        found: Array = self._faiss.search(questions, n, params=self._parameters(allowed))[1]
        if found.max() >= n_vectors:
            raise DocumentError(
                "the index's search structure is damaged: index the corpus again with --rebuild"
            )
        return found

    def _parameters(self, allowed: Array | None) -> Any:
        """Return FAISS's parameters of a search, which is the more thorough the fewer rows are allowed.

        The nearest of a tenth of all vectors lie in ten times as many lists; those left out cost no product.
        """
        import faiss

        name, effort, others = INDEX_KINDS[self.kind].effort, self.effort, {}
        if allowed is not None:
            is_allowed = np.zeros(self._faiss.ntotal, bool)
            is_allowed[allowed] = True
            selector: Any = faiss.IDSelectorBitmap  # whose stub is that of C++
            others["sel"] = selector(np.packbits(is_allowed, bitorder="little"))
            effort = ceil(effort * len(is_allowed) / len(allowed))
        return getattr(faiss, PARAMETERS[name])(**{name: effort}, **others)

    def to_bytes(self) -> Array:
        """Return FAISS's bytes of the index, uint8, for `from_bytes`."""
        import faiss

        return faiss.serialize_index(self._faiss)

    @classmethod
    def from_bytes(cls, kind: str, effort: int, content: Array, shape: tuple[int, ...]) -> "AnnIndex":
        """Restore an index of vectors of a ``shape`` from bytes that `to_bytes` made on this machine.

        FAISS trusts them: bytes that somebody else made can crash the process, or worse. Raises `ValueError`
        where they are not those of an index of these vectors.
        """
        import faiss

        try:
            index = faiss.deserialize_index(np.asarray(content))
        except RuntimeError as error:
            raise ValueError("its search structure cannot be read") from error
        if (index.ntotal, index.d) != shape or index.metric_type != faiss.METRIC_INNER_PRODUCT:
            raise ValueError(f"its search structure is of {index.ntotal} vectors of {index.d} numbers")
        found = cls(kind, effort, index)
        try:  # of another kind it takes no parameters of this one
            index.search(np.zeros((1, index.d), np.float32), 1, params=found._parameters(None))
        except RuntimeError as error:
            raise ValueError("its search structure is of another kind") from error
        return found


def build_ann(vectors: Array, kind: str, effort: int = 16, on_progress: Progress | None = None) -> AnnIndex:
    """Build an index of a kind but `FLAT` for vectors ``(n_chunks, d_model)``, float32, of length 1."""
    import faiss

    n, d_model = vectors.shape
    lists = max(1, min(round(4 * n**0.5), n // LEAST_PER_LIST))
    halves = d_model if d_model % 2 else d_model // 2
    factory = INDEX_KINDS[kind].factory.format(lists=lists, halves=halves)
    index = faiss.index_factory(d_model, factory, faiss.METRIC_INNER_PRODUCT)
    for clustering in (getattr(index, "cp", None), getattr(getattr(index, "pq", None), "cp", None)):
        if clustering is not None:  # the seeds are fixed
            clustering.max_points_per_centroid = TRAINED_PER_CENTROID
            clustering.min_points_per_centroid = 1
            clustering.niter = ITERATIONS
    index.train(vectors)
    for start in range(0, n, ADDED_AT_ONCE):
        index.add(vectors[start : start + ADDED_AT_ONCE])
        if on_progress is not None:
            on_progress(min(n, start + ADDED_AT_ONCE), n)
    return AnnIndex(kind, effort, index)


def require_whole(*arrays: Array) -> None:
    """Raise where the file of a mapped array was cut: zeros are read in its place, or the process ends.

    It is asked before each search, in a microsecond, and after it.
    """
    for array in arrays:
        base = array.base
        while isinstance(base, np.ndarray):
            base = base.base
        if isinstance(base, mmap.mmap) and base.size() < len(base):
            raise DocumentError(CUT)


def rows_of(vectors: Array, rows: Sequence[int] | Array) -> Array:
    """Copy some rows of vectors; of a mapped file they are read past the mapping.

    Through it the system would map the pages around each row, too, by default 16 on Linux, which takes four
    times as long, and keep all in this process's memory.
    """
    if not isinstance(vectors, np.memmap) or not hasattr(os, "pread"):
        return vectors[rows]
    size = vectors.shape[1] * vectors.itemsize
    places = (vectors.offset + size * np.asarray(rows, int)).tolist()
    try:
        with Path(str(vectors.filename)).open("rb", buffering=0) as file:
            number = file.fileno()
            found = b"".join([os.pread(number, size, place) for place in places])
    except FileNotFoundError:  # another program has written the index anew; the old file is still mapped
        return vectors[rows]
    if len(found) < size * len(places):
        raise DocumentError(CUT)
    return np.frombuffer(found, vectors.dtype).reshape(-1, vectors.shape[1])


def exact_nearest(
    vectors: Array, questions: Array, k: int, allowed: Array | None = None
) -> tuple[Array, Array]:
    """Return inner products and rows of the ``k`` vectors nearest to each question, nearest first.

    Of equally near ones the first rows are, at every ``k``.

    ``(n_chunks, d_model)`` and ``(n_questions, d_model)``, both float32, to two arrays ``(n_questions, k)``.
    FAISS reads the vectors where they are, without a copy. If only some rows are ``allowed``, at least ``k``,
    these are copied ``(n_allowed,)``.
    """
    import faiss

    found_in = vectors if allowed is None else vectors[allowed]
    n_asked = min(k + 1, len(found_in))
    while True:
        scores, places = faiss.knn(questions, found_in, n_asked, metric=faiss.METRIC_INNER_PRODUCT)
        if n_asked == len(found_in) or (scores[:, -1] < scores[:, k - 1]).all():
            break  # all that are as near as the last one are among them
        n_asked = min(4 * n_asked, len(found_in))
    order = np.lexsort((places, -scores))[:, :k]
    scores, places = np.take_along_axis(scores, order, 1), np.take_along_axis(places, order, 1)
    return scores, places if allowed is None else allowed[places]
