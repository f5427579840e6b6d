"""Time saved by the KV cache, and its size."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from ..errors import InputError
from ..models.kv_cache import KVCache
from ..weights.fetch import Progress
from .decoder import Decoder

REPEATS = 3  # of a token with the cache, which is fast: the median is taken


@dataclass(frozen=True)
class CacheCost:
    """Seconds for one more token after texts of several lengths in tokens, ``(n_lengths,)`` each."""

    lengths: tuple[int, ...]
    cached_s: tuple[float, ...]
    uncached_s: tuple[float, ...]


def measure_cache(
    decoder: Decoder, ids: Sequence[int], lengths: Sequence[int], on_progress: Progress | None = None
) -> CacheCost:
    """Time one more token after the first ``lengths`` tokens of a text, with the cache and without."""
    for length in lengths:
        if not 1 <= length <= len(ids):
            raise InputError(f"length {length} is not within the text: give 1 to {len(ids)} tokens")
    cached, uncached = [], []
    for n_done, length in enumerate(lengths, start=1):
        cache = decoder.new_cache(length)
        uncached.append(seconds(decoder, ids[:length], cache, keep=0))
        times = [seconds(decoder, ids[:length], cache, keep=length - 1) for _ in range(REPEATS)]
        cached.append(median(times))
        if on_progress is not None:
            on_progress(n_done, len(lengths))
    return CacheCost(tuple(lengths), tuple(cached), tuple(uncached))


def seconds(decoder: Decoder, ids: Sequence[int], cache: KVCache, keep: int) -> float:
    """Seconds to the logits after ``ids``; the first ``keep`` are in the cache."""
    cache.rollback(keep)
    start = perf_counter()
    decoder.next_logits(ids[keep:], cache)
    return perf_counter() - start


def cache_bytes(decoder: Decoder, n_tokens: int) -> int:
    """Bytes of the keys and values of ``n_tokens``."""
    return decoder.new_cache(n_tokens).n_bytes
