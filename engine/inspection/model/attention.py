"""Attention summarised: rollout, mean distance, and the share that goes to special tokens."""

from dataclasses import dataclass, field

import numpy as np

from engine.layers.tracing import Array


def attention_rollout(maps: Array) -> Array:
    """Follow attention through all layers (Abnar & Zuidema 2020).

    A layer mixes tokens half by the residual connection, half by the mean attention of its heads; the
    matrices of successive layers are multiplied.

    ``maps`` are attention weights averaged over heads, ``(n_layers, n_tokens, n_tokens)``. The result,
    ``(n_tokens, n_tokens)``, is the share of each token's last vector (row) that comes from each input token
    (column); rows sum to 1.
    """
    n_tokens = maps.shape[-1]
    rollout = np.eye(n_tokens, dtype=maps.dtype)
    for weights in maps:
        step = 0.5 * weights + 0.5 * np.eye(n_tokens, dtype=maps.dtype)
        rollout = step / step.sum(axis=-1, keepdims=True) @ rollout
    return rollout


def attention_distance(weights: Array) -> Array:
    """Mean distance in tokens between queries and the keys attended to: ``(..., query, key) -> (...)``."""
    n_query, n_key = weights.shape[-2:]
    distance = np.abs(np.arange(n_query)[:, None] - np.arange(n_key))  # (query, key)
    return (weights * distance).sum(axis=-1).mean(axis=-1)


def attention_share(weights: Array, keys: Array) -> Array:
    """Share of the attention that goes to some keys: ``(..., query, key), (key,) -> (...)``."""
    return weights[..., keys].sum(axis=-1).mean(axis=-1)


def without_tokens(weights: Array, left_out: Array) -> Array:
    """Remove tokens, boolean ``(n_tokens,)``, as queries and keys, and scale each row to sum to 1 again.

    ``(..., n_tokens, n_tokens) -> (..., n_kept, n_kept)``; a row that attended only to removed tokens becomes
    all 0.
    """
    kept = weights[..., ~left_out, :][..., ~left_out]
    total = kept.sum(axis=-1, keepdims=True)
    return kept / np.where(total > 0, total, 1)


@dataclass
class AttentionSummary:
    """A tracer that summarises each layer's attention during the pass, so that long texts fit in memory."""

    left_out: Array  # tokens to leave out as queries and keys, boolean ``(n_tokens,)``
    special: Array  # tokens whose share of the attention is counted, boolean ``(n_tokens,)``
    # a layer's mean over its heads with all tokens, ``(n_tokens, n_tokens)`` each
    maps: list[Array] = field(default_factory=list)
    # a layer's `attention_distance` and `attention_share` per head, ``(n_heads,)`` each; the share includes
    # the tokens that are left out
    distances: list[Array] = field(default_factory=list)
    shares: list[Array] = field(default_factory=list)

    def __call__(self, name: str, value: Array) -> Array:
        """Summarise attention weights; return every value unchanged."""
        if name.endswith("attention.weights"):
            self.maps.append(value.mean(axis=0))
            self.distances.append(attention_distance(without_tokens(value, self.left_out)))
            self.shares.append(attention_share(value, self.special))
        return value

    def rollout(self) -> Array:
        """Return the rollout over all layers without the tokens left out: ``(n_kept, n_kept)``."""
        return without_tokens(attention_rollout(np.stack(self.maps)), self.left_out)
