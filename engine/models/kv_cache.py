"""KV cache: keys and values of earlier tokens, so that a decoder computes them once."""

from typing import Protocol

import numpy as np

from ..errors import ContextLengthError, InputError
from ..layers.tracing import Array


class CacheSizes(Protocol):
    """The sizes of a decoder that its cache needs."""

    @property
    def n_layers(self) -> int: ...  # noqa: D102
    @property
    def n_kv_heads(self) -> int: ...  # noqa: D102
    @property
    def d_head(self) -> int: ...  # noqa: D102


class OwnKeyHeads:
    """Heads that share the dimensions of a model evenly, each with keys and values of its own."""

    d_model: int
    n_heads: int

    @property
    def n_kv_heads(self) -> int:
        """Heads of keys and values: one for every query head."""
        return self.n_heads

    @property
    def d_head(self) -> int:
        """Dimensions of a head."""
        return self.d_model // self.n_heads


class KVCache:
    """Keys and values of the tokens read so far, in arrays that double when they are full.

    Memory is allocated for ``capacity`` tokens at first, and for ``limit`` at most, by default as many.
    """

    def __init__(
        self, config: CacheSizes, capacity: int, limit: int | None = None, dtype: type = np.float32
    ) -> None:
        shape = (config.n_layers, config.n_kv_heads, capacity, config.d_head)
        self.keys: Array = np.empty(shape, dtype)  # ``length`` positions are filled
        self.values: Array = np.empty(shape, dtype)
        self.length = 0
        self.limit = capacity if limit is None else limit

    @property
    def capacity(self) -> int:
        """Number of tokens that memory is allocated for."""
        return self.keys.shape[2]

    @property
    def n_bytes(self) -> int:
        """Bytes of the allocated keys and values."""
        return self.keys.nbytes + self.values.nbytes

    def extend(self, layer: int, key: Array, value: Array) -> tuple[Array, Array]:
        """Write a layer's new keys and values behind ``length``; return all of that layer.

        ``(n_kv_heads, n_new, d_head) -> (n_kv_heads, length + n_new, d_head)``, twice.
        """
        end = self.length + key.shape[1]
        self.reserve(end)
        self.keys[layer, :, self.length : end] = key
        self.values[layer, :, self.length : end] = value
        return self.keys[layer, :, :end], self.values[layer, :, :end]

    def reserve(self, n_tokens: int) -> None:
        """Allocate memory for ``n_tokens`` in all, at least twice as much as before: copies are rare."""
        if n_tokens <= self.capacity:
            return
        if n_tokens > self.limit:
            raise ContextLengthError(
                f"{n_tokens} tokens do not fit into a cache of {self.limit}: make it larger"
            )
        capacity = min(self.limit, max(n_tokens, 2 * self.capacity))
        self.keys = self._moved(self.keys, capacity)
        self.values = self._moved(self.values, capacity)

    def rollback(self, length: int) -> None:
        """Drop all tokens but the first ``length``."""
        if not 0 <= length <= self.length:
            raise InputError(
                f"cannot roll back to {length} tokens: give 0 to {self.length}, as many were read"
            )
        self.length = length

    def _moved(self, filled: Array, capacity: int) -> Array:
        n_layers, n_kv_heads, _, d_head = filled.shape
        moved = np.empty((n_layers, n_kv_heads, capacity, d_head), filled.dtype)
        moved[:, :, : self.length] = filled[:, :, : self.length]
        return moved
