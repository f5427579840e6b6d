"""Keys and values of the tokens a decoder has read, so that no token is read twice."""

from typing import Protocol

import numpy as np

from engine.errors import ContextLengthError
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
    """Keys and values of the tokens read so far, in arrays allocated once.

    Attributes
    ----------
    keys, values
        ``(n_layers, n_kv_heads, capacity, d_head)``, of which ``length`` positions are filled.
    length
        Number of tokens read.
    """

    def __init__(self, config: CacheSizes, capacity: int) -> None:
        shape = (config.n_layers, config.n_kv_heads, capacity, config.d_head)
        self.keys = np.empty(shape, np.float32)
        self.values = np.empty(shape, np.float32)
        self.length = 0

    @property
    def capacity(self) -> int:
        """Number of tokens there is room for."""
        return self.keys.shape[2]

    def extend(self, layer: int, key: Array, value: Array) -> tuple[Array, Array]:
        """Write a layer's new keys and values behind ``length``; return all of that layer's.

        ``(n_kv_heads, n_new, d_head) -> (n_kv_heads, length + n_new, d_head)``, twice.
        """
        end = self.length + key.shape[1]
        if end > self.capacity:
            raise ContextLengthError(
                f"{end} tokens do not fit into a cache of {self.capacity}: make it larger"
            )
        self.keys[layer, :, self.length : end] = key
        self.values[layer, :, self.length : end] = value
        return self.keys[layer, :, :end], self.values[layer, :, :end]
