"""Gemma 3 (Kamath et al. 2025), forward: norms around each sublayer, local and global attention, GeGLU.

It differs from Llama as follows. Token vectors are multiplied by ``sqrt(d_model)``. The output of attention
and of the feed-forward network is normed, too, before it is added. Queries and keys are normed head by head,
as in Qwen3. Most layers see a window of the last tokens, and rotate by frequencies of their own. The gate of
the feed-forward network is the tanh approximation of GELU.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..layers.primitives import NUMPY_DECODER, DecoderPrimitives
from ..layers.tracing import Array, Shapes, Tracer, no_trace
from . import llama
from .kv_cache import KVCache
from .llama import LlamaConfig, LlamaLayer, LlamaWeights, causal_self_attention
from .llama import final_norm as final_norm
from .rope import Rope, new_rotations
from .shared_layers import gated_feed_forward, layer_trace_shapes, run_layers


@dataclass(frozen=True, kw_only=True)
class Gemma3Config(LlamaConfig):
    """Sizes of a Gemma 3 decoder."""

    # rotations of the layers with a window; ``rope`` has those of the layers that see all tokens
    local_rope: Rope
    query_scalar: float  # scores are divided by its square root; it is ``d_head`` except in the largest model
    logit_cap: float | None  # soft bound of the logits; None for no bound
    activation: str = "gelu_new"


def parameter_count(config: Gemma3Config) -> int:
    """Number of parameters of a model of these sizes."""
    post_norms = 2 * config.n_layers * config.d_model
    return llama.parameter_count(config) + post_norms


def embed(
    ids: Sequence[int], weights: LlamaWeights, config: Gemma3Config, cache: KVCache, trace: Tracer = no_trace
) -> tuple[Array, ...]:
    """Inputs of the layers: scaled token vectors ``(n_new, d_model)``, and `new_rotations` of both kinds."""
    hidden = scaled(weights.token_table[np.asarray(ids)], config, trace)
    everywhere, local = (
        new_rotations(rope, len(ids), cache, hidden.dtype) for rope in (config.rope, config.local_rope)
    )
    return hidden, *everywhere, *local


def scaled(token: Array, config: Gemma3Config, trace: Tracer) -> Array:
    """Multiply token vectors ``(n_tokens, d_model)`` by ``sqrt(d_model)``."""
    token = trace("embeddings.token", token)
    factor = np.float32(np.sqrt(config.d_model))  # in every precision, as in transformers
    return trace("embeddings.output", token * token.dtype.type(factor))


def layers(
    inputs: tuple[Array, ...],
    weights: LlamaWeights,
    config: Gemma3Config,
    cache: KVCache | None,
    ops: DecoderPrimitives = NUMPY_DECODER,
    trace: Tracer = no_trace,
) -> Array:
    """Hidden states of the last layer, of tokens that follow those in ``cache``: ``(n_new, d_model)``.

    There is no cache where ``ops`` attend within whole texts.
    """
    hidden, cos, sin, local_cos, local_sin = inputs
    scale = config.query_scalar**-0.5

    def norm(x: Array, weight: Array) -> Array:
        return ops.rms_norm(x, weight, config.norm_eps)

    def post_norm(output: Array, weight: Array | None, trace: Tracer) -> Array:
        assert weight is not None  # all layers of the family have it
        return trace("post_norm", norm(output, weight))

    def attend(normed: Array, layer: LlamaLayer, number: int, trace: Tracer) -> Array:
        rope = (cos, sin) if config.windows[number] is None else (local_cos, local_sin)
        output = causal_self_attention(normed, layer, number, config, rope, cache, ops, trace, scale)
        return post_norm(output, layer.attention_post_norm, trace)

    def transform(normed: Array, layer: LlamaLayer, trace: Tracer) -> Array:
        output = gated_feed_forward(normed, layer, config.activation, ops, trace)
        return post_norm(output, layer.ffn_post_norm, trace)

    return run_layers(hidden, weights.layers, norm, attend, transform, ops.add, trace)


def trace_shapes(config: Gemma3Config, n_tokens: int) -> Shapes:
    """Shape of every array that a forward pass over ``n_tokens`` names."""
    hidden = ("gate", "hidden", "activation")
    norms = ("attention.norm", "attention.post_norm", "ffn.norm", "ffn.post_norm")
    return layer_trace_shapes(config, n_tokens, ("token", "output"), hidden, norms, head_norms=True)
