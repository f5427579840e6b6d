"""Llama (Touvron et al. 2023) and its kin, forward: RMS norm, RoPE, grouped-query attention, SwiGLU."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.layers.attention import merge_heads, split_heads
from engine.layers.linear import Linear, Matrix
from engine.layers.positions import rope_tables
from engine.layers.primitives import NUMPY_DECODER, DecoderPrimitives
from engine.layers.tracing import Array, Shapes, Tracer, no_trace, scoped
from engine.models.kv_cache import KVCache


@dataclass(frozen=True)
class LlamaConfig:
    """Sizes of a Llama-family decoder; ``max_positions`` is its context length in tokens.

    Attributes
    ----------
    rope_theta, rope_factors
        Base of the rotary frequencies, and by how much each of the ``d_head / 2`` is slowed down.
    tied
        Hidden states become logits through the token embeddings.
    biased
        Which matrices add a bias, by their names in the files: ``query``, ``gate``, ….
    """

    vocab_size: int
    d_model: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    d_head: int
    d_ff: int
    max_positions: int
    norm_eps: float
    rope_theta: float
    rope_factors: tuple[float, ...]
    tied: bool
    biased: frozenset[str]


@dataclass(frozen=True)
class LlamaLayer:
    """Parameters of one layer; matrices that read the same input are stacked into one.

    The weight of ``query_key_value`` is ``((n_heads + 2 n_kv_heads) d_head, d_model)``, that of
    ``gate_up`` ``(2 d_ff, d_model)``.
    """

    attention_norm: Array
    query_key_value: Linear
    attention_output: Linear
    ffn_norm: Array
    gate_up: Linear
    ffn_output: Linear


@dataclass(frozen=True)
class LlamaWeights:
    """Parameters of the whole decoder; ``unembedding`` is ``token_table`` itself where tied."""

    token_table: Matrix
    layers: tuple[LlamaLayer, ...]
    final_norm: Array
    unembedding: Matrix


def matrix_shapes(config: LlamaConfig) -> dict[str, tuple[int, int]]:
    """Shape ``(d_out, d_in)`` of each matrix of a layer, before any are stacked."""
    d_model, d_ff = config.d_model, config.d_ff
    d_query, d_key = config.n_heads * config.d_head, config.n_kv_heads * config.d_head
    return {
        "query": (d_query, d_model),
        "key": (d_key, d_model),
        "value": (d_key, d_model),
        "attention_output": (d_model, d_query),
        "gate": (d_ff, d_model),
        "up": (d_ff, d_model),
        "ffn_output": (d_model, d_ff),
    }


def parameter_count(config: LlamaConfig) -> int:
    """Return how many numbers a model of these sizes has learnt."""
    shapes = matrix_shapes(config)
    matrices = sum(d_out * d_in for d_out, d_in in shapes.values())
    biases = sum(shapes[part][0] for part in config.biased)
    layer = matrices + biases + 2 * config.d_model  # and two norms
    tables = config.vocab_size * config.d_model * (1 if config.tied else 2)
    return tables + config.n_layers * layer + config.d_model


def causal_self_attention(
    normed: Array,
    layer: LlamaLayer,
    number: int,
    config: LlamaConfig,
    rope: tuple[Array, Array],
    cache: KVCache,
    ops: DecoderPrimitives,
    trace: Tracer,
) -> Array:
    """Grouped-query attention over the cached and the new tokens: ``(n_new, d_model)`` to the same."""
    n_rotated = config.n_heads + config.n_kv_heads
    heads = split_heads(ops.linear(normed, *layer.query_key_value), n_rotated + config.n_kv_heads)
    rotated = ops.apply_rope(heads[:n_rotated], *rope)
    query, key = rotated[: config.n_heads], rotated[config.n_heads :]  # (n_.._heads, n_new, d_head)
    context = ops.causal_attention(query, key, heads[n_rotated:], cache, number, trace)
    return trace("output", ops.linear(merge_heads(context), *layer.attention_output))


def feed_forward(normed: Array, layer: LlamaLayer, d_ff: int, ops: DecoderPrimitives, trace: Tracer) -> Array:
    """``W_down swiglu(W_gate x, W_up x)`` (Shazeer 2020): ``(n_tokens, d_model)`` to the same."""
    gate_up = ops.linear(normed, *layer.gate_up)  # (n_tokens, 2 d_ff)
    gate, up = trace("gate", gate_up[:, :d_ff]), trace("hidden", gate_up[:, d_ff:])
    activation = trace("activation", ops.swiglu(gate, up))
    return trace("output", ops.linear(activation, *layer.ffn_output))


def embed(
    ids: Sequence[int], weights: LlamaWeights, config: LlamaConfig, start: int, trace: Tracer = no_trace
) -> tuple[Array, Array, Array]:
    """What the layers begin with: token vectors ``(n_new, d_model)``, and `rope_tables` from ``start`` on."""
    hidden = trace("embeddings.output", weights.token_table[np.asarray(ids)])
    positions = np.arange(start, start + len(ids))
    cos, sin = rope_tables(positions, config.d_head, config.rope_theta, hidden.dtype, config.rope_factors)
    return hidden, cos, sin


def layers(
    begin: tuple[Array, Array, Array],
    weights: LlamaWeights,
    config: LlamaConfig,
    cache: KVCache,
    ops: DecoderPrimitives = NUMPY_DECODER,
    trace: Tracer = no_trace,
) -> Array:
    """Hidden states behind the last layer, of tokens that follow those in ``cache``: ``(n_new, d_model)``."""
    hidden, *rope = begin
    for number, layer in enumerate(weights.layers):
        layer_trace = scoped(trace, f"layers.{number}")
        normed = layer_trace("attention.norm", ops.rms_norm(hidden, layer.attention_norm, config.norm_eps))
        attention_trace, ffn_trace = scoped(layer_trace, "attention"), scoped(layer_trace, "ffn")
        attended = causal_self_attention(
            normed, layer, number, config, (rope[0], rope[1]), cache, ops, attention_trace
        )
        hidden = ops.add(hidden, attended)
        normed = layer_trace("ffn.norm", ops.rms_norm(hidden, layer.ffn_norm, config.norm_eps))
        transformed = feed_forward(normed, layer, config.d_ff, ops, ffn_trace)
        hidden = layer_trace("output", ops.add(hidden, transformed))
    return hidden


def final_norm(
    hidden: Array, weights: LlamaWeights, config: LlamaConfig, ops: DecoderPrimitives = NUMPY_DECODER
) -> Array:
    """Return the norm between the last layer and the unembedding: ``(..., d_model)`` to the same."""
    return ops.rms_norm(hidden, weights.final_norm, config.norm_eps)


def trace_shapes(config: LlamaConfig, n_tokens: int) -> Shapes:
    """Shape of every array that a forward pass over ``n_tokens`` names."""
    vectors, inner = (n_tokens, config.d_model), (n_tokens, config.d_ff)
    heads = (config.n_heads, n_tokens, config.d_head)
    key_heads = (config.n_kv_heads, n_tokens, config.d_head)
    maps = (config.n_heads, n_tokens, n_tokens)
    layer: Shapes = {
        "attention.norm": vectors,
        "attention.query": heads,
        "attention.key": key_heads,
        "attention.value": key_heads,
        "attention.scores": maps,
        "attention.weights": maps,
        "attention.context": heads,
        "attention.output": vectors,
        "ffn.norm": vectors,
        "ffn.gate": inner,
        "ffn.hidden": inner,
        "ffn.activation": inner,
        "ffn.output": vectors,
        "output": vectors,
    }
    shapes: Shapes = {"embeddings.output": vectors}
    for i in range(config.n_layers):
        shapes |= {f"layers.{i}.{name}": shape for name, shape in layer.items()}
    return shapes | {"norm": vectors}
