"""Losses and their gradients: cross-entropy with label smoothing, and InfoNCE over in-batch negatives."""

import numpy as np

from engine.errors import InputError
from engine.layers.activation import log_softmax
from engine.layers.norm import l2_normalize, l2_normalize_backward
from engine.layers.tracing import Array


def cross_entropy(
    logits: Array, targets: Array, label_smoothing: float = 0.0, ignore: int | None = None
) -> tuple[float, Array]:
    """``-sum(q log softmax(logits))``, the mean over the targets that count.

    ``torch.nn.functional.cross_entropy``, its label smoothing and ``ignore_index`` included.

    Parameters
    ----------
    logits
        ``(..., n_classes)``.
    targets
        Class of each row, integers ``(...)``.
    label_smoothing
        The share of ``q`` that is spread over all classes, the right one among them (Szegedy et al.
        2016); the rest stands at the right one.
    ignore
        The target, such as the id of the padding, whose rows count for nothing; None where all count.

    Returns
    -------
    tuple of float and Array
        The loss in nats, and its gradient ``(softmax(logits) - q) / n`` of the shape of the logits, 0 in
        rows that do not count.

    Raises
    ------
    InputError
        If a target is no class, or no target counts.
    """
    n_classes = logits.shape[-1]
    rows, classes = _counted(targets.reshape(-1), n_classes, ignore)  # (n,), (n,)
    log_probs = log_softmax(logits.reshape(-1, n_classes)[rows])  # (n, n_classes)
    at_target = np.arange(len(rows)), classes
    losses = -(1 - label_smoothing) * log_probs[at_target]
    d_counted = np.exp(log_probs)
    d_counted[at_target] -= 1 - label_smoothing
    if label_smoothing:  # a logit of -inf is no loss where nothing is spread
        losses -= label_smoothing * log_probs.mean(axis=-1)
        d_counted -= label_smoothing / n_classes
    d_logits = np.zeros((targets.size, n_classes), logits.dtype)
    d_logits[rows] = d_counted / len(rows)
    return float(losses.mean()), d_logits.reshape(logits.shape)


def info_nce(queries: Array, keys: Array, scale: float = 20.0) -> tuple[float, Array, Array]:
    """Cross-entropy of telling each query's own key from all others by ``scale * cosine``.

    InfoNCE (van den Oord et al. 2018) as sentence-transformers' ``MultipleNegativesRankingLoss``
    computes it: ``queries[i]`` belongs to ``keys[i]``, and every other key is a negative.

    Parameters
    ----------
    queries
        ``(n, d)``, of any length: they are scaled to length 1 here, as the keys are.
    keys
        ``(n, d)``, or with hard negatives below them ``(n + n_hard, d)``.
    scale
        What the cosines are multiplied by: 1 / temperature.

    Returns
    -------
    tuple of float, Array and Array
        The loss in nats, and its gradients by the queries and keys as they were given.

    Raises
    ------
    InputError
        If there are fewer keys than queries.
    """
    if len(keys) < len(queries):
        raise InputError(
            f"{len(queries)} queries have only {len(keys)} keys: give each query its own key first"
        )
    unit_queries, unit_keys = l2_normalize(queries), l2_normalize(keys)
    scores = scale * (unit_queries @ unit_keys.T)  # (n, n + n_hard)
    loss, d_scores = cross_entropy(scores, np.arange(len(queries)))
    d_cosines = scale * d_scores
    d_queries = l2_normalize_backward(d_cosines @ unit_keys, queries)
    d_keys = l2_normalize_backward(d_cosines.T @ unit_queries, keys)
    return loss, d_queries, d_keys


def _counted(targets: Array, n_classes: int, ignore: int | None) -> tuple[Array, Array]:
    """Places of the targets that count, and those targets."""
    rows = np.arange(targets.size) if ignore is None else np.flatnonzero(targets != ignore)
    classes = targets[rows]
    if rows.size == 0:
        raise InputError(f"none of {targets.size} targets counts: give at least one that is not {ignore}")
    if classes.min() < 0 or classes.max() >= n_classes:
        wrong = classes[(classes < 0) | (classes >= n_classes)][0]
        raise InputError(
            f"target {wrong} is none of {n_classes} classes: use 0 to {n_classes - 1}, or `ignore`"
        )
    return rows, classes
