"""One forward pass for all poolings of a text: its token states, and the vectors pooled from them."""

from collections.abc import Sequence
from types import ModuleType

import numpy as np

from ..errors import InputError
from ..layers.attention import attention_weights
from ..layers.linear import Linear
from ..layers.pooling import POOLINGS, TokenStates, attention_received
from ..layers.primitives import NUMPY, Primitives
from ..layers.tracing import Array, Tracer, no_trace
from . import bert
from .bert import EncoderConfig, EncoderWeights
from .parallel import row_spans


def token_states(
    sequences: Sequence[Sequence[int]],
    strategies: Sequence[str],
    weights: EncoderWeights,
    config: EncoderConfig,
    trace: Tracer = no_trace,
    ops: Primitives = NUMPY,
    type_ids: Sequence[Sequence[int]] | None = None,
    family: ModuleType = bert,
) -> list[TokenStates]:
    """Run a pack of texts once through the family's layers, and keep what the poolings need."""
    spans = row_spans([len(sequence) for sequence in sequences])
    wants_layers = any(POOLINGS[strategy].needs == "layers" for strategy in strategies)
    wants_attention = any(POOLINGS[strategy].needs == "attention" for strategy in strategies)
    last = f"layers.{config.n_layers - 1}"
    layers: list[Array] = []
    queries: list[Array] = []
    received: list[Array] = []
    if family is not bert and (wants_layers or wants_attention):
        if len(sequences) > 1:  # the weights of all texts of a pack would have one name
            types = [None] * len(sequences) if type_ids is None else [[each] for each in type_ids]
            return [
                state
                for ids, own in zip(sequences, types, strict=True)
                for state in token_states([ids], strategies, weights, config, trace, ops, own, family)
            ]
        ops = NUMPY  # which traces the weights, where masks are added to the scores

    def keep(name: str, array: Array) -> Array:
        array = trace(name, array)
        if wants_layers and name.startswith("layers.") and name.count(".") == 2 and name.endswith("output"):
            layers.append(array.copy())  # (all tokens of the pack, d_model)
        elif wants_attention and family is not bert:
            if name == f"{last}.attention.weights":
                received.append(attention_received(array))
        elif wants_attention and name == f"{last}.attention.query":
            queries.append(array)
        elif wants_attention and name == f"{last}.attention.key":
            maps = (attention_weights(queries[0][:, s], array[:, s]) for s in spans)
            received.extend(attention_received(each) for each in maps)
        return array

    tracer = keep if wants_layers or wants_attention else trace
    vectors = family.encoder_forward(sequences, weights, config, tracer, ops, type_ids)
    stacked = np.stack(layers) if layers else None
    return [
        TokenStates(
            np.asarray(ids),
            own,
            None if stacked is None else stacked[:, span],
            received[number] if received else None,
        )
        for number, (ids, own, span) in enumerate(zip(sequences, vectors, spans, strict=True))
    ]


def pooled(
    states: TokenStates,
    strategy: str,
    pooler: Linear | None = None,
    idf: Array | None = None,
    mask: Array | None = None,
) -> Array:
    """Pool one text: ``(d_model,)``, not normalised.

    ``states`` are those of `token_states` for the strategy, a key of `POOLINGS`. Some strategies need BERT's
    ``pooler``, or the ``idf`` of every token, ``(vocab_size,)``. ``mask`` is 1 for tokens to pool and 0 for
    others, ``(n_tokens,)``; None for all.
    """
    pool = POOLINGS[strategy].pool
    if pool is not None:
        return pool(states, full_mask(states, mask), pooler)
    return token_weights(states, strategy, idf, mask) @ summed_vectors(states, strategy)


def summed_vectors(states: TokenStates, strategy: str) -> Array:
    """Vectors that a strategy sums over tokens: ``(n_tokens, d_model)``."""
    return POOLINGS[strategy].vectors(states)


def token_weights(
    states: TokenStates, strategy: str, idf: Array | None = None, mask: Array | None = None
) -> Array:
    """Weight of each token's vector in the sum: ``(n_tokens,)``; the rest is as in `pooled`."""
    weights = POOLINGS[strategy].weights
    if weights is None:
        raise InputError(f"{strategy!r} pooling is no sum over tokens: choose another to see their shares")
    return weights(full_mask(states, mask), states, idf)


def full_mask(states: TokenStates, mask: Array | None) -> Array:
    """Return the mask, or ones for None, in the precision of the vectors: ``(n_tokens,)``."""
    dtype = states.vectors.dtype
    return np.ones(len(states.ids), dtype) if mask is None else mask.astype(dtype)
