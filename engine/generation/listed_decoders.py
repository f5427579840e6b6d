"""The decoders of the catalog on this machine: memory and speed, before any of them is downloaded.

To write a token, a decoder reads all its weights once, and a processor waits for the memory more than for
its own arithmetic. So the bytes of weights that one decoder reads in a second, measured, give an estimate of
the tokens per second of another one: that rate divided by the bytes of its weights.
"""

from dataclasses import dataclass
from time import perf_counter

from ..models.decoders import fit_length, memory_bytes_before, new_cache
from ..models.fingerprint import arrays_in
from ..weights.catalog import KNOWN_MODELS, KnownModel
from ..weights.fetch import is_cached
from ..weights.memory import available_memory
from .decoder import Decoder

PROMPT_TOKENS, TIMED_TOKENS = 32, 8


@dataclass(frozen=True)
class ListedDecoder:
    """A decoder of the catalog on this machine."""

    model: KnownModel
    memory_bytes: int  # of its weights and of the cache of a long prompt, roughly
    fits: bool | None  # whether so many are free; None if free memory is unknown
    tokens_per_s: float | None  # estimated speed of writing; None without a measured rate
    is_cached: bool  # whether its file is on this machine


def listed_decoders(read_rate: float | None = None) -> list[ListedDecoder]:
    """Return the decoders of the catalog, in its order.

    ``read_rate`` is the measured `read_rate` of a decoder on this machine.
    """
    free = available_memory()
    found = []
    for model in KNOWN_MODELS.values():
        if model.sizes is None:  # an encoder
            continue
        n_weights, n_cache = memory_bytes_before(model.sizes, model.size)
        n_bytes = n_weights + n_cache
        found.append(
            ListedDecoder(
                model,
                n_bytes,
                None if free is None else n_bytes <= free,
                None if read_rate is None else read_rate / n_weights,
                is_cached(model.name),
            )
        )
    return found


def read_rate(decoder: Decoder) -> float:
    """Bytes of weights that a decoder reads per second while it writes, measured on a few tokens.

    The fastest of them counts, since other programs only ever slow one down.
    """
    ids = [number % decoder.config.vocab_size for number in range(1, PROMPT_TOKENS + 1)]
    n_tokens = PROMPT_TOKENS + TIMED_TOKENS
    cache = new_cache(decoder.weights, decoder.config, capacity=n_tokens)
    fit_length(cache, decoder.config, n_tokens)
    decoder.prefill(ids, cache)
    seconds = []
    for _ in range(TIMED_TOKENS):
        start = perf_counter()
        decoder.next_logits(ids[:1], cache)
        seconds.append(perf_counter() - start)
    return weight_bytes(decoder) / min(seconds)


def weight_bytes(decoder: Decoder) -> int:
    """Bytes of a decoder's weights in memory; matrices that several layers share count once."""
    return sum({id(array): array.nbytes for array in arrays_in(decoder.weights)}.values())
