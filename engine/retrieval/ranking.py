"""Scores to ranks and back; the score ``-inf`` is a chunk that was not found.

Equal scores have one of two kinds of ranks, as in scipy's ``rankdata``: the least of theirs (`min_ranks`), or
one each, in the order of the chunks (`ordinal_ranks`, as in `best_first`).
"""

from collections.abc import Iterator

import numpy as np

from ..layers.tracing import Array

AT_ONCE = 256  # questions
SAMPLED = 64  # one in so many scores tells about where the best of them begin
LEAST = np.finfo(np.float32).min  # of a score that is not ``-inf``


def blocks(n_questions: int, at_once: int = AT_ONCE) -> Iterator[slice]:
    """Yield blocks of questions, whose scores are compared at once: all of many would fill the memory."""
    return (slice(start, start + at_once) for start in range(0, n_questions, at_once))


def best_first(scores: Array) -> Array:
    """Places of the chunks by falling score: ``(n_questions, n_chunks)`` for scores of that shape."""
    return np.argsort(-scores, axis=1, kind="stable")


def top(scores: Array, k: int) -> Array:
    """Return the first ``k`` of `best_first` that were found, of one question's scores ``(n_chunks,)``."""
    least, n_best = LEAST, 2 * k // SAMPLED
    if 0 < n_best < len(sample := scores[::SAMPLED]):  # most scores are compared with one number only
        expected = np.partition(sample, -n_best)[-n_best]
        least = max(least, expected) if np.count_nonzero(scores >= expected) >= k else least
    places = np.flatnonzero(scores >= least)
    if 0 < k < len(places):
        found = scores[places]
        places = places[found >= np.partition(found, -k)[-k]]  # those equal to the last one, too
    return places[np.argsort(-scores[places], kind="stable")][:k]


def min_ranks(scores: Array, others: Array | None = None) -> Array:
    """Rank of each score, 1 for the highest: 1 plus the number of higher ones, so equal scores share a rank.

    ``(..., n_chunks)`` to int64 of that shape; NaN ranks after all others. Each is ranked among ``others``
    ``(n_others,)``, or else those of its own row.
    """
    if others is not None:
        return 1 + np.searchsorted(np.sort(-others), -scores)
    result, places = np.empty(scores.shape, np.int64), np.arange(1, scores.shape[-1] + 1)
    for row in np.ndindex(scores.shape[:-1]):
        order = np.argsort(-scores[row])
        ordered = scores[row][order]  # (n_chunks,), falling
        is_equal = (ordered[1:] == ordered[:-1]) | np.isnan(ordered[:-1])  # to the one before
        firsts = places.copy()
        firsts[1:][is_equal] = 0
        result[row][order] = np.maximum.accumulate(firsts)
    return result


def ordinal_ranks(scores: Array) -> Array:
    """Rank of each score, 1 for the highest; equal ones in the order of the chunks: ``(n,) -> (n,)``."""
    result = np.empty(len(scores), int)
    result[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return result


def ordered_scores(order: Array, scores: Array) -> Array:
    """Scores for a given order of the chunks of each question: minus the place in it, from -1 down.

    ``(n_questions, n_chunks)`` twice, all chunks best first and the scores before, to float32 of that shape,
    which is ``-inf`` where the scores are.
    """
    places = -np.arange(1, scores.shape[1] + 1, dtype=np.float32)  # (n_chunks,)
    result = np.empty(scores.shape, np.float32)
    np.put_along_axis(result, order, np.broadcast_to(places, scores.shape), axis=1)
    return np.where(np.isneginf(scores), scores, result).astype(np.float32)
