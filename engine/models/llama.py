"""Llama (Touvron et al. 2023) and its descendants, forward: RMS norm, RoPE, grouped queries, SwiGLU.

Qwen2 adds biases to queries, keys and values; Qwen3 (Yang et al. 2025) norms the queries and keys of each
head instead. In Mistral (Jiang et al. 2023) a token sees a window of the last tokens. SmolLM3 leaves the
rotations out in some layers (Yang et al. 2025, RNoPE). Phi-3 (Abdin et al. 2024) rotates a part of each head,
and long texts in another way (LongRoPE).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..layers.attention import merge_heads, split_heads
from ..layers.linear import Linear, Matrix
from ..layers.primitives import NUMPY_DECODER, DecoderPrimitives
from ..layers.tracing import Array, Shapes, Tracer, no_trace
from .kv_cache import KVCache
from .rope import Rope, new_rotations
from .shared_layers import gated_feed_forward, layer_trace_shapes, run_layers


@dataclass(frozen=True)
class LlamaConfig:
    """Sizes of a Llama-family decoder."""

    vocab_size: int
    d_model: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    d_head: int
    d_ff: int
    max_positions: int  # context length in tokens
    norm_eps: float
    rope: Rope  # rotations of queries and keys
    tied: bool  # the unembedding is the table of token embeddings
    biased: frozenset[str]  # matrices with a bias, by their keys in `matrix_shapes`: ``query``, ``gate``, …
    head_norms: bool  # the queries and keys of each head are normed before they are rotated
    # of each layer: last tokens that a token sees, itself among them; None for all
    windows: tuple[int | None, ...]
    rotated: tuple[bool, ...]  # whether each layer rotates queries and keys; the others do not know positions
    stacked: bool  # files hold query, key and value as one matrix, and gate and up as another
    activation: str = "silu"  # of the gate (`engine.layers.activation.gated`), a key of `ACTIVATIONS`
    is_causal: ClassVar[bool] = True  # of encoders, some are not


@dataclass(frozen=True)
class LlamaLayer:
    """Parameters of one layer; matrices that read the same input are stacked into one."""

    attention_norm: Array
    query_key_value: Linear  # ``((n_heads + 2 n_kv_heads) d_head, d_model)``
    attention_output: Linear
    ffn_norm: Array
    gate_up: Linear  # ``(2 d_ff, d_model)``
    ffn_output: Linear
    query_norm: Array | None = None  # with `head_norms`, as ``key_norm``: ``(d_head,)``
    key_norm: Array | None = None
    # Gemma 3 has norms behind attention and feed-forward network, too
    attention_post_norm: Array | None = None
    ffn_post_norm: Array | None = None


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
    """Number of parameters of a model of these sizes."""
    shapes = matrix_shapes(config)
    matrices = sum(d_out * d_in for d_out, d_in in shapes.values())
    biases = sum(shapes[part][0] for part in config.biased)
    head_norms = 2 * config.d_head if config.head_norms else 0
    layer = matrices + biases + head_norms + 2 * config.d_model  # and two norms
    tables = config.vocab_size * config.d_model * (1 if config.tied else 2)
    return tables + config.n_layers * layer + config.d_model


def causal_self_attention(
    normed: Array,
    layer: LlamaLayer,
    number: int,
    config: LlamaConfig,
    rope: tuple[Array, Array],
    cache: KVCache | None,
    ops: DecoderPrimitives,
    trace: Tracer,
    scale: float | None = None,
) -> Array:
    """Grouped-query attention over the cached and the new tokens: ``(n_new, d_model)`` to the same.

    Scores are multiplied by ``scale``, ``1 / sqrt(d_head)`` where it is None.
    """
    n_rotated = config.n_heads + config.n_kv_heads
    heads = split_heads(ops.linear(normed, *layer.query_key_value), n_rotated + config.n_kv_heads)
    query, key, value = np.split(heads, [config.n_heads, n_rotated])  # (n_.._heads, n_new, d_head)
    if layer.query_norm is not None and layer.key_norm is not None:
        query = trace("query_norm", ops.rms_norm(query, layer.query_norm, config.norm_eps))
        key = trace("key_norm", ops.rms_norm(key, layer.key_norm, config.norm_eps))
    if config.rotated[number]:
        query, key = ops.apply_rope(query, *rope), ops.apply_rope(key, *rope)
    window = config.windows[number]
    context = ops.causal_attention(query, key, value, cache, number, trace, window, scale)
    return trace("output", ops.linear(merge_heads(context), *layer.attention_output))


def embed(
    ids: Sequence[int], weights: LlamaWeights, config: LlamaConfig, cache: KVCache, trace: Tracer = no_trace
) -> tuple[Array, Array, Array]:
    """Inputs of the layers: token vectors ``(n_new, d_model)``, and `new_rotations` behind ``cache``."""
    hidden = trace("embeddings.output", weights.token_table[np.asarray(ids)])
    return hidden, *new_rotations(config.rope, len(ids), cache, hidden.dtype)


def layers(
    inputs: tuple[Array, Array, Array],
    weights: LlamaWeights,
    config: LlamaConfig,
    cache: KVCache | None,
    ops: DecoderPrimitives = NUMPY_DECODER,
    trace: Tracer = no_trace,
) -> Array:
    """Hidden states of the last layer, of tokens that follow those in ``cache``: ``(n_new, d_model)``.

    There is no cache where ``ops`` attend within whole texts.
    """
    hidden, cos, sin = inputs

    def norm(x: Array, weight: Array) -> Array:
        return ops.rms_norm(x, weight, config.norm_eps)

    def attend(normed: Array, layer: LlamaLayer, number: int, trace: Tracer) -> Array:
        return causal_self_attention(normed, layer, number, config, (cos, sin), cache, ops, trace)

    def transform(normed: Array, layer: LlamaLayer, trace: Tracer) -> Array:
        return gated_feed_forward(normed, layer, config.activation, ops, trace)

    return run_layers(hidden, weights.layers, norm, attend, transform, ops.add, trace)


def final_norm(
    hidden: Array, weights: LlamaWeights, config: LlamaConfig, ops: DecoderPrimitives = NUMPY_DECODER
) -> Array:
    """Return the norm between the last layer and the unembedding: ``(..., d_model)`` to the same."""
    return ops.rms_norm(hidden, weights.final_norm, config.norm_eps)


def trace_shapes(config: LlamaConfig, n_tokens: int) -> Shapes:
    """Shape of every array that a forward pass over ``n_tokens`` names."""
    hidden = ("gate", "hidden", "activation")
    return layer_trace_shapes(config, n_tokens, ("output",), hidden, head_norms=config.head_norms)
