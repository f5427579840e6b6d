"""What each token gives to the pooled vector of its text."""

import numpy as np

from engine.layers.tracing import Array
from engine.models.token_states import TokenStates, summed_vectors, token_shares


def shares(states: TokenStates, strategy: str, idf: Array | None = None) -> Array:
    """Share of each token in the pooled vector: ``(n_tokens,)``.

    Of a sum its factor in it, of ``max`` the share of dimensions in which no token has a larger value.

    Raises
    ------
    InputError
        The strategy is ``pooler``, which looks at [CLS] alone and sums nothing.
    """
    if strategy == "max":
        n_tokens, d_model = states.vectors.shape
        return np.bincount(states.vectors.argmax(axis=0), minlength=n_tokens) / d_model
    return token_shares(states, strategy, idf)


def contributions(states: TokenStates, strategy: str, idf: Array | None = None) -> Array:
    """What each token adds to the pooled vector along its direction, in all 1: ``(n_tokens,)``.

    The pooled vector is a sum of one part a token, ``v = sum_i p_i``, so ``p_i · v / |v|²`` sum to 1: a token
    that pulls away from the others counts less than its share, or below 0. Errors are those of `shares`.
    """
    parts = pooled_parts(states, strategy, idf)
    vector = parts.sum(axis=0)
    return parts @ vector / (vector @ vector)


def pooled_parts(states: TokenStates, strategy: str, idf: Array | None = None) -> Array:
    """Return the parts, one a token, whose sum is the pooled vector: ``(n_tokens, d_model)``.

    Of ``max`` a token's part holds the dimensions in which it has the largest value, and zeros.
    """
    if strategy == "max":
        winners = states.vectors.argmax(axis=0)  # (d_model,)
        own = winners == np.arange(len(states.vectors))[:, None]  # (n_tokens, d_model)
        return np.where(own, states.vectors, 0)
    return token_shares(states, strategy, idf)[:, None] * summed_vectors(states, strategy)


def document_frequency(idf: Array) -> tuple[Array, int]:
    """Return in how many texts each token is, ``(vocab_size,)``, and how many texts there are, from the IDF.

    The inverse of `engine.layers.pooling.idf`, exact as long as some token of the vocabulary is in no text.
    """
    n_documents = round(float(np.exp(idf.max(), dtype=np.float64))) - 1
    return np.rint((1 + n_documents) / np.exp(idf.astype(np.float64)) - 1).astype(int), n_documents


def weighs_nothing(ids: Array, idf: Array) -> bool:
    """Whether no token of a text has a weight, so that IDF pooling takes the plain mean instead."""
    return not idf[ids].any()
