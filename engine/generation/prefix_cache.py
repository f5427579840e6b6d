"""Reuse of keys and values for the common beginning of two prompts."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from weakref import ReferenceType, ref

import numpy as np

from ..models.decoders import DecoderConfig, DecoderWeights
from ..models.kv_cache import KVCache


class PrefixCache:
    """Keys and values of the last prompt and answer, for the next prompt that begins like them.

    A token's keys and values depend only on the tokens before it, so they are valid for the common beginning
    of two texts. The cache belongs to the decoder that filled it: another starts with an empty one.
    A generation takes the content out and puts its own back at its end: of two at once the second starts
    without reuse, and the cache keeps the content of the one that ends last.
    """

    def __init__(self) -> None:
        self.reused_tokens = 0  # that the last call found in the cache
        self._lock = Lock()
        self._ids: list[int] = []
        self._cache: KVCache | None = None
        self._weights: ReferenceType[DecoderWeights] | None = None

    def __len__(self) -> int:
        """Return the number of tokens whose keys and values are kept."""
        return len(self._ids)

    @property
    def n_bytes(self) -> int:
        """Bytes of the keys and values, including the room reserved for more tokens."""
        return 0 if self._cache is None else self._cache.n_bytes

    def clear(self) -> None:
        """Drop the keys and values; a generation under way still puts back its own."""
        with self._lock:
            self._ids, self._cache, self._weights = [], None, None

    @contextmanager
    def borrow(
        self,
        ids: Sequence[int],
        at_most: int,
        weights: DecoderWeights,
        config: DecoderConfig,
        new_cache: KVCache,
    ) -> Iterator[KVCache]:
        """Yield a cache that holds the longest known beginning of ``ids``, and keep it afterwards.

        The sequence may grow meanwhile: at the end the cache holds the first ``cache.length`` ids. Up to
        ``at_most`` tokens are reused; ``new_cache`` is the decoder's empty cache, for when nothing can be.
        """
        cache = self._take(ids, at_most, weights, new_cache.keys.dtype) or new_cache
        self.reused_tokens = cache.length
        try:
            yield cache
        finally:  # also if reading failed, or the generator was closed early
            with self._lock:
                self._ids, self._cache, self._weights = list(ids[: cache.length]), cache, ref(weights)

    def _take(
        self, ids: Sequence[int], at_most: int, weights: DecoderWeights, dtype: np.dtype
    ) -> KVCache | None:
        with self._lock:
            known, cache, owner = self._ids, self._cache, self._weights
            self._ids, self._cache, self._weights = [], None, None
        if cache is None or owner is None or owner() is not weights or cache.keys.dtype != dtype:
            return None
        cache.rollback(min(common_prefix(known, ids), at_most))
        return cache


def common_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """Return how many tokens two sequences share before the first that differs."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(first), len(second)))
