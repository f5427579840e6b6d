"""Keys and values of the tokens a decoder has read, so that no token is read twice."""

from typing import Protocol

import numpy as np

from engine.errors import ContextLengthError, InputError
from engine.layers.tracing import Array


class CacheSizes(Protocol):
    """What a cache has to know of a decoder's sizes."""

    @property
    def n_layers(self) -> int: ...  # noqa: D102
    @property
    def n_kv_heads(self) -> int: ...  # noqa: D102
    @property
    def d_head(self) -> int: ...  # noqa: D102


class KVCache:
    """Keys and values of the tokens read so far, in arrays that double when they are full.

    Parameters
    ----------
    config
        The decoder's sizes.
    capacity
        Tokens to make room for at once.
    limit
        Tokens up to which the room may grow; ``capacity`` where it is not given.
    dtype
        Of keys and values.

    Attributes
    ----------
    keys, values
        ``(n_layers, n_kv_heads, capacity, d_head)``, of which ``length`` positions are filled.
    length
        Number of tokens read.
    recorded
        What a pass wrote down of its work on these arrays, until they move to others.
    """

    def __init__(
        self, config: CacheSizes, capacity: int, limit: int | None = None, dtype: type = np.float32
    ) -> None:
        shape = (config.n_layers, config.n_kv_heads, capacity, config.d_head)
        self.keys: Array = np.empty(shape, dtype)
        self.values: Array = np.empty(shape, dtype)
        self.length = 0
        self.limit = capacity if limit is None else limit
        self.recorded: object = None

    @property
    def capacity(self) -> int:
        """Number of tokens there is room for."""
        return self.keys.shape[2]

    @property
    def n_bytes(self) -> int:
        """Bytes of keys and values, with the room for tokens to come."""
        return self.keys.nbytes + self.values.nbytes

    def extend(self, layer: int, key: Array, value: Array) -> tuple[Array, Array]:
        """Write a layer's new keys and values behind ``length``; return all of that layer's.

        ``(n_kv_heads, n_new, d_head) -> (n_kv_heads, length + n_new, d_head)``, twice.

        Raises
        ------
        ContextLengthError
            They are more tokens than the cache may hold.
        """
        end = self.length + key.shape[1]
        self.reserve(end)
        self.keys[layer, :, self.length : end] = key
        self.values[layer, :, self.length : end] = value
        return self.keys[layer, :, :end], self.values[layer, :, :end]

    def reserve(self, n_tokens: int) -> None:
        """Make room for ``n_tokens`` in all: at least twice the room of before, so copies stay rare.

        Raises
        ------
        ContextLengthError
            They are more tokens than the cache may hold.
        """
        if n_tokens <= self.capacity:
            return
        if n_tokens > self.limit:
            raise ContextLengthError(
                f"{n_tokens} tokens do not fit into a cache of {self.limit}: make it larger"
            )
        capacity = min(self.limit, max(n_tokens, 2 * self.capacity))
        self.keys = self._moved(self.keys, capacity)
        self.values = self._moved(self.values, capacity)
        self.recorded = None

    def rollback(self, length: int) -> None:
        """Forget all tokens but the first ``length``.

        Raises
        ------
        InputError
            So many were never read.
        """
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
