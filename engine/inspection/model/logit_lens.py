"""The residual stream through the layers: nearest tokens, and the next tokens that each layer predicts.

The latter is the logit lens (nostalgebraist 2020).
"""

from dataclasses import dataclass

import numpy as np

from ...generation.decoder import Decoder
from ...layers.activation import softmax
from ...layers.norm import l2_normalize
from ...layers.tracing import Array
from ...models.decoders import final_norm


@dataclass(frozen=True)
class TopTokens:
    """The ``k`` best tokens of a vocabulary for each vector, best first: ``(n_vectors, k)``."""

    ids: Array
    scores: Array  # cosines or probabilities


def pairwise_cosines(vectors: Array) -> Array:
    """Cosine of every pair: ``(n, d) -> (n, n)``."""
    unit = l2_normalize(vectors)
    return unit @ unit.T


def nearest_tokens(vectors: Array, token_table: Array, k: int) -> TopTokens:
    """Return the ``k`` rows of a table ``(vocab_size, d)`` with the highest cosine to ``(n, d)`` vectors."""
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


def logit_lens(states: Array, decoder: Decoder, k: int) -> TopTokens:
    """Pass the residual stream of each layer through the final norm and the unembedding.

    These are trained only for the last layer, so that early layers may say less than they know (Belrose et
    al. 2023). ``states`` are ``(n_layers + 1, d_model)``: one position before the first layer and after each.
    """
    return top_next_tokens(decoder.unembed(final_norm(states, decoder.weights, decoder.config)), k)
