"""The encoder-decoder of Vaswani et al. 2017, forward, and greedy decoding.

Ids are ``(..., n_tokens)``: one sequence, or a batch of them, padded with ``pad_id`` at their ends. Every
array that later code reads is traced, so a trace holds all that a backward pass needs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from engine.errors import InputError
from engine.layers.activation import relu
from engine.layers.attention import attention, causal_mask, merge_heads, split_heads
from engine.layers.linear import linear
from engine.layers.norm import layer_norm
from engine.layers.positions import sinusoidal
from engine.layers.tracing import Array, Tracer, no_trace, scoped

Params = Mapping[str, Array]  # dotted names, as `engine.models.seq2seq_params.parameter_shapes` lists them


@dataclass(frozen=True)
class Seq2SeqConfig:
    """Sizes of an encoder-decoder.

    One table of ``vocab_size`` vectors embeds source and target and, transposed, gives the logits
    (section 3.4). ``norm`` and ``residual`` switch off the norm and the residual connection around every
    part of a layer (``LayerNorm(x + Sublayer(x))``, section 3.1), to see their effect.
    """

    vocab_size: int
    d_model: int
    n_heads: int
    d_head: int
    d_ff: int
    n_encoder_layers: int
    n_decoder_layers: int
    max_positions: int
    pad_id: int = 0
    bos_id: int = 1
    eos_id: int = 2
    norm: Literal["post", "none"] = "post"
    residual: bool = True
    norm_eps: float = 1e-5

    def __post_init__(self) -> None:
        for name in ("vocab_size", "d_model", "n_heads", "d_head", "d_ff", "max_positions"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} {getattr(self, name)} is below 1: give a positive number")
        special = (self.pad_id, self.bos_id, self.eos_id)
        if len(set(special)) < 3 or not all(0 <= token < self.vocab_size for token in special):
            raise InputError(
                f"pad_id, bos_id and eos_id are {special}: give three different ids below the vocabulary's "
                f"{self.vocab_size}"
            )


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


def padding_mask(ids: Array, pad_id: int, dtype: np.dtype) -> Array:
    """0 at tokens, -inf at padding, for all heads and queries: ``(..., n_key) -> (..., 1, 1, n_key)``."""
    return np.where(ids == pad_id, -np.inf, 0).astype(dtype)[..., None, None, :]


def check_ids(ids: Array, config: Seq2SeqConfig) -> None:
    """Raise `InputError` for ids that the model has no vector or no position for, or that are all padding."""
    if ids.size == 0 or np.any(np.all(ids == config.pad_id, axis=-1)):
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
    """``LayerNorm(x + Sublayer(x))`` (section 3.1), without the parts that the configuration switches off."""
    total = trace("sum", x + sublayer if config.residual else sublayer)  # (..., n_tokens, d_model)
    if config.norm == "none":
        return total
    return layer_norm(total, params[f"{name}.norm.weight"], params[f"{name}.norm.bias"], config.norm_eps)


def encoder_layer(
    x: Array, mask: Array, params: Params, name: str, config: Seq2SeqConfig, trace: Tracer
) -> Array:
    """Self-attention and feed-forward, add & norm after each: ``(..., n_source, d_model)`` to the same."""
    part, part_trace = f"{name}.attention", scoped(trace, "attention")
    attended = multi_head_attention(x, x, mask, params, part, config, part_trace)
    x = part_trace("norm", add_and_norm(x, attended, params, part, config, part_trace))
    part, part_trace = f"{name}.ffn", scoped(trace, "ffn")
    transformed = feed_forward(x, params, part, part_trace)
    return trace("output", add_and_norm(x, transformed, params, part, config, part_trace))


def decoder_layer(
    x: Array,
    memory: Array,
    mask: Array,
    memory_mask: Array,
    params: Params,
    name: str,
    config: Seq2SeqConfig,
    trace: Tracer,
) -> Array:
    """Masked self-attention, cross-attention, feed-forward: ``(..., n_target, d_model)`` to the same."""
    part, part_trace = f"{name}.attention", scoped(trace, "attention")
    attended = multi_head_attention(x, x, mask, params, part, config, part_trace)
    x = part_trace("norm", add_and_norm(x, attended, params, part, config, part_trace))
    part, part_trace = f"{name}.cross_attention", scoped(trace, "cross_attention")
    attended = multi_head_attention(x, memory, memory_mask, params, part, config, part_trace)
    x = part_trace("norm", add_and_norm(x, attended, params, part, config, part_trace))
    part, part_trace = f"{name}.ffn", scoped(trace, "ffn")
    transformed = feed_forward(x, params, part, part_trace)
    return trace("output", add_and_norm(x, transformed, params, part, config, part_trace))


def encode(ids: Array, params: Params, config: Seq2SeqConfig, trace: Tracer = no_trace) -> Array:
    """Source vectors: ``(..., n_source) -> (..., n_source, d_model)``; those of padding are meaningless.

    Raises
    ------
    InputError
        For ids that the model cannot read (`check_ids`).
    """
    check_ids(ids, config)
    trace = scoped(trace, "encoder")
    x = embed(ids, params, config, scoped(trace, "embeddings"))
    mask = padding_mask(ids, config.pad_id, x.dtype)
    for i in range(config.n_encoder_layers):
        x = encoder_layer(x, mask, params, f"encoder.layers.{i}", config, scoped(trace, f"layers.{i}"))
    return x


def decode(
    ids: Array,
    memory: Array,
    source_ids: Array,
    params: Params,
    config: Seq2SeqConfig,
    trace: Tracer = no_trace,
) -> Array:
    """Logits of the token after each of ``ids``: ``(..., n_target) -> (..., n_target, vocab_size)``.

    ``memory`` is the result of `encode` for ``source_ids``. Padding is at the end of ``ids``, where the
    causal mask hides it from real tokens; its logits are meaningless.

    Raises
    ------
    InputError
        For ids that the model cannot read (`check_ids`).
    """
    check_ids(ids, config)
    decoder = scoped(trace, "decoder")
    x = embed(ids, params, config, scoped(decoder, "embeddings"))
    mask = causal_mask(ids.shape[-1], ids.shape[-1], x.dtype)
    memory_mask = padding_mask(source_ids, config.pad_id, x.dtype)
    for i in range(config.n_decoder_layers):
        name, part_trace = f"decoder.layers.{i}", scoped(decoder, f"layers.{i}")
        x = decoder_layer(x, memory, mask, memory_mask, params, name, config, part_trace)
    return trace("logits", linear(x, params["embedding.weight"]))


def greedy_decode(source_ids: Array, params: Params, config: Seq2SeqConfig, max_new_tokens: int) -> Array:
    """Append the most probable token until ``eos_id`` or the maximum: ``(..., n_source) -> (..., n_new)``.

    ``eos_id`` is part of a result, ``bos_id`` is not; a sequence that ends before others is padded
    with ``pad_id``.

    Raises
    ------
    InputError
        For ids that the model cannot read, or more new tokens than it has positions for.
    """
    if not 1 <= max_new_tokens <= config.max_positions:
        raise InputError(
            f"max_new_tokens {max_new_tokens} is not between 1 and the model's {config.max_positions} "
            "positions: give a number between them"
        )
    memory = encode(source_ids, params, config)
    target = np.full((*source_ids.shape[:-1], 1), config.bos_id)  # (..., 1)
    ended = np.zeros(target.shape, bool)
    while target.shape[-1] <= max_new_tokens and not ended.all():
        logits = decode(target, memory, source_ids, params, config)[..., -1, :]  # (..., vocab_size)
        best = np.where(ended, config.pad_id, logits.argmax(axis=-1)[..., None])
        ended |= best == config.eos_id
        target = np.concatenate([target, best], axis=-1)
    return target[..., 1:]
