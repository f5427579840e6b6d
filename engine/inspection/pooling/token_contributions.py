"""The contribution of each token to the pooled vector of its text."""

import numpy as np

from ...layers.pooling import TokenStates
from ...layers.tracing import Array
from ...models.token_states import summed_vectors, token_weights


def pooling_shares(states: TokenStates, strategy: str, idf: Array | None = None) -> Array:
    """Share of each token in the pooled vector, ``(n_tokens,)``: its weight, or dimensions it won."""
    if strategy == "max":
        n_tokens, d_model = states.vectors.shape
        return np.bincount(states.vectors.argmax(axis=0), minlength=n_tokens) / d_model
    return token_weights(states, strategy, idf)


def token_contributions(states: TokenStates, strategy: str, idf: Array | None = None) -> Array:
    """The projection of each token's part on the pooled vector, normalised to sum to 1: ``(n_tokens,)``.

    The pooled vector is a sum of one part a token, ``v = sum_i p_i``, so ``p_i · v / |v|²`` sum to 1. A token
    that points away from the others contributes less than its share, or below 0.
    """
    parts = pooled_parts(states, strategy, idf)
    vector = parts.sum(axis=0)
    return parts @ vector / (vector @ vector)


def pooled_parts(states: TokenStates, strategy: str, idf: Array | None = None) -> Array:
    """Return the parts, one a token, whose sum is the pooled vector: float64 ``(n_tokens, d_model)``."""
    if strategy == "max":
        winners = states.vectors.argmax(axis=0)  # (d_model,)
        own = winners == np.arange(len(states.vectors))[:, None]  # (n_tokens, d_model)
        return np.where(own, states.vectors, 0.0).astype(np.float64)
    weights = token_weights(states, strategy, idf).astype(np.float64)
    return weights[:, None] * summed_vectors(states, strategy)


def document_frequency(idf: Array) -> tuple[Array, int]:
    """Return document frequencies, ``(vocab_size,)``, and the number of documents: the inverse of `idf`."""
    n_documents = round(float(np.exp(idf.max(), dtype=np.float64))) - 1
    return np.rint((1 + n_documents) / np.exp(idf.astype(np.float64)) - 1).astype(int), n_documents


def has_no_idf_weight(ids: Array, idf: Array) -> bool:
    """Whether all tokens of a text have IDF 0, so that IDF pooling falls back to the plain mean."""
    return not idf[ids].any()
