"""Scaled dot-product attention (Vaswani et al. 2017, section 3.2.1), with grouped queries."""

from typing import Protocol

import numpy as np

from engine.layers.activation import softmax
from engine.layers.tracing import Array, Tracer, no_trace


class CachedKeys(Protocol):
    """What attention has to know of a cache; its arrays are ``(n_layers, n_kv_heads, capacity, d_head)``."""

    keys: Array
    values: Array

    def reserve(self, n_tokens: int) -> None:
        """Make room for ``n_tokens`` in all."""

    def extend(self, layer: int, key: Array, value: Array) -> tuple[Array, Array]:
        """Take in a layer's new keys and values; return all of that layer's."""


def split_heads(x: Array, n_heads: int) -> Array:
    """``(n_tokens, n_heads * d_head) -> (n_heads, n_tokens, d_head)``."""
    n_tokens, width = x.shape
    return x.reshape(n_tokens, n_heads, width // n_heads).swapaxes(0, 1)


def merge_heads(x: Array) -> Array:
    """``(n_heads, n_tokens, d_head) -> (n_tokens, n_heads * d_head)``."""
    n_heads, n_tokens, d_head = x.shape
    return x.swapaxes(0, 1).reshape(n_tokens, n_heads * d_head)


def causal_mask(n_query: int, n_key: int, dtype: np.dtype) -> Array:
    """0 where a query may look, -inf at keys that come after it: ``(n_query, n_key)``.

    The last query stands at the last key, so with cached keys ``n_key > n_query``.
    """
    query_position = np.arange(n_key - n_query, n_key)[:, None]  # (n_query, 1)
    return np.where(np.arange(n_key) <= query_position, 0, -np.inf).astype(dtype)


def attention(
    query: Array, key: Array, value: Array, mask: Array | None = None, trace: Tracer = no_trace
) -> Array:
    """``softmax(Q K^T / sqrt(d_head) + mask) V`` for every head.

    Parameters
    ----------
    query
        ``(n_heads, n_query, d_head)``.
    key, value
        ``(n_kv_heads, n_key, d_head)``. With fewer of them than query heads, each is shared by
        ``n_heads / n_kv_heads`` consecutive query heads (Ainslie et al. 2023).
    mask
        ``(n_query, n_key)``, added to the scores, or None.
    trace
        Told ``scores`` (before the mask), ``weights`` and ``context``.

    Returns
    -------
    Array
        The context, ``(n_heads, n_query, d_head)``.
    """
    n_heads, n_query, d_head = query.shape
    n_kv_heads, n_key, _ = key.shape
    weights = attention_weights(query, key, mask, trace)
    # The queries that share a value head stand one below the other, so each is read once.
    shared = (n_kv_heads, n_heads // n_kv_heads * n_query)
    context = weights.reshape(*shared, n_key) @ value  # (n_kv_heads, group * n_query, d_head)
    return trace("context", context.reshape(n_heads, n_query, d_head))


def attention_weights(query: Array, key: Array, mask: Array | None = None, trace: Tracer = no_trace) -> Array:
    """``softmax(Q K^T / sqrt(d_head) + mask)``, as in `attention`: ``(n_heads, n_query, n_key)``."""
    n_heads, n_query, d_head = query.shape
    n_kv_heads, n_key, _ = key.shape
    shared = (n_kv_heads, n_heads // n_kv_heads * n_query)  # as for the values
    scores = query.reshape(*shared, d_head) @ key.swapaxes(1, 2)  # (n_kv_heads, group * n_query, n_key)
    scores = scores.reshape(n_heads, n_query, n_key)
    scores *= query.dtype.type(1 / np.sqrt(d_head))
    scores = trace("scores", scores)
    return trace("weights", softmax(scores if mask is None else scores + mask))


def causal_attention(
    query: Array, key: Array, value: Array, cache: CachedKeys, layer: int, trace: Tracer = no_trace
) -> Array:
    """Attention of new tokens to those in a layer's cache and to themselves, which the cache takes in.

    ``(n_heads, n_new, d_head)``, and twice ``(n_kv_heads, n_new, d_head)``, to the context, of the shape of
    ``query``. The tracer is told ``query``, ``key`` and ``value`` besides what `attention` tells.
    """
    key, value = (cached.astype(query.dtype, copy=False) for cached in cache.extend(layer, key, value))
    query, key, value = trace("query", query), trace("key", key), trace("value", value)
    n_new, n_key = query.shape[1], key.shape[1]
    mask = causal_mask(n_new, n_key, query.dtype) if n_new > 1 else None
    return attention(query, key, value, mask, trace)
