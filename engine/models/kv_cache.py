"""KV cache: keys and values of earlier tokens, so that a decoder computes them once."""

from typing import Protocol

import numpy as np

from ..errors import ContextLengthError, InputError
from ..layers.quantization import dequantize, quantize
from ..layers.tracing import Array

KV_BITS = (16, 8)  # that a number in a cache may have; 16 is the default


class CacheSizes(Protocol):
    """The sizes of a decoder that its cache needs."""

    @property
    def n_layers(self) -> int: ...  # noqa: D102
    @property
    def n_kv_heads(self) -> int: ...  # noqa: D102
    @property
    def d_head(self) -> int: ...  # noqa: D102


class KVCache:
    """Keys and values of the tokens read so far, in arrays that double when they are full.

    Memory is allocated for ``capacity`` tokens at first, and for ``limit`` at most, by default as many. Keys
    and values of the ``dtype`` int8 are quantized when they are written (`quantize`).
    """

    def __init__(
        self, config: CacheSizes, capacity: int, limit: int | None = None, dtype: type = np.float32
    ) -> None:
        shape = (config.n_layers, config.n_kv_heads, capacity, config.d_head)
        self.keys: Array = np.empty(shape, dtype)  # of which ``length`` positions are filled
        self.values: Array = np.empty(shape, dtype)
        is_quantized = self.keys.dtype == np.int8
        self.key_scales: Array | None = np.empty(shape[:-1], np.float32) if is_quantized else None
        self.value_scales: Array | None = np.empty(shape[:-1], np.float32) if is_quantized else None
        self.length = 0
        self.is_long = False  # whether keys have the rotations of long texts (`LongRope`)
        self.limit = capacity if limit is None else limit

    @property
    def capacity(self) -> int:
        """Number of tokens that memory is allocated for."""
        return self.keys.shape[2]

    @property
    def n_bytes(self) -> int:
        """Bytes of the allocated keys and values, and of their scales."""
        arrays = (self.keys, self.values, self.key_scales, self.value_scales)
        return sum(array.nbytes for array in arrays if array is not None)

    def extend(self, layer: int, key: Array, value: Array) -> tuple[Array, Array]:
        """Write a layer's new keys and values behind ``length``; return all of that layer.

        ``(n_kv_heads, n_new, d_head) -> (n_kv_heads, length + n_new, d_head)``, twice; int8 ones as float32.
        """
        self.reserve(self.length + key.shape[1])
        return (
            self._appended(self.keys, self.key_scales, layer, key),
            self._appended(self.values, self.value_scales, layer, value),
        )

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
        if self.key_scales is not None and self.value_scales is not None:
            self.key_scales = self._moved(self.key_scales, capacity)
            self.value_scales = self._moved(self.value_scales, capacity)

    def rollback(self, length: int) -> None:
        """Drop all tokens but the first ``length``."""
        if not 0 <= length <= self.length:
            raise InputError(
                f"cannot roll back to {length} tokens: give 0 to {self.length}, as many were read"
            )
        self.length = length

    def _appended(self, cached: Array, scales: Array | None, layer: int, new: Array) -> Array:
        """Write a layer's new keys (or values) behind ``length``, and return all of them."""
        end = self.length + new.shape[1]
        places = layer, slice(None), slice(self.length, end)
        if scales is None:
            cached[places] = new
            return cached[layer, :, :end]
        cached[places], scales[places] = quantize(new)
        return dequantize(cached[layer, :, :end], scales[layer, :, :end])

    def _moved(self, filled: Array, capacity: int) -> Array:
        n_layers, n_kv_heads, _, *numbers = filled.shape
        moved = np.empty((n_layers, n_kv_heads, capacity, *numbers), filled.dtype)
        moved[:, :, : self.length] = filled[:, :, : self.length]
        return moved


def kv_bytes(config: CacheSizes, n_tokens: int, dtype: type) -> int:
    """Bytes of the keys and values of ``n_tokens`` in a cache of this type, with their scales."""
    n_vectors = 2 * config.n_layers * config.n_kv_heads * n_tokens
    scale_bytes = np.dtype(np.float32).itemsize if dtype is np.int8 else 0
    return n_vectors * (config.d_head * np.dtype(dtype).itemsize + scale_bytes)


def check_kv_bits(kv_bits: int) -> int:
    """Return the bits of a cache's numbers; raise `InputError` for others than `KV_BITS`."""
    if kv_bits not in KV_BITS:
        raise InputError(f"kv_bits is {kv_bits}: give {' or '.join(map(str, KV_BITS))}")
    return kv_bits
