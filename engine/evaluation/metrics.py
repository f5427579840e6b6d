"""How well scores rank what is relevant, question by question.

Every function takes ``scores`` and ``relevant``, both ``(n_questions, n_chunks)``, and returns a value a
question, ``(n_questions,)``; their mean is the metric. Relevance is binary. A question without anything
relevant counts as 0. Of equal scores the first comes first, as in a stable sort; a chunk that scores
``-inf`` or NaN was not found. Each raises `InputError` for a ``k`` below 1; one beyond the chunks there are
takes them all.
"""

import numpy as np

from engine.errors import InputError
from engine.layers.tracing import Array


def ranked(scores: Array, relevant: Array, k: int | None = None) -> Array:
    """Relevance of the ``k`` best chunks in the order of their scores: ``(n_questions, k)``."""
    check_places(k)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(relevant & (scores > -np.inf), order, axis=1)


def reciprocal_rank(scores: Array, relevant: Array, k: int | None = None) -> Array:
    """1 over the rank of the first relevant chunk, 0 where none is among the first ``k``.

    Nothing is sorted for it: what comes before that chunk is counted, better ones and equals further left.
    """
    check_places(k)
    if not scores.shape[1]:
        return np.zeros(len(scores))
    own = np.where(relevant & (scores > -np.inf), scores, -np.inf)
    column = own.argmax(axis=1)[:, None]  # (n_questions, 1), of the first relevant chunk
    score = np.take_along_axis(own, column, axis=1)
    is_before = (scores > score) | ((scores == score) & (np.arange(scores.shape[1]) < column))
    rank = 1 + is_before.sum(axis=1)
    is_found = (score[:, 0] > -np.inf) & (rank <= (scores.shape[1] if k is None else k))
    return np.where(is_found, 1 / rank, 0.0)


def hit_rate(scores: Array, relevant: Array, k: int) -> Array:
    """1 where a relevant chunk is among the first ``k``, else 0."""
    return ranked(scores, relevant, k).any(axis=1).astype(float)


def precision(scores: Array, relevant: Array, k: int) -> Array:
    """Share of the first ``k`` places that a relevant chunk holds; places that nobody holds count too."""
    return ranked(scores, relevant, k).sum(axis=1) / k


def recall(scores: Array, relevant: Array, k: int) -> Array:
    """Share of the relevant chunks that is among the first ``k``."""
    return ranked(scores, relevant, k).sum(axis=1) / np.maximum(relevant.sum(axis=1), 1)


def ndcg(scores: Array, relevant: Array, k: int) -> Array:
    """Discounted gain of the first ``k`` over the best there could be (Järvelin and Kekäläinen 2002)."""
    found = ranked(scores, relevant, k)
    discounts = 1 / np.log2(np.arange(2, found.shape[1] + 2))  # (k,)
    ideal = np.cumsum([0, *discounts])[np.minimum(relevant.sum(axis=1), len(discounts))]  # (n_questions,)
    return found @ discounts / np.where(ideal > 0, ideal, 1)


def check_places(k: int | None) -> None:
    """Raise `InputError` where not even one place is judged."""
    if k is not None and k < 1:
        raise InputError(f"k is {k}: judge 1 place or more")
