"""The arrays of a forward pass at the last positions of a text."""

from dataclasses import dataclass

import numpy as np

from ...errors import InputError
from ...generation.decoder import Decoder
from ...layers.tracing import Array
from ...models.decoders import fit_length, resume_forward
from ...models.kv_cache import KVCache
from ...trace import Trace

MAX_POSITIONS = 64  # of which the arrays of all layers are held at once


@dataclass(frozen=True)
class LastPositions:
    """The arrays of each layer at the last ``n`` positions of a text."""

    # the residual stream before the first and after every layer, ``(n_layers + 1, n, d_model)``
    states: Array
    # outputs of attention and of the feed-forward network, ``(n_layers, n, d_model)``; those of Gemma 3
    # before they are normed
    attention: Array
    ffn: Array
    heads: Array  # each head's context, before the output projection: ``(n_layers, n_heads, n, d_head)``
    final: Array  # the residual stream after the final norm, ``(n, d_model)``


def read_last(decoder: Decoder, ids: list[int], n: int) -> tuple[LastPositions, KVCache]:
    """Read a text and keep the arrays of its last ``n`` positions, and its keys and values."""
    n_tokens = decoder.check_ids(ids)
    if not 1 <= n <= min(n_tokens, MAX_POSITIONS):
        raise InputError(
            f"{n} positions of a text of {n_tokens} tokens: give 1 to {min(n_tokens, MAX_POSITIONS)}"
        )
    cache = decoder.new_cache(n_tokens)
    fit_length(cache, decoder.config, n_tokens)
    decoder.prefill(ids[:-n], cache)
    trace = Trace(["embeddings.output", "layers.*.output", "layers.*.attention.context"])
    final = resume_forward(ids[-n:], decoder.weights, decoder.config, cache, trace)

    def stacked(name: str) -> Array:
        return np.stack([trace[f"layers.{layer}.{name}"] for layer in range(decoder.config.n_layers)])

    states = np.concatenate([trace["embeddings.output"][None], stacked("output")])
    parts = stacked("attention.output"), stacked("ffn.output"), stacked("attention.context")
    return LastPositions(states, *parts, np.array(final)), cache
