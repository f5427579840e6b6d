"""The forward pass of the encoder-decoder of Vaswani et al. 2017.

Ids are ``(..., n_tokens)``: one sequence, or a batch of sequences of one length.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from ..layers.activation import relu
from ..layers.attention import attention, causal_mask, merge_heads, split_heads
from ..layers.linear import linear
from ..layers.norm import layer_norm
from ..layers.positions import sinusoidal
from ..layers.tracing import Array, Tracer, no_trace, scoped

Params = Mapping[str, Array]  # dotted names, as `engine.models.seq2seq_params.parameter_shapes` lists them


@dataclass(frozen=True)
class Seq2SeqConfig:
    """Sizes of an encoder-decoder."""

    vocab_size: int  # vectors of one table for source, target and, transposed, the logits (section 3.4)
    d_model: int
    n_heads: int
    d_head: int
    d_ff: int
    n_encoder_layers: int
    n_decoder_layers: int
    max_positions: int
    norm_eps: float = 1e-5


# The base model of the paper's table 3; its English-German vocabulary has "about 37000 tokens" (section 5.1).
BASE_2017 = Seq2SeqConfig(
    vocab_size=37_000,
    d_model=512,
    n_heads=8,
    d_head=64,
    d_ff=2048,
    n_encoder_layers=6,
    n_decoder_layers=6,
    max_positions=1024,
)


def affine(x: Array, params: Params, name: str) -> Array:
    """``x W^T + b`` with the parameters of that name."""
    return linear(x, params[f"{name}.weight"], params[f"{name}.bias"])


def check_ids(ids: Array, config: Seq2SeqConfig) -> None:
    """Raise `InputError` for ids that the model has no vector or no position for, or no ids."""
    if ids.size == 0:
        raise InputError("a sequence has no token at all: give every sequence at least one")
    if ids.shape[-1] > config.max_positions:
        raise InputError(
            f"a sequence of {ids.shape[-1]} tokens exceeds the model's {config.max_positions} positions: "
            "shorten it, or raise max_positions"
        )
    if ids.min() < 0 or ids.max() >= config.vocab_size:
        wrong = ids[(ids < 0) | (ids >= config.vocab_size)][0]
        raise InputError(
            f"token id {wrong} is not in the vocabulary: ids go from 0 to {config.vocab_size - 1}"
        )


def embed(ids: Array, params: Params, config: Seq2SeqConfig, trace: Tracer) -> Array:
    """Token vectors times sqrt(d_model), plus positions: ``(..., n_tokens) -> (..., n_tokens, d_model)``."""
    rows = params["embedding.weight"][ids]  # (..., n_tokens, d_model)
    token = trace("token", rows * rows.dtype.type(np.sqrt(config.d_model)))
    position = trace("position", sinusoidal(np.arange(ids.shape[-1]), config.d_model, rows.dtype))
    return trace("output", token + position)


def multi_head_attention(
    x: Array,
    source: Array,
    mask: Array | None,
    params: Params,
    name: str,
    config: Seq2SeqConfig,
    trace: Tracer,
) -> Array:
    """``Concat(head_1, …, head_h) W^O`` (section 3.2.2), queries from ``x``, keys and values from ``source``.

    ``(..., n_query, d_model)`` and ``(..., n_key, d_model)`` to the shape of ``x``; heads are
    ``(..., n_heads, n_tokens, d_head)``, and ``mask`` is added to their scores.
    """
    query = trace("query", split_heads(affine(x, params, f"{name}.query"), config.n_heads))
    key = trace("key", split_heads(affine(source, params, f"{name}.key"), config.n_heads))
    value = trace("value", split_heads(affine(source, params, f"{name}.value"), config.n_heads))
    context = attention(query, key, value, mask, trace)  # (..., n_heads, n_query, d_head)
    merged = trace("merged", merge_heads(context))  # (..., n_query, n_heads * d_head)
    return trace("output", affine(merged, params, f"{name}.output"))


def feed_forward(x: Array, params: Params, name: str, trace: Tracer) -> Array:
    """``max(0, x W1 + b1) W2 + b2`` (section 3.3): ``(..., d_model) -> (..., d_ff) -> (..., d_model)``."""
    hidden = trace("hidden", affine(x, params, f"{name}.hidden"))
    activation = trace("activation", relu(hidden))
    return trace("output", affine(activation, params, f"{name}.output"))


def add_and_norm(
    x: Array, sublayer: Array, params: Params, name: str, config: Seq2SeqConfig, trace: Tracer
) -> Array:
    """``LayerNorm(x + Sublayer(x))`` (section 3.1)."""
    total = trace("sum", x + sublayer)  # (..., n_tokens, d_model)
    return layer_norm(total, params[f"{name}.norm.weight"], params[f"{name}.norm.bias"], config.norm_eps)


def layer_forward(
    x: Array,
    memory: Array | None,
    mask: Array | None,
    params: Params,
    name: str,
    config: Seq2SeqConfig,
    trace: Tracer,
) -> Array:
    """Self-attention, cross-attention to a decoder's ``memory``, feed-forward; add & norm after each.

    ``(..., n_tokens, d_model)`` to the same.
    """
    for kind, source, seen in (("attention", x, mask), ("cross_attention", memory, None)):
        if source is not None:
            part, part_trace = f"{name}.{kind}", scoped(trace, kind)
            attended = multi_head_attention(x, source, seen, params, part, config, part_trace)
            x = part_trace("norm", add_and_norm(x, attended, params, part, config, part_trace))
    part, part_trace = f"{name}.ffn", scoped(trace, "ffn")
    transformed = feed_forward(x, params, part, part_trace)
    return trace("output", add_and_norm(x, transformed, params, part, config, part_trace))


def encode(ids: Array, params: Params, config: Seq2SeqConfig, trace: Tracer = no_trace) -> Array:
    """Source vectors: ``(..., n_source) -> (..., n_source, d_model)``."""
    check_ids(ids, config)
    trace = scoped(trace, "encoder")
    x = embed(ids, params, config, scoped(trace, "embeddings"))
    for i in range(config.n_encoder_layers):
        name, part_trace = f"encoder.layers.{i}", scoped(trace, f"layers.{i}")
        x = layer_forward(x, None, None, params, name, config, part_trace)
    return x


def decode(
    ids: Array, memory: Array, params: Params, config: Seq2SeqConfig, trace: Tracer = no_trace
) -> Array:
    """Logits after each of ``ids``, ``(..., n_target, vocab_size)``; `encode` returned the ``memory``."""
    check_ids(ids, config)
    decoder = scoped(trace, "decoder")
    x = embed(ids, params, config, scoped(decoder, "embeddings"))
    mask = causal_mask(ids.shape[-1], ids.shape[-1], x.dtype)
    for i in range(config.n_decoder_layers):
        name, part_trace = f"decoder.layers.{i}", scoped(decoder, f"layers.{i}")
        x = layer_forward(x, memory, mask, params, name, config, part_trace)
    return trace("logits", linear(x, params["embedding.weight"]))
