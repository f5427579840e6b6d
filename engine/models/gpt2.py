"""GPT-2 (Radford et al. 2019), forward: learned positions, layer norm, GELU, a bias everywhere."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..layers.attention import merge_heads, split_heads
from ..layers.linear import Linear, Matrix
from ..layers.norm import LayerNorm
from ..layers.positions import learned
from ..layers.primitives import NUMPY_DECODER, DecoderPrimitives
from ..layers.tracing import Array, Shapes, Tracer, no_trace
from .kv_cache import KVCache, OwnKeyHeads
from .shared_layers import feed_forward, layer_trace_shapes, run_layers


@dataclass(frozen=True)
class GPT2Config(OwnKeyHeads):
    """Sizes of a GPT-2; ``max_positions`` is the length of its position table."""

    vocab_size: int
    d_model: int
    n_layers: int
    n_heads: int
    d_ff: int
    max_positions: int
    norm_eps: float
    activation: str
    tied: bool  # token embeddings are the unembedding, too


@dataclass(frozen=True)
class GPT2Layer:
    """Parameters of one layer; the weight of ``query_key_value`` is ``(3 d_model, d_model)``."""

    attention_norm: LayerNorm
    query_key_value: Linear
    attention_output: Linear
    ffn_norm: LayerNorm
    ffn_hidden: Linear
    ffn_output: Linear


@dataclass(frozen=True)
class GPT2Weights:
    """Parameters of the whole decoder; ``unembedding`` is ``token_table`` itself where tied."""

    token_table: Matrix
    position_table: Array
    layers: tuple[GPT2Layer, ...]
    final_norm: LayerNorm
    unembedding: Matrix


def parameter_count(config: GPT2Config) -> int:
    """Number of parameters of a model of these sizes."""
    d_model, d_ff = config.d_model, config.d_ff
    n_tables = 1 if config.tied else 2
    attention_size = 4 * d_model * (d_model + 1)  # a bias for every row
    ffn_size = d_ff * (d_model + 1) + d_model * (d_ff + 1)
    layer = attention_size + ffn_size + 4 * d_model  # and two norms
    tables = (n_tables * config.vocab_size + config.max_positions) * d_model
    return tables + config.n_layers * layer + 2 * d_model


def causal_self_attention(
    normed: Array,
    layer: GPT2Layer,
    number: int,
    n_heads: int,
    cache: KVCache,
    ops: DecoderPrimitives,
    trace: Tracer,
) -> Array:
    """Multi-head attention over the cached and the new tokens: ``(n_new, d_model)`` to the same."""
    heads = split_heads(ops.linear(normed, *layer.query_key_value), 3 * n_heads)
    query, key, value = np.split(heads, 3)  # (n_heads, n_new, d_head) each
    context = ops.causal_attention(query, key, value, cache, number, trace)
    return trace("output", ops.linear(merge_heads(context), *layer.attention_output))


def embed(
    ids: Sequence[int], weights: GPT2Weights, config: GPT2Config, cache: KVCache, trace: Tracer = no_trace
) -> tuple[Array]:
    """Input of the layers: sums of token and position vectors behind ``cache``, ``(n_new, d_model)``."""
    positions = np.arange(cache.length, cache.length + len(ids))
    token = trace("embeddings.token", weights.token_table[np.asarray(ids)])
    position = trace("embeddings.position", learned(weights.position_table, positions))
    return (trace("embeddings.output", token + position),)


def layers(
    inputs: tuple[Array],
    weights: GPT2Weights,
    config: GPT2Config,
    cache: KVCache,
    ops: DecoderPrimitives = NUMPY_DECODER,
    trace: Tracer = no_trace,
) -> Array:
    """Hidden states of the last layer, of tokens that follow those in ``cache``: ``(n_new, d_model)``."""
    [hidden] = inputs

    def norm(x: Array, parameters: LayerNorm) -> Array:
        return ops.layer_norm(x, *parameters, config.norm_eps)

    def attend(normed: Array, layer: GPT2Layer, number: int, trace: Tracer) -> Array:
        return causal_self_attention(normed, layer, number, config.n_heads, cache, ops, trace)

    def transform(normed: Array, layer: GPT2Layer, trace: Tracer) -> Array:
        return feed_forward(normed, layer, config.activation, ops, trace)

    return run_layers(hidden, weights.layers, norm, attend, transform, ops.add, trace)


def final_norm(
    hidden: Array, weights: GPT2Weights, config: GPT2Config, ops: DecoderPrimitives = NUMPY_DECODER
) -> Array:
    """Return the norm between the last layer and the unembedding: ``(..., d_model)`` to the same."""
    return ops.layer_norm(hidden, *weights.final_norm, config.norm_eps)


def trace_shapes(config: GPT2Config, n_tokens: int) -> Shapes:
    """Shape of every array that a forward pass over ``n_tokens`` names."""
    return layer_trace_shapes(config, n_tokens, ("token", "position", "output"), ("hidden", "activation"))
