"""The decoders of the catalog on this machine: memory and speed, before any of them is downloaded.

To write a token, a decoder reads all its weights once, and a processor waits for the memory more than for
its own arithmetic. So the bytes of weights that one decoder reads in a second, measured, give an estimate of
the tokens per second of another one: that rate divided by the bytes of its weights.
"""

from dataclasses import dataclass
from functools import cached_property
from time import perf_counter

from ..models.decoders import memory_bytes_before, new_cache
from ..models.encoder import Encoder
from ..models.fingerprint import arrays_in
from ..weights.catalog import KNOWN_MODELS, DecoderSizes, KnownModel
from ..weights.fetch import is_cached
from ..weights.memory import available_memory
from .decoder import Decoder

PROMPT_TOKENS, TIMED_TOKENS = 32, 8


@dataclass(frozen=True)
class ListedDecoder:
    """A decoder of the catalog on this machine; what depends on its memory is estimated when it is read.

    The first such reading on a machine compiles the operations of decoders, which decide how weights are
    stored.
    """

    model: KnownModel
    sizes: DecoderSizes
    is_cached: bool  # whether its file is on this machine
    read_rate: float | None  # the measured `read_rate` of a decoder on this machine

    @cached_property
    def _weights_and_cache(self) -> tuple[int, int]:
        return memory_bytes_before(self.sizes, self.model.size)

    @property
    def memory_bytes(self) -> int:
        """Bytes of its weights and of the cache of a long prompt, roughly."""
        return sum(self._weights_and_cache)

    @property
    def fits(self) -> bool | None:
        """Whether so many bytes are free; None if free memory is unknown."""
        free = available_memory()
        return None if free is None else self.memory_bytes <= free

    @property
    def tokens_per_s(self) -> float | None:
        """Estimated speed of writing; None without a measured rate."""
        return None if self.read_rate is None else self.read_rate / self._weights_and_cache[0]


def listed_decoders(read_rate: float | None = None) -> list[ListedDecoder]:
    """Return the decoders of the catalog, in its order, by the `read_rate` of one on this machine."""
    return [
        ListedDecoder(model, model.sizes, is_cached(model.name), read_rate)
        for model in KNOWN_MODELS.values()
        if model.sizes is not None  # encoders have none
    ]


def read_rate(decoder: Decoder) -> float:
    """Bytes of weights that a decoder reads per second while it writes: the fastest of a few tokens."""
    ids = [number % decoder.config.vocab_size for number in range(1, PROMPT_TOKENS + 1)]
    n_tokens = PROMPT_TOKENS + TIMED_TOKENS
    cache = new_cache(decoder.weights, decoder.config, capacity=n_tokens)
    decoder.prefill(ids, cache)
    seconds = []
    for _ in range(TIMED_TOKENS):
        start = perf_counter()
        decoder.next_logits(ids[:1], cache)
        seconds.append(perf_counter() - start)
    return weight_bytes(decoder) / min(seconds)


def weight_bytes(model: Decoder | Encoder) -> int:
    """Bytes of a model's weights in memory; matrices that several layers share count once."""
    return sum({id(array): array.nbytes for array in arrays_in(model.weights)}.values())
