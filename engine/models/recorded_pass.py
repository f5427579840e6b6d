"""A recorded forward pass of a decoder, replayed for the next tokens of one text or of several.

Each token of a pass attends to the keys in its text's own cache; the matrices are read once for all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels.matrix_ops import FEW_TOKENS as FEW_TOKENS
from ..kernels.op_tape import OpTape, cache_rows
from ..layers.tracing import Array
from .decoders import DecoderConfig, DecoderWeights, capped, forward_module
from .kv_cache import KVCache
from .parallel import row_spans


@dataclass(frozen=True)
class RecordedPass:
    """A recorded pass of `FEW_TOKENS`: its input arrays, its tape, and its logits, a row for each token."""

    config: DecoderConfig
    capacity: int  # of the largest of the caches it can read
    inputs: tuple[Array, ...]
    tape: OpTape
    logits: Array


def record_pass(weights: DecoderWeights, config: DecoderConfig, capacity: int) -> RecordedPass:
    """Record a forward pass without running it."""
    family, tape, empty = forward_module(config), OpTape(0, capacity), KVCache(config, capacity=0)
    inputs = tuple(np.repeat(one, FEW_TOKENS, axis=0) for one in family.embed([0], weights, config, empty))
    hidden = family.final_norm(family.layers(inputs, weights, config, empty, tape), weights, config, tape)
    unembedding: Any = weights.unembedding  # packed, as all that is compiled is
    return RecordedPass(config, capacity, inputs, tape, tape.linear(hidden, unembedding))


def read_together(
    texts: Sequence[tuple[Sequence[int], KVCache]], weights: DecoderWeights, recorded: RecordedPass
) -> list[Array]:
    """Add the next tokens of each text to its cache; return the logits after them.

    There are at most `FEW_TOKENS` in all. A token has the same logits, to the last bit, whichever others are
    read with it.

    Returns
    -------
    list
        For each text ``(n_tokens, vocab_size)``, overwritten by the next pass.
    """
    config, spans = recorded.config, row_spans([len(ids) for ids, _ in texts])
    for (ids, cache), span in zip(texts, spans, strict=True):
        cache.reserve(cache.length + len(ids))
        inputs = forward_module(config).embed(ids, weights, config, cache)
        for recorded_input, own in zip(recorded.inputs, inputs, strict=True):
            recorded_input[span] = own
    recorded.tape.replay(np.concatenate([cache_rows(cache, cache.length, len(ids)) for ids, cache in texts]))
    for ids, cache in texts:
        cache.length += len(ids)
    return [capped(recorded.logits[span], config) for span in spans]
