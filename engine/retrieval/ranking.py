"""Scores to ranks and back. Of equal scores the first chunk comes first; ``-inf`` is a chunk not found."""

import numpy as np

from engine.errors import InputError
from engine.layers.tracing import Array


def best_first(scores: Array) -> Array:
    """Places of the chunks by falling score: ``(n_questions, n_chunks)`` for scores of that shape."""
    return np.argsort(-scores, axis=1, kind="stable")


def ranks(scores: Array, others: Array | None = None) -> Array:
    """Rank of each score, 1 for the best: one more than those that are higher, so equals share a rank.

    Parameters
    ----------
    scores
        Of any shape ``(..., n_chunks)``. NaN is behind all others.
    others
        Scores ``(n_others,)`` to rank each of ``scores`` among; None for those of its own row.

    Returns
    -------
    Array
        int64, of the shape of ``scores``.
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


def ordered_scores(order: Array, scores: Array) -> Array:
    """Scores that put the chunks of each question into an order: minus the place in it, from -1 down.

    Parameters
    ----------
    order
        All chunks, best first ``(n_questions, n_chunks)``.
    scores
        The scores before ``(n_questions, n_chunks)``: what was not found by them still is not.

    Returns
    -------
    Array
        float32 ``(n_questions, n_chunks)``.
    """
    places = -np.arange(1, scores.shape[1] + 1, dtype=np.float32)  # (n_chunks,)
    result = np.empty(scores.shape, np.float32)
    np.put_along_axis(result, order, np.broadcast_to(places, scores.shape), axis=1)
    return np.where(np.isneginf(scores), scores, result).astype(np.float32)


def candidates(order: Array, scores: Array, depth: int) -> Array:
    """Return the first ``depth`` chunks of one question's order ``(n_chunks,)`` that were found at all."""
    return order[:depth][~np.isneginf(scores[order[:depth]])]


def check_depth(depth: int) -> None:
    """Raise `InputError` where not even one chunk is to be ordered anew."""
    if depth < 1:
        raise InputError(f"the depth is {depth}: order 1 chunk or more")
