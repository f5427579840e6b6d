"""A token's residual stream through the layers: similarity, nearest tokens and the most probable ones."""

from dataclasses import dataclass

import numpy as np

from engine.layers.activation import softmax
from engine.layers.norm import l2_normalize
from engine.layers.tracing import Array


@dataclass(frozen=True)
class TopTokens:
    """The ``k`` best tokens of a vocabulary for each vector, best first.

    ``ids`` and ``scores`` are ``(n_vectors, k)``: cosines or probabilities.
    """

    ids: Array
    scores: Array


def pairwise_cosines(vectors: Array) -> Array:
    """Cosine of every pair: ``(n, d) -> (n, n)``."""
    unit = l2_normalize(vectors)
    return unit @ unit.T


def nearest_tokens(vectors: Array, token_table: Array, k: int) -> TopTokens:
    """Return the ``k`` rows of a table with the highest cosine to each vector.

    Vectors are ``(n_vectors, d_model)``, the table ``(vocab_size, d_model)``.
    """
    return top_k(l2_normalize(vectors) @ l2_normalize(token_table).T, k)


def top_next_tokens(logits: Array, k: int) -> TopTokens:
    """Return the most probable tokens: ``(n_vectors, vocab_size)`` logits."""
    return top_k(softmax(logits), k)


def top_k(scores: Array, k: int) -> TopTokens:
    """Return the ``k`` largest of each row, best first."""
    some = np.argpartition(-scores, k - 1, axis=-1)[:, :k]
    values = np.take_along_axis(scores, some, axis=-1)
    order = np.argsort(-values, axis=-1, kind="stable")
    return TopTokens(np.take_along_axis(some, order, axis=-1), np.take_along_axis(values, order, axis=-1))
