"""InfoNCE where a question may have several right chunks, and which chunks make hard negatives."""

import numpy as np

from engine.errors import InputError
from engine.layers.activation import log_softmax
from engine.layers.norm import l2_normalize, l2_normalize_backward
from engine.layers.tracing import Array

SCALE = 20.0  # what cosines are multiplied by, as in sentence-transformers' MultipleNegativesRankingLoss


def contrastive_loss(
    queries: Array, keys: Array, relevant: Array, scale: float = SCALE
) -> tuple[float, Array, Array]:
    """``-mean_q mean_p log softmax(scale cos(q, keys))_p`` over each query's relevant keys ``p``.

    It is the "out" variant of Khosla et al. 2020, equation 2; where each query has one relevant key it is
    `engine.training.losses.info_nce`.

    Parameters
    ----------
    queries
        ``(n_queries, d)``, of any length: they are scaled to length 1 here, as the keys are.
    keys
        ``(n_keys, d)``; those that are not relevant to a query are its negatives.
    relevant
        Bool ``(n_queries, n_keys)``, one or more a row.
    scale
        What the cosines are multiplied by: 1 / temperature.

    Returns
    -------
    tuple of float, Array and Array
        The loss in nats, and its gradients by the queries and keys as they were given.

    Raises
    ------
    InputError
        A query has no relevant key.
    """
    unit_queries, unit_keys = l2_normalize(queries), l2_normalize(keys)
    loss, d_scores = softmax_loss(scale * (unit_queries @ unit_keys.T), relevant)  # (n_queries, n_keys)
    d_cosines = scale * d_scores
    d_queries = l2_normalize_backward(d_cosines @ unit_keys, queries)
    d_keys = l2_normalize_backward(d_cosines.T @ unit_queries, keys)
    return loss, d_queries, d_keys


def softmax_loss(scores: Array, relevant: Array) -> tuple[float, Array]:
    """``-mean_q mean_p log softmax(scores_q)_p`` and its gradient by the scores, ``(n_queries, n_keys)``.

    Raises
    ------
    InputError
        A query has no relevant key.
    """
    n_relevant = relevant.sum(axis=1, keepdims=True)  # (n_queries, 1)
    if not n_relevant.all():
        raise InputError("a question has no relevant chunk: leave out the questions that nothing answers")
    log_probs = log_softmax(scores)
    targets = relevant / n_relevant.astype(scores.dtype)
    loss = -float(np.vdot(targets, log_probs)) / len(scores)
    d_scores = np.exp(log_probs)
    d_scores -= targets
    d_scores /= scores.dtype.type(len(scores))
    return loss, d_scores


def hard_negatives(rankings: list[Array], relevant: Array, depth: int) -> list[Array]:
    """Return for each question the chunks that score best though they are not relevant.

    Parameters
    ----------
    rankings
        Score matrices ``(n_questions, n_chunks)``, such as cosines and BM25; what scores 0 or less, or
        ``-inf``, in all of them is no hard negative.
    relevant
        Bool ``(n_questions, n_chunks)``.
    depth
        How many of each ranking are taken.

    Returns
    -------
    list of Array
        Numbers of chunks, ascending, for each question; none where all that score are relevant.
    """
    found = []
    for row, right in enumerate(relevant):
        best: set[int] = set()
        for scores in rankings:
            wrong = np.where(right, -np.inf, scores[row])
            first = np.argsort(-wrong, kind="stable")[:depth]
            best.update(first[wrong[first] > 0].tolist())
        found.append(np.array(sorted(best), np.int64))
    return found
