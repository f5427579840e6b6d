"""The choice of an index: by size, and only if it finds what exact search finds in a sample."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import floor
from time import perf_counter

import numpy as np

from ..layers.tracing import Array
from ..weights.fetch import Progress
from ..wording import counted
from .index_kinds import AUTO, FLAT, INDEX_KINDS, AnnIndex, build_ann, check_index_kind, exact_nearest

NEAREST = 10  # of the recall
SAMPLE = 200  # chunks that are searched for
EFFORTS = (16, 32, 64, 128, 256)  # of a search, until its recall is enough
TRUSTED = 0.95  # the least recall@10 of an index that is used
EXACT_CHUNKS = 50_000  # up to which every vector is read: 10 to 60 ms, with 384 numbers each
HNSW_BYTES = 1024**3  # of vectors, up to which a graph with all of them fits in memory
FEWEST_CHUNKS = 256  # of an index other than exact search
SAME_SCORE = 1e-6  # float32 rounding: two chunks with one vector are one find


@dataclass(frozen=True)
class Lost:
    """A passage that exact search finds for a sampled chunk, and the index does not."""

    query: int  # row of the sampled chunk
    row: int  # row of the passage
    rank: int  # the passage's by exact search, from 1
    score: float  # its cosine


@dataclass(frozen=True)
class Measured:
    """Recall and time of an index on a sample of its own chunks, each a query for the other chunks."""

    kind: str
    effort: int  # as in `AnnIndex`; 0 for exact search
    recall: float  # mean share of the 10 nearest that it finds
    median_ms: float  # of one search
    p99_ms: float
    n_bytes: int  # without those of vectors that it scores again
    build_s: float
    lost: tuple[Lost, ...] = field(default=(), repr=False)  # what it did not find

    @property
    def words(self) -> str:
        """``HNSW (efSearch 32): recall@10 98.1 %, 0.12 ms a search (p99 0.31), 90.4 MB``."""
        kind = INDEX_KINDS[self.kind]
        effort = f" ({kind.effort} {self.effort})" if kind.effort else ""
        return (
            f"{kind.label}{effort}: recall@{NEAREST} {share(self.recall)}, {self.median_ms:.2f} ms a search "
            f"(p99 {self.p99_ms:.2f}), {self.n_bytes / 1e6:,.1f} MB"
        )


@dataclass(frozen=True)
class Choice:
    """The kind of index that is used, and why."""

    asked: str  # one of `INDEX_KINDS` or `AUTO`
    kind: str
    reason: str  # a sentence
    measured: tuple[Measured, ...]  # exact search, and the other kind if one was tried


def choose_index(
    vectors: Array,
    asked: str = AUTO,
    say: Callable[[str], None] = lambda line: None,
    on_progress: Progress | None = None,
) -> tuple[Choice, AnnIndex | None]:
    """Build the index that is asked for, or one that suits the size, and use it if its recall is enough.

    Vectors are float32 ``(n_chunks, d_model)``, of length 1; ``asked`` is one of `INDEX_KINDS`, or `AUTO`.
    ``say`` is called with a line before a build, and ``on_progress`` with vectors that are in it and all; it
    may raise to stop. The index is None for exact search.
    """
    check_index_kind(asked)
    kind, why = by_size(vectors) if asked == AUTO else (asked, "as asked for")
    if kind != FLAT and len(vectors) < FEWEST_CHUNKS:
        kind, why = FLAT, f"as {INDEX_KINDS[kind].label} is used from {FEWEST_CHUNKS} chunks on"
    exact = measure(vectors, None)
    if kind == FLAT:
        return Choice(asked, FLAT, f"exact search, {why}", (exact,)), None
    say(f"Building the index: {INDEX_KINDS[kind].label}")
    ann, measured = tuned(vectors, kind, on_progress)
    is_trusted = measured.recall >= TRUSTED
    sample = counted(n_sampled(vectors), "chunk")
    found = f"{share(measured.recall)} of the {NEAREST} nearest in a sample of {sample}"
    label = INDEX_KINDS[kind].label
    if is_trusted:
        return Choice(asked, kind, f"{label}, {why}: it finds {found}", (exact, measured)), ann
    reason = f"exact search: {label} ({why}) finds only {found}, and {share(TRUSTED)} are asked of it"
    return Choice(asked, FLAT, reason, (exact, measured)), None


def compare_kinds(
    vectors: Array, on_progress: Progress | None = None
) -> list[tuple[Measured, AnnIndex | None]]:
    """Measure every kind on vectors ``(n_chunks, d_model)``; only exact search below `FEWEST_CHUNKS`.

    ``on_progress`` is that of `choose_index`, for one kind after the other.
    """
    compared: list[tuple[Measured, AnnIndex | None]] = [(measure(vectors, None), None)]
    if len(vectors) >= FEWEST_CHUNKS:
        for kind in INDEX_KINDS:
            if kind != FLAT:
                ann, measured = tuned(vectors, kind, on_progress)
                compared.append((measured, ann))
    return compared


def by_size(vectors: Array) -> tuple[str, str]:
    """Return the kind that suits a number of vectors, and why."""
    n_chunks = counted(len(vectors), "chunk")
    if len(vectors) <= EXACT_CHUNKS:
        return FLAT, f"as reading {n_chunks} each time is fast (up to {EXACT_CHUNKS:,})"
    n_bytes = 4 * vectors.size
    if n_bytes <= HNSW_BYTES:
        return "hnsw", f"as {n_chunks} are over {EXACT_CHUNKS:,}, and their graph fits in memory"
    return "ivf-sq8", f"as {n_chunks} have {n_bytes / 1e9:.1f} GB of vectors, too many for a graph in memory"


def tuned(vectors: Array, kind: str, on_progress: Progress | None = None) -> tuple[AnnIndex, Measured]:
    """Build an index, with the least effort for a recall of `TRUSTED`, or else the most."""
    start = perf_counter()
    ann = build_ann(vectors, kind, EFFORTS[0], on_progress)
    build_s = perf_counter() - start
    ann, measured = with_least_effort(vectors, ann)
    return ann, replace(measured, build_s=build_s, n_bytes=ann.to_bytes().nbytes)


def with_least_effort(vectors: Array, ann: AnnIndex) -> tuple[AnnIndex, Measured]:
    """Set the least effort for a recall of `TRUSTED`, or else the most."""
    for effort in EFFORTS:
        ann = replace(ann, effort=effort)
        measured = measure(vectors, ann)
        if measured.recall >= TRUSTED:
            break
    return ann, measured


def share(recall: float) -> str:
    """``98.1 %``, rounded down: where something was lost it is not 100."""
    return f"{floor(1000 * recall + SAME_SCORE) / 10:g} %"


def n_sampled(vectors: Array) -> int:
    """How many chunks are searched for."""
    return min(SAMPLE, len(vectors))


def measure(vectors: Array, ann: AnnIndex | None, seed: int = 0) -> Measured:
    """Measure the recall of an index, or exact search (None), with a sample of the vectors as queries."""
    queries = np.random.default_rng(seed).permutation(len(vectors))[: n_sampled(vectors)]
    k = min(NEAREST, len(vectors) - 1)
    if not k:
        return Measured(FLAT, 0, 1.0, 0.0, 0.0, vectors.nbytes, 0.0)
    exact = without_self(queries, *exact_nearest(vectors, vectors[queries], k + 1))
    find = exact_nearest if ann is None else ann.nearest
    find(vectors, vectors[queries[:1]], k + 1)  # the first one is slower
    recalls, seconds, lost = [], [], []
    for query, (scores, rows) in zip(queries.tolist(), exact, strict=True):
        start = perf_counter()
        vector = vectors[query][None]
        result = find(vectors, vector, k + 1)
        seconds.append(perf_counter() - start)
        [(found_scores, found)] = without_self([query], *result)
        n_found = int((found_scores >= scores[-1] - SAME_SCORE).sum())
        recalls.append(n_found / k)
        if n_found < k:
            lost += [
                Lost(query, row, rank, score)
                for rank, (row, score) in enumerate(zip(rows.tolist(), scores.tolist(), strict=True), 1)
                if row not in found
            ]
    median, p99 = 1000 * np.quantile(seconds, [0.5, 0.99])
    kind, effort = (FLAT, 0) if ann is None else (ann.kind, ann.effort)
    recall = float(np.mean(recalls))
    return Measured(kind, effort, recall, float(median), float(p99), vectors.nbytes, 0.0, tuple(lost))


def without_self(queries: Sequence[int] | Array, scores: Array, rows: Array) -> list[tuple[Array, Array]]:
    """Return scores and rows of each query's hits ``(n_queries, k + 1)`` without itself: ``(k,)``."""
    result = []
    for query, own_scores, own_rows in zip(queries, scores, rows, strict=True):
        keep = np.flatnonzero(own_rows != query)[: rows.shape[1] - 1]
        result.append((own_scores[keep], own_rows[keep]))
    return result


def lost_passages(vectors: Array, ann: AnnIndex, question: Array) -> list[tuple[int, int, float]]:
    """Return those of a question's nearest that an index loses: rank from 1, row and cosine of each."""
    [scores], [rows] = exact_nearest(vectors, question[None], min(NEAREST, len(vectors)))
    found = set(ann.nearest(vectors, question[None], len(rows))[1][0].tolist())
    pairs = enumerate(zip(rows.tolist(), scores.tolist(), strict=True), 1)
    return [(rank, row, score) for rank, (row, score) in pairs if row not in found]
