"""How a token's vector moves through the layers, and what it is near to on the way."""

from dataclasses import dataclass

import numpy as np

from engine.generation.decoder import Decoder
from engine.layers.activation import softmax
from engine.layers.norm import l2_normalize
from engine.layers.tracing import Array
from engine.models.decoders import final_norm


@dataclass(frozen=True)
class Nearest:
    """The best few rows of a vocabulary for each of some vectors, best first.

    ``ids`` and ``scores`` are ``(n_vectors, k)``: cosines or probabilities.
    """

    ids: Array
    scores: Array


def similarity(vectors: Array) -> Array:
    """Cosine of every pair: ``(n, d) -> (n, n)``."""
    unit = l2_normalize(vectors)
    return unit @ unit.T


def nearest_words(vectors: Array, token_table: Array, k: int) -> Nearest:
    """Return the rows of an embedding table that point most nearly the same way as each vector.

    Parameters
    ----------
    vectors
        ``(n_vectors, d_model)``.
    token_table
        ``(vocab_size, d_model)``.
    k
        How many of each.
    """
    return best(l2_normalize(vectors) @ l2_normalize(token_table).T, k)


def next_tokens(logits: Array, k: int) -> Nearest:
    """Return the most probable tokens: ``(n_vectors, vocab_size)`` logits."""
    return best(softmax(logits), k)


def logit_lens(states: Array, decoder: Decoder, k: int) -> Nearest:
    """Return what the decoder would say next if it stopped after each layer (nostalgebraist 2020).

    Every state goes through the final norm and the unembedding, as only the last one is meant to.

    Parameters
    ----------
    states
        One token's vector before the first and after every layer, ``(n_layers + 1, d_model)``.
    decoder
        The model.
    k
        How many tokens of each.
    """
    normed = final_norm(states, decoder.weights, decoder.config)
    return next_tokens(decoder.unembed(normed), k)


def best(scores: Array, k: int) -> Nearest:
    """Return the ``k`` largest of each row, best first."""
    some = np.argpartition(-scores, k - 1, axis=-1)[:, :k]
    values = np.take_along_axis(scores, some, axis=-1)
    order = np.argsort(-values, axis=-1, kind="stable")
    return Nearest(np.take_along_axis(some, order, axis=-1), np.take_along_axis(values, order, axis=-1))
