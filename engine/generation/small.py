"""Generation with a small decoder, token by token, with its attention for every token."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from ..layers.tracing import Array
from ..models.kv_cache import KVCache
from ..models.small_decoder import Params, SmallDecoderConfig, forward
from .generated_token import FinishReason
from .sampling import Sampling, log_probability, sample


@dataclass(frozen=True)
class SmallToken:
    """One generated token."""

    token_id: int
    log_probability: float
    finish_reason: FinishReason | None
    attention: Array  # that of the token before it, ``(n_layers, n_heads, n_seen)``
    first_seen: int  # place in the text of the first token that the model sees


def generate(
    params: Params,
    config: SmallDecoderConfig,
    prompt_ids: Sequence[int],
    max_new_tokens: int,
    sampling: Sampling,
    stop_ids: Collection[int] = (),
    kv_cache: bool = True,
) -> Iterator[SmallToken]:
    """Generate a continuation of a prompt until a stop token or the maximum.

    Whenever the context is full, the older half of the visible tokens is dropped, and the rest is read again
    as if it were the beginning. With the cache only new tokens go through the layers; without it all visible
    ones do, for every token. The text is the same. The first of ``stop_ids`` to be generated is the last
    token.
    """
    if not prompt_ids:
        raise InputError("there is no token to go on from: give a prompt")
    if max_new_tokens < 1:
        raise InputError(f"max_new_tokens is {max_new_tokens}: give 1 or more")
    ids, rng = list(prompt_ids), np.random.default_rng(sampling.seed)
    cache, first = KVCache(config, config.context), 0
    for number in range(1, max_new_tokens + 1):
        previous, first = first, first_seen(len(ids), config.context)
        if not kv_cache or first != previous:
            cache = KVCache(config, config.context)
        logits, attention = read(params, config, ids[first + cache.length :], cache)
        token = sample(logits, sampling, ids, rng)
        ids.append(token)
        finish: FinishReason | None = "length" if number == max_new_tokens else None
        finish = "stop" if token in stop_ids else finish
        chance = log_probability(logits[None], np.array([token]))[0]
        yield SmallToken(token, float(chance), finish, attention, first)
        if finish == "stop":
            return


def first_seen(n_tokens: int, context: int) -> int:
    """Place of the first visible token: 0, or such that half a context to a whole one is visible."""
    if n_tokens <= context:
        return 0
    half = max(context // 2, 1)
    return -(-(n_tokens - context) // half) * half


def read(
    params: Params, config: SmallDecoderConfig, ids: Sequence[int], cache: KVCache
) -> tuple[Array, Array]:
    """Read tokens behind the cache's: logits ``(vocab_size,)``, attention ``(n_layers, n_heads, n_seen)``."""
    weights: list[Array] = []

    def keep(name: str, value: Array) -> Array:
        if name.endswith("attention.weights"):
            weights.append(value[:, -1])  # (n_heads, n_query, n_key) -> (n_heads, n_key)
        return value

    logits = forward(params, np.array(ids), config, keep, cache)
    return logits[-1], np.stack(weights)
