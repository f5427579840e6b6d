"""From the vectors of a text's tokens to one vector of the text.

Most strategies are a sum over tokens, ``shares @ token_vectors``: they differ in the share of each token,
and in the layers whose vectors are summed. The names are those of sentence-transformers' Pooling where it
has the strategy.
"""

import numpy as np

from engine.layers.linear import Linear, linear
from engine.layers.tracing import Array

POOLINGS = (
    "mean",
    "cls",
    "pooler",
    "max",
    "mean_sqrt_len_tokens",
    "weightedmean",
    "lasttoken",
    "idf",
    "attention",
    "last4",
    "first_last",
)
OF_LAYERS = ("last4", "first_last")  # plain means over tokens, of several layers' vectors


def pool(token_vectors: Array, shares: Array) -> Array:
    """``sum_i share_i x_i``: ``(n_tokens, d_model), (n_tokens,) -> (d_model,)``."""
    return shares @ token_vectors


def mean_pooling(token_vectors: Array) -> Array:
    """Average over all tokens: ``(n_tokens, d_model) -> (d_model,)``."""
    return pool(token_vectors, mean_shares(np.ones(len(token_vectors), token_vectors.dtype)))


def max_pooling(token_vectors: Array, mask: Array) -> Array:
    """Largest value of each dimension: ``(n_tokens, d_model), (n_tokens,) -> (d_model,)``."""
    return np.where(mask[:, None] > 0, token_vectors, -np.inf).max(axis=0).astype(token_vectors.dtype)


def pooler_pooling(token_vectors: Array, dense: Linear) -> Array:
    """BERT's pooler (Devlin et al. 2019): ``tanh(W x_CLS + b)``, ``(n_tokens, d_model) -> (d_model,)``."""
    return np.tanh(linear(token_vectors[0], *dense))


def mean_shares(mask: Array) -> Array:
    """``1 / n`` for each of the ``n`` tokens that the mask keeps: ``(n_tokens,)``."""
    return mask / mask.sum()


def sqrt_shares(mask: Array) -> Array:
    """``1 / sqrt(n)``: a sum that grows with the text, though not as fast: ``(n_tokens,)``."""
    return mask / np.sqrt(mask.sum())


def first_share(mask: Array) -> Array:
    """All to the first token that the mask keeps, [CLS]: ``(n_tokens,)``."""
    return np.eye(1, len(mask), int(np.argmax(mask > 0)), dtype=mask.dtype)[0]


def last_share(mask: Array) -> Array:
    """All to the last token that the mask keeps, [SEP]: ``(n_tokens,)``."""
    return np.eye(1, len(mask), int(np.flatnonzero(mask)[-1]), dtype=mask.dtype)[0]


def position_shares(mask: Array) -> Array:
    """As 1, 2, 3 …, for causal models, whose later tokens have read more (SGPT): ``(n_tokens,)``."""
    return weighted_shares(mask, np.arange(1, len(mask) + 1, dtype=mask.dtype))


def weighted_shares(mask: Array, weights: Array) -> Array:
    """As the weights, which are 0 or more; equal where all are 0: ``(n_tokens,)`` twice to the same."""
    kept = mask * weights
    total = kept.sum()
    return kept / total if total > 0 else mean_shares(mask)


def mean_of_layers(layers: Array, strategy: str) -> Array:
    """Average a token's vectors over layers: ``(n_layers, n_tokens, d_model) -> (n_tokens, d_model)``.

    ``last4`` takes the last four layers (of a smaller model, all); ``first_last`` the first and the last
    (SimCSE's "avg_first_last", Gao et al. 2021).
    """
    return (layers[-4:] if strategy == "last4" else layers[[0, -1]]).mean(axis=0)


def attention_received(weights: Array) -> Array:
    """Mean attention that heads and queries give a token: ``(n_heads, n_query, n_key) -> (n_key,)``."""
    return weights.mean(axis=(0, 1))


def idf(document_frequency: Array, n_documents: int) -> Array:
    """``ln((1 + N) / (1 + df))``, 0 for a token that every text has, as [CLS]: ``(vocab_size,)``.

    Smoothed as in scikit-learn's TfidfTransformer, without the 1 that it adds.
    """
    return np.log((1 + n_documents) / (1 + document_frequency))
