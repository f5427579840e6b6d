"""Losses and their gradients: cross-entropy, and InfoNCE over in-batch negatives."""

import numpy as np

from ..errors import InputError
from ..layers.activation import log_softmax
from ..layers.norm import l2_normalize, l2_normalize_backward
from ..layers.tracing import Array

SCALE = 20.0  # factor of the cosines, as in sentence-transformers' MultipleNegativesRankingLoss


def cross_entropy(logits: Array, targets: Array) -> tuple[float, Array]:
    """``-log softmax(logits)`` at the targets, the mean over all: ``torch.nn.functional.cross_entropy``.

    Logits are ``(..., n_classes)``, targets ``(...)``. Returns the loss in nats and its gradient.
    """
    n_classes, classes = logits.shape[-1], targets.reshape(-1)
    if classes.min() < 0 or classes.max() >= n_classes:
        wrong = classes[(classes < 0) | (classes >= n_classes)][0]
        raise InputError(f"target {wrong} is none of {n_classes} classes: use 0 to {n_classes - 1}")
    log_probs = log_softmax(logits.reshape(-1, n_classes))  # (n, n_classes)
    at_target = np.arange(len(classes)), classes
    d_logits = np.exp(log_probs)
    d_logits[at_target] -= 1
    d_logits /= len(classes)
    return -float(log_probs[at_target].mean()), d_logits.reshape(logits.shape)


def info_nce(
    queries: Array, keys: Array, relevant: Array, scale: float = SCALE
) -> tuple[float, Array, Array]:
    """``-mean_q mean_p log softmax(scale cos(q, keys))_p`` over each query's relevant keys ``p``.

    InfoNCE (van den Oord et al. 2018) as sentence-transformers' ``MultipleNegativesRankingLoss`` computes
    it; with several relevant keys, the "out" variant of Khosla et al. 2020, equation 2.

    Queries are ``(n_queries, d)``, keys ``(n_keys, d)``, both of any length: they are normalised here.
    ``relevant`` is bool ``(n_queries, n_keys)``, one or more a row; the other keys are a query's negatives.
    ``scale`` is 1 / temperature. Returns the loss in nats, and its gradients by queries and keys.
    """
    n_relevant = relevant.sum(axis=1, keepdims=True)  # (n_queries, 1)
    if not n_relevant.all():
        raise InputError("a question has no relevant chunk: leave out the questions that nothing answers")
    unit_queries, unit_keys = l2_normalize(queries), l2_normalize(keys)
    log_probs = log_softmax(scale * (unit_queries @ unit_keys.T))  # (n_queries, n_keys)
    targets = relevant / n_relevant.astype(log_probs.dtype)
    loss = -float(np.vdot(targets, log_probs)) / len(queries)
    d_cosines = scale * ((np.exp(log_probs) - targets) / log_probs.dtype.type(len(queries)))
    d_queries = l2_normalize_backward(d_cosines @ unit_keys, queries)
    d_keys = l2_normalize_backward(d_cosines.T @ unit_queries, keys)
    return loss, d_queries, d_keys
