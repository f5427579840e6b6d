"""What one pass through the layers leaves of a text's tokens, and every way to pool it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.errors import InputError
from engine.layers import pooling
from engine.layers.attention import attention_weights
from engine.layers.linear import Linear
from engine.layers.primitives import NUMPY, Primitives
from engine.layers.tracing import Array, Tracer, no_trace
from engine.models.bert import EncoderConfig, EncoderWeights, encoder_forward


@dataclass(frozen=True)
class TokenStates:
    """One text's tokens after the layers, with what some poolings need besides.

    Attributes
    ----------
    ids
        ``(n_tokens,)``.
    vectors
        Of the last layer, ``(n_tokens, d_model)``.
    layers
        Of every layer, ``(n_layers, n_tokens, d_model)``, where a pooling asked for them.
    received
        The attention that each token receives in the last layer, ``(n_tokens,)``, where asked for.
    """

    ids: Array
    vectors: Array
    layers: Array | None = None
    received: Array | None = None


def token_states(
    sequences: Sequence[Sequence[int]],
    strategies: Sequence[str],
    weights: EncoderWeights,
    config: EncoderConfig,
    trace: Tracer = no_trace,
    ops: Primitives = NUMPY,
    type_ids: Sequence[Sequence[int]] | None = None,
) -> list[TokenStates]:
    """Run a pack of texts once and keep what the strategies need; the rest is as in `encoder_forward`."""
    ends = np.cumsum([len(sequence) for sequence in sequences])
    spans = [slice(end - len(ids), end) for end, ids in zip(ends, sequences, strict=True)]
    wants_layers = any(strategy in pooling.OF_LAYERS for strategy in strategies)
    wants_attention = "attention" in strategies
    last = f"layers.{config.n_layers - 1}"
    layers: list[Array] = []
    queries: list[Array] = []
    received: list[Array] = []

    def keep(name: str, array: Array) -> Array:
        array = trace(name, array)
        if wants_layers and name.startswith("layers.") and name.count(".") == 2 and name.endswith("output"):
            layers.append(array.copy())  # (all tokens of the pack, d_model)
        elif wants_attention and name == f"{last}.attention.query":
            queries.append(array)
        elif wants_attention and name == f"{last}.attention.key":
            maps = (attention_weights(queries[0][:, s], array[:, s]) for s in spans)
            received.extend(pooling.attention_received(each) for each in maps)
        return array

    tracer = keep if wants_layers or wants_attention else trace
    vectors = encoder_forward(sequences, weights, config, tracer, ops, type_ids)
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
    """Pool one text: ``(d_model,)``, not yet of length 1.

    Parameters
    ----------
    states
        What `token_states` kept for the strategy.
    strategy
        One of `POOLINGS`.
    pooler, idf
        The weights of BERT's pooler, and of the words ``(vocab_size,)``, for the strategies of these names.
    mask
        1 for tokens to pool and 0 for others, ``(n_tokens,)``; None for all.
    """
    if strategy == "max":
        return pooling.max_pooling(states.vectors, kept(states, mask))
    if strategy == "pooler":
        assert pooler is not None, "checked by check_poolings"
        return pooling.pooler_pooling(states.vectors, pooler)
    return pooling.pool(summed_vectors(states, strategy), token_shares(states, strategy, idf, mask))


def summed_vectors(states: TokenStates, strategy: str) -> Array:
    """Vectors that a strategy sums over tokens: ``(n_tokens, d_model)``."""
    if strategy not in pooling.OF_LAYERS:
        return states.vectors
    assert states.layers is not None, "kept by token_states"
    return pooling.mean_of_layers(states.layers, strategy)


def token_shares(
    states: TokenStates, strategy: str, idf: Array | None = None, mask: Array | None = None
) -> Array:
    """Share that each token's vector has in the sum: ``(n_tokens,)``; the rest is as in `pooled`.

    Raises
    ------
    InputError
        The strategy is no sum over tokens: ``max`` or ``pooler``.
    """
    mask = kept(states, mask)
    match strategy:
        case "mean" | "last4" | "first_last":
            return pooling.mean_shares(mask)
        case "cls":
            return pooling.first_share(mask)
        case "mean_sqrt_len_tokens":
            return pooling.sqrt_shares(mask)
        case "weightedmean":
            return pooling.position_shares(mask)
        case "lasttoken":
            return pooling.last_share(mask)
        case "idf":
            assert idf is not None, "checked by check_poolings"
            return pooling.weighted_shares(mask, idf[states.ids].astype(mask.dtype))
        case "attention":
            assert states.received is not None, "kept by token_states"
            return pooling.weighted_shares(mask, states.received)
    raise InputError(f"{strategy!r} pooling is no sum over tokens: choose another to see their shares")


def kept(states: TokenStates, mask: Array | None) -> Array:
    """Return the mask, or one that keeps all: ``(n_tokens,)``."""
    dtype = states.vectors.dtype
    return np.ones(len(states.ids), dtype) if mask is None else mask.astype(dtype)
