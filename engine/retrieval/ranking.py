"""Scores to ranks and back. Of equal scores the first chunk comes first; ``-inf`` is a chunk not found."""

import numpy as np

from engine.errors import InputError
from engine.layers.tracing import Array


def best_first(scores: Array) -> Array:
    """Places of the chunks by falling score: ``(n_questions, n_chunks)`` for scores of that shape."""
    return np.argsort(-scores, axis=1, kind="stable")


def ranks(scores: Array) -> Array:
    """Rank of each chunk, 1 for the best: one more than those that score higher, so equals share a rank."""
    ordered = np.sort(-scores, axis=1)  # (n_questions, n_chunks)
    higher = [np.searchsorted(row, -own) for row, own in zip(ordered, scores, strict=True)]
    return 1 + np.array(higher, int).reshape(scores.shape)


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
