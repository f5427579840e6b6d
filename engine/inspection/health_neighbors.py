"""Which chunks are near to which, in blocks, so that memory stays bounded for any number of chunks."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from engine.layers.tracing import Array
from engine.weights.fetch import Progress

BLOCK_SCORES = 4_000_000  # scores held at once: 16 MB
ROUNDING = 1e-6  # of a cosine in float32: what differs by less is tied


@dataclass(frozen=True)
class Neighborhood:
    """What one pass over all pairs of chunks finds.

    Attributes
    ----------
    leader
        For each chunk, the earlier chunk that it nearly repeats, else itself, ``(n,)``. Leaders repeat
        nobody: no two of them are nearer than the threshold.
    likeness
        Its cosine with its leader, ``(n,)``; 1 for a leader.
    occurrence
        How often it is among the ``k`` nearest of another chunk, ``(n,)``; see `shared_places`.
    """

    leader: Array
    likeness: Array
    occurrence: Array


def neighborhood(
    vectors: Array, threshold: float, k: int, on_progress: Progress | None = None
) -> Neighborhood:
    """Compare every chunk with every other.

    Parameters
    ----------
    vectors
        ``(n, d_model)``, rows of length 1.
    threshold
        The cosine above which a chunk nearly repeats another.
    k
        Length of the lists of neighbours; of all others where there are fewer.
    on_progress
        Called with chunks done and chunks in all.
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
        scores[own, first + own] = -np.inf  # nobody is a neighbour of its own
        occurrence += shared_places(scores, min(k, n - 1))
        if on_progress is not None:
            on_progress(first + len(scores), n)
    return Neighborhood(leader, np.minimum(likeness, 1), occurrence)


def question_occurrence(vectors: Array, questions: Array, k: int) -> Array:
    """How often each chunk is among the ``k`` nearest of a question: ``(n_questions, d_model) -> (n,)``."""
    occurrence = np.zeros(len(vectors))
    for _, scores in blocks(questions, vectors):
        occurrence += shared_places(scores, min(k, len(vectors)))
    return occurrence


def blocks(queries: Array, vectors: Array) -> Iterator[tuple[int, Array]]:
    """Yield cosines ``(n_block, n)`` of some queries at a time, each with the first query's row."""
    step = max(BLOCK_SCORES // len(vectors), 1)
    for first in range(0, len(queries), step):
        yield first, queries[first : first + step] @ vectors.T


def shared_places(scores: Array, k: int) -> Array:
    """Count the lists of the ``k`` best, one a row, that each column is in: ``(n_rows, n) -> (n,)``.

    Columns tied for the last places of a list share them: 3 tied for 1 place count a third each. So
    no order of the chunks decides, and every row gives away exactly ``k``.
    """
    if k == 0:
        return np.zeros(scores.shape[1])
    last = np.partition(scores, -k, axis=1)[:, -k, None]  # the k-th best of each row
    above = scores > last + ROUNDING
    tied = np.abs(scores - last) <= ROUNDING
    left = k - above.sum(axis=1, keepdims=True)  # places for those tied
    return above.sum(axis=0) + (tied * (left / tied.sum(axis=1, keepdims=True))).sum(axis=0)


def skewness(counts: Array) -> float:
    """Return how lopsided counts are, ``E[(N - mean)^3] / std^3``; 0 where all are alike."""
    centred = counts - counts.mean()
    spread = centred.std()
    return float((centred**3).mean() / spread**3) if spread > ROUNDING else 0.0
