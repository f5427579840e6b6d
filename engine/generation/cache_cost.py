"""Time saved by the KV cache, and the error of its precision."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from time import perf_counter

import numpy as np

from ..errors import InputError
from ..models.decoders import fit_length
from ..models.kv_cache import KV_BITS, KVCache
from .decoder import LOGIT_TOKENS, Decoder
from .sampling import divergence

REPEATS = 3  # of a token with the cache, which is fast: the median is taken
PRECISION_REPEATS = 15  # of a token with either precision, which differ less


@dataclass(frozen=True)
class CacheCost:
    """Seconds for one more token after texts of several lengths in tokens, ``(n_lengths,)`` each."""

    lengths: tuple[int, ...]
    cached_s: tuple[float, ...]
    uncached_s: tuple[float, ...]


def measure_cache(
    decoder: Decoder,
    ids: Sequence[int],
    lengths: Sequence[int],
    on_progress: Callable[[int, int], None] | None = None,
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


@dataclass(frozen=True)
class CachePrecision:
    """A cache of ``kv_bits`` that holds a text, compared with one of 16."""

    kv_bits: int
    n_bytes: int  # of its keys and values
    token_s: float  # seconds for one more token
    divergence: float  # mean Kullback-Leibler divergence of next tokens from those with 16 bits, in nats
    same_greedy: float  # share of places where the most probable token is the same


def measure_precision(
    decoder: Decoder,
    ids: Sequence[int],
    n_compared: int,
    on_progress: Callable[[int, int], None] | None = None,
) -> tuple[CachePrecision, ...]:
    """Read a text with a cache of each of `KV_BITS`; compare time and the last ``n_compared`` tokens."""
    n_tokens = decoder.check_ids(ids)
    if n_compared < 1:
        raise InputError(f"n_compared is {n_compared}: give 1 or more")
    decoders = [replace(decoder, kv_bits=kv_bits) for kv_bits in KV_BITS]
    caches = [own.new_cache(n_tokens) for own in decoders]
    hidden = []  # (n_compared, d_model) each
    for own, cache in zip(decoders, caches, strict=True):
        fit_length(cache, decoder.config, n_tokens)
        hidden.append(np.concatenate(list(own.read(ids, cache)))[-n_compared:])
    n_compared = len(hidden[0])
    divergences, same = np.zeros((2, len(KV_BITS), n_compared))
    for first in range(0, n_compared, LOGIT_TOKENS):
        block = slice(first, first + LOGIT_TOKENS)
        logits = [decoder.unembed(own[block]) for own in hidden]
        divergences[:, block] = [divergence(logits[0], own) for own in logits]
        same[:, block] = [own.argmax(axis=-1) == logits[0].argmax(axis=-1) for own in logits]
        if on_progress is not None:
            on_progress(min(block.stop, n_compared), n_compared)
    times = [  # in turns, under the same load of the machine
        [seconds(decoder, ids, cache, keep=n_tokens - 1) for cache in caches]
        for _ in range(PRECISION_REPEATS)
    ]
    return tuple(
        CachePrecision(kv_bits, cache.n_bytes, median(own_times), float(far.mean()), float(equal.mean()))
        for kv_bits, cache, own_times, far, equal in zip(
            KV_BITS, caches, zip(*times, strict=True), divergences, same, strict=True
        )
    )


def seconds(decoder: Decoder, ids: Sequence[int], cache: KVCache, keep: int) -> float:
    """Seconds to the logits after ``ids``; the first ``keep`` are in the cache."""
    fit_length(cache, decoder.config, len(ids))
    cache.rollback(keep)
    start = perf_counter()
    decoder.next_logits(ids[keep:], cache)
    return perf_counter() - start


def cache_bytes(decoder: Decoder, n_tokens: int) -> int:
    """Bytes of the keys and values of ``n_tokens``."""
    return decoder.new_cache(n_tokens).n_bytes
