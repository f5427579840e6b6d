"""Nearest neighbours among chunks, in blocks, so that memory stays bounded for any number of chunks."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...layers.tracing import Array
from ...weights.fetch import Progress

BLOCK_SCORES = 4_000_000  # scores in memory at once: 16 MB
ROUNDING = 1e-6  # of a cosine in float32: scores that differ by less are tied


@dataclass(frozen=True)
class Neighborhood:
    """The results of one pass over all pairs of chunks."""

    # for each chunk, the earlier chunk that it nearly repeats, else itself, ``(n,)``. No two leaders are
    # nearer than the threshold.
    leader: Array
    likeness: Array  # its cosine with its leader, ``(n,)``; 1 for a leader
    occurrence: Array  # number of chunks that have it among their ``k`` nearest, ``(n,)``; see `k_occurrence`


def neighborhood(
    vectors: Array, threshold: float, k: int, on_progress: Progress | None = None
) -> Neighborhood:
    """Compare every chunk with every other, by vectors ``(n, d_model)`` of length 1.

    Above the cosine ``threshold`` a chunk nearly repeats another; ``k`` is the number of neighbours of each.
    """
    n = len(vectors)
    leader, likeness = np.arange(n), np.ones(n)
    occurrence = np.zeros(n)
    for first, scores in blocks(vectors, vectors):
        own = np.arange(len(scores))
        for row in np.flatnonzero((np.tril(scores, first - 1) > threshold).any(axis=1)):
            earlier = np.flatnonzero(scores[row, : first + row] > threshold)
            leaders = earlier[leader[earlier] == earlier]
            if len(leaders):
                best = leaders[scores[row, leaders].argmax()]
                leader[first + row], likeness[first + row] = best, scores[row, best]
        scores[own, first + own] = -np.inf  # a chunk is not its own neighbour
        occurrence += k_occurrence(scores, min(k, n - 1))
        if on_progress is not None:
            on_progress(first + len(scores), n)
    return Neighborhood(leader, np.minimum(likeness, 1), occurrence)


def question_occurrence(vectors: Array, questions: Array, k: int) -> Array:
    """How often each chunk is among the ``k`` nearest of a question: ``(n_questions, d_model) -> (n,)``."""
    occurrence = np.zeros(len(vectors))
    for _, scores in blocks(questions, vectors):
        occurrence += k_occurrence(scores, min(k, len(vectors)))
    return occurrence


def blocks(queries: Array, vectors: Array) -> Iterator[tuple[int, Array]]:
    """Yield cosines ``(n_block, n)`` of a block of queries at a time, with the row of its first query."""
    step = max(BLOCK_SCORES // len(vectors), 1)
    for first in range(0, len(queries), step):
        yield first, queries[first : first + step] @ vectors.T


def k_occurrence(scores: Array, k: int) -> Array:
    """Count the rows that have each column among their ``k`` best: ``(n_rows, n) -> (n,)``.

    Columns tied for the last places share them: 3 tied for 1 place count a third each. So the order of the
    chunks does not matter, and every row adds exactly ``k``.
    """
    if k == 0:
        return np.zeros(scores.shape[1])
    last = np.partition(scores, -k, axis=1)[:, -k, None]  # the k-th best of each row
    above = scores > last + ROUNDING
    tied = np.abs(scores - last) <= ROUNDING
    left = k - above.sum(axis=1, keepdims=True)  # places left for the tied
    return above.sum(axis=0) + (tied * (left / tied.sum(axis=1, keepdims=True))).sum(axis=0)


def skewness(counts: Array) -> float:
    """Return the skewness of counts, ``E[(N - mean)^3] / std^3``; 0 where all are equal."""
    centred = counts - counts.mean()
    spread = centred.std()
    return float((centred**3).mean() / spread**3) if spread > ROUNDING else 0.0
