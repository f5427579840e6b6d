"""Scaled dot-product attention (Vaswani et al. 2017, section 3.2.1) with grouped queries; its gradient."""

from typing import Protocol

import numpy as np

from .activation import softmax, softmax_backward
from .tracing import Array, Tracer, no_trace


class CachedKeys(Protocol):
    """A cache of keys and values, both ``(n_layers, n_kv_heads, capacity, d_head)``."""

    keys: Array
    values: Array

    def reserve(self, n_tokens: int) -> None:
        """Reserve memory for ``n_tokens`` in all."""

    def extend(self, layer: int, key: Array, value: Array) -> tuple[Array, Array]:
        """Append a layer's new keys and values; return all of that layer."""


def split_heads(x: Array, n_heads: int) -> Array:
    """``(..., n_tokens, n_heads * d_head) -> (..., n_heads, n_tokens, d_head)``, a view."""
    *batch, n_tokens, width = x.shape
    return x.reshape(*batch, n_tokens, n_heads, width // n_heads).swapaxes(-3, -2)


def merge_heads(x: Array) -> Array:
    """Undo `split_heads`: ``(..., n_heads, n_tokens, d_head) -> (..., n_tokens, n_heads * d_head)``."""
    *batch, n_heads, n_tokens, d_head = x.shape
    return x.swapaxes(-3, -2).reshape(*batch, n_tokens, n_heads * d_head)


def causal_mask(n_query: int, n_key: int, dtype: np.dtype) -> Array:
    """0 at keys up to the query's position, -inf at later ones: ``(n_query, n_key)``.

    The last query has the position of the last key, so with cached keys ``n_key > n_query``.
    """
    query_position = np.arange(n_key - n_query, n_key)[:, None]  # (n_query, 1)
    return np.where(np.arange(n_key) <= query_position, 0, -np.inf).astype(dtype)


def attention(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None = None,
    trace: Tracer = no_trace,
    scale: float | None = None,
) -> Array:
    """``softmax(scale Q K^T + mask) V`` for every head, of one text or of each of a batch.

    Parameters
    ----------
    query
        ``(..., n_heads, n_query, d_head)``.
    key, value
        ``(..., n_kv_heads, n_key, d_head)``. With fewer of them than query heads, each is shared by
        ``n_heads / n_kv_heads`` consecutive query heads (Ainslie et al. 2023).
    mask
        Added to the scores ``(..., n_heads, n_query, n_key)`` by broadcasting, or None. Every query must
        have a key that is not masked.
    trace
        Called with ``scores`` (before the mask), ``weights`` and ``context``.
    scale
        Factor of the scores; ``1 / sqrt(d_head)`` where it is None.

    Returns
    -------
    Array
        The context, ``(..., n_heads, n_query, d_head)``.
    """
    return trace("context", attention_context(attention_weights(query, key, mask, trace, scale), value))


WINDOW_BLOCK = 128  # queries of a text that `windowed_attention` computes at once


def window_mask(queries: Array, keys: Array, before: int, after: int, dtype: np.dtype) -> Array:
    """0 at keys at most ``before`` before and ``after`` behind a query, -inf at others.

    ``queries`` and ``keys`` are positions in the text: ``(n_query,)`` and ``(n_key,)`` to
    ``(n_query, n_key)``.
    """
    distance = keys - queries[:, None]
    return np.where((-before <= distance) & (distance <= after), 0, -np.inf).astype(dtype)


def windowed_attention(
    query: Array, key: Array, value: Array, before: int, after: int, trace: Tracer = no_trace
) -> Array:
    """`attention` of each token to those at most ``before`` before and ``after`` behind it, and to itself.

    Query ``(n_heads, n_tokens, d_head)``, key and value ``(n_kv_heads, n_tokens, d_head)``, to the shape of
    the query. A trace sees all scores; without one, blocks of queries are computed with only the keys
    around them. With ``after = 0`` and all tokens before, attention is causal.
    """
    n_tokens, places = query.shape[1], np.arange(query.shape[1])
    if trace is not no_trace:
        return attention(query, key, value, window_mask(places, places, before, after, query.dtype), trace)
    contexts = []
    for start in range(0, n_tokens, WINDOW_BLOCK):
        own = slice(start, min(start + WINDOW_BLOCK, n_tokens))
        seen = slice(max(start - before, 0), min(own.stop + after, n_tokens))
        mask = window_mask(places[own], places[seen], before, after, query.dtype)
        contexts.append(attention(query[:, own], key[:, seen], value[:, seen], mask))
    return np.concatenate(contexts, axis=1)


def attention_weights(
    query: Array, key: Array, mask: Array | None = None, trace: Tracer = no_trace, scale: float | None = None
) -> Array:
    """``softmax(scale Q K^T + mask)``, as in `attention`: ``(..., n_heads, n_query, n_key)``."""
    # (..., n_kv_heads, group * n_query, d_head), (..., d_head, n_key) -> (..., group * n_query, n_key)
    scores = _shared(query, key) @ key.swapaxes(-2, -1)
    scores = scores.reshape(*query.shape[:-1], key.shape[-2])
    scores *= query.dtype.type(1 / np.sqrt(query.shape[-1]) if scale is None else scale)
    scores = trace("scores", scores)
    return trace("weights", softmax(scores if mask is None else scores + mask))


def attention_context(weights: Array, value: Array) -> Array:
    """Mean of the values by each query's weights, as in `attention`: ``(..., n_heads, n_query, d_head)``."""
    context = _shared(weights, value) @ value  # (..., n_kv_heads, group * n_query, d_head)
    return context.reshape(*weights.shape[:-1], value.shape[-1])


def attention_backward(
    d_context: Array, query: Array, key: Array, value: Array, weights: Array
) -> tuple[Array, Array, Array]:
    """Gradients of `attention` from its inputs and weights: ``d_query, d_key, d_value``.

    ``d_context`` is ``(..., n_heads, n_query, d_head)``; ``weights`` are those of `attention_weights`,
    ``(..., n_heads, n_query, n_key)``, with 0 for masked keys, so the mask is not needed. Gradients of keys
    and values are summed over the query heads that share them.
    """
    d_shared = _shared(d_context, value)  # (..., n_kv_heads, group * n_query, d_head)
    d_value = _shared(weights, value).swapaxes(-2, -1) @ d_shared
    d_weights = (d_shared @ value.swapaxes(-2, -1)).reshape(weights.shape)
    d_scores = softmax_backward(d_weights, weights)
    d_scores *= query.dtype.type(1 / np.sqrt(query.shape[-1]))
    d_scores = _shared(d_scores, key)  # (..., n_kv_heads, group * n_query, n_key)
    d_query = (d_scores @ key).reshape(query.shape)
    d_key = d_scores.swapaxes(-2, -1) @ _shared(query, key)
    return d_query, d_key, d_value


def _shared(x: Array, key: Array) -> Array:
    """Stack the queries that share a key or value head, so that each head is read once.

    ``(..., n_heads, n_query, d) -> (..., n_kv_heads, n_heads / n_kv_heads * n_query, d)``.
    """
    *batch, n_heads, n_query, width = x.shape
    n_kv_heads = key.shape[-3]
    return x.reshape(*batch, n_kv_heads, n_heads // n_kv_heads * n_query, width)


def causal_attention(
    query: Array,
    key: Array,
    value: Array,
    cache: CachedKeys,
    layer: int,
    trace: Tracer = no_trace,
    window: int | None = None,
    scale: float | None = None,
) -> Array:
    """Append new tokens to a layer's cache, and attend from them to the tokens in it.

    Query ``(n_heads, n_new, d_head)``, key and value ``(n_kv_heads, n_new, d_head)``, to the context, of the
    shape of the query. A token sees the last ``window`` tokens, itself among them, or all where it is None;
    scores are multiplied by ``scale``, ``1 / sqrt(d_head)`` where it is None. Traces ``query``, ``key`` and
    ``value`` besides the names of `attention`.
    """
    key, value = (cached.astype(query.dtype, copy=False) for cached in cache.extend(layer, key, value))
    query, key, value = trace("query", query), trace("key", key), trace("value", value)
    n_new, n_key = query.shape[1], key.shape[1]
    mask = None
    if window is not None and window < n_key:
        mask = window_mask(np.arange(n_key - n_new, n_key), np.arange(n_key), window - 1, 0, query.dtype)
    elif n_new > 1:
        mask = causal_mask(n_new, n_key, query.dtype)
    return attention(query, key, value, mask, trace, scale)
