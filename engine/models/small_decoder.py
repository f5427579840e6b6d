"""A small decoder to train: GPT-2's layers with a choice of positions and of norm order.

Ids are ``(..., n_tokens)``: one sequence, or a batch of sequences of equal length. Every array that the
backward pass (`engine.training.backward.small_decoder`) reads is traced, under the same names as in other
decoders.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..errors import ContextLengthError, InputError
from ..layers.activation import ACTIVATIONS
from ..layers.attention import causal_mask, merge_heads
from ..layers.dropout import dropout
from ..layers.embedding import embedding
from ..layers.linear import linear
from ..layers.positions import alibi_bias, apply_rope, learned, rope_tables, sinusoidal
from ..layers.primitives import NUMPY_TRAINING, TrainingPrimitives
from ..layers.tracing import Array, Tracer, no_trace, scoped
from .kv_cache import KVCache, OwnKeyHeads

Params = Mapping[str, Array]  # dotted names, as `parameter_shapes` lists them
Positions = Literal["sinusoidal", "learned", "rope", "alibi"]
ROPE_THETA = 10_000.0
NORM_EPS = 1e-5


@dataclass(frozen=True)
class SmallDecoderConfig(OwnKeyHeads):
    """Sizes of a small decoder; the transposed embedding table is the unembedding."""

    vocab_size: int
    d_model: int = 128
    n_layers: int = 4
    n_heads: int = 4
    d_ff: int = 512
    context: int = 128
    positions: Positions = "learned"
    # norms stand before each part, with one more at the end (GPT-2), else behind the sums (Vaswani et al.
    # 2017)
    norm_first: bool = True
    dropout: float = 0.0  # of the embeddings and of the output of each part
    activation: str = "gelu"

    def __post_init__(self) -> None:
        for name in ("vocab_size", "d_model", "n_layers", "n_heads", "d_ff", "context"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}: give 1 or more")
        if self.d_model % self.n_heads:
            raise InputError(
                f"d_model {self.d_model} cannot be shared by {self.n_heads} heads: give a multiple"
            )
        if self.positions == "rope" and self.d_head % 2:
            raise InputError(f"RoPE turns pairs, and a head has {self.d_head} numbers: give an even number")
        if self.positions not in ("sinusoidal", "learned", "rope", "alibi"):
            raise InputError(
                f"positions {self.positions!r} are unknown: give sinusoidal, learned, rope or alibi"
            )
        if self.activation not in ACTIVATIONS:
            raise InputError(
                f"activation {self.activation!r} is unknown: give one of {', '.join(ACTIVATIONS)}"
            )
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout is {self.dropout}: give 0 (none) to less than 1")


def forward(
    params: Params,
    ids: Array,
    config: SmallDecoderConfig,
    trace: Tracer = no_trace,
    cache: KVCache | None = None,
    rng: np.random.Generator | None = None,
    ops: TrainingPrimitives = NUMPY_TRAINING,
) -> Array:
    """Logits of the token after each of ``ids``: ``(..., n_tokens) -> (..., n_tokens, vocab_size)``.

    ``params`` are named as in `parameter_shapes`. A ``cache`` has the keys and values of the tokens before
    one sequence, and gets the new ones; ``rng`` is for dropout in training, None for none; ``ops`` are
    NumPy's primitives, or their compiled twins.
    """
    start = 0 if cache is None else cache.length
    check_ids(ids, start, config)
    positions = np.arange(start, start + ids.shape[-1])
    x = embed(params, ids, positions, config, scoped(trace, "embeddings"), rng)
    placed = _AttentionPositions.of(positions, config, x.dtype)
    for i in range(config.n_layers):
        layer_trace = scoped(trace, f"layers.{i}")
        for part in ("attention", "ffn"):  # each adds to x, with a norm before or after
            name, part_trace = f"layers.{i}.{part}", scoped(layer_trace, part)
            part_trace("input", x)
            inputs = part_trace("norm", _norm(x, params, name, ops)) if config.norm_first else x
            if part == "attention":
                outputs = _attend(inputs, name, i, params, config, placed, cache, part_trace, ops)
            else:  # f(x W1 + b1) W2 + b2
                hidden = part_trace("hidden", _affine(inputs, params, f"{name}.hidden"))  # (..., d_ff)
                activation = ops.activations[config.activation].forward(hidden)
                activation = part_trace("activation", activation)
                outputs = part_trace("output", _affine(activation, params, f"{name}.output"))
            total = x + _dropped(outputs, config.dropout, part_trace, rng)
            x = total if config.norm_first else _norm(part_trace("sum", total), params, name, ops)
        x = layer_trace("output", x)
    if cache is not None:
        cache.length += ids.shape[-1]
    if config.norm_first:
        x = trace("final.output", _norm(trace("final.input", x), params, "final", ops))
    return trace("logits", linear(x, params["embedding.weight"]))


def embed(
    params: Params,
    ids: Array,
    positions: Array,
    config: SmallDecoderConfig,
    trace: Tracer = no_trace,
    rng: np.random.Generator | None = None,
) -> Array:
    """Token vectors, plus position vectors if there are any: ``(..., n_tokens, d_model)``."""
    x = trace("token", embedding(params["embedding.weight"], ids))
    if config.positions == "learned":
        x = x + learned(params["positions.weight"], positions)
    elif config.positions == "sinusoidal":
        x = x * token_scale(config, x.dtype) + sinusoidal(positions, config.d_model, x.dtype)
    return _dropped(x, config.dropout, trace, rng)


def token_scale(config: SmallDecoderConfig, dtype: np.dtype) -> np.generic:
    """``sqrt(d_model)``, the scale of token vectors that sinusoids are added to (section 3.4)."""
    scale: np.generic = dtype.type(np.sqrt(config.d_model))
    return scale


def check_ids(ids: Array, start: int, config: SmallDecoderConfig) -> None:
    """Raise the errors of `forward` for ``ids`` that follow ``start`` tokens."""
    if ids.size == 0:
        raise InputError("there is no token to read: give at least one")
    if start + ids.shape[-1] > config.context:
        raise ContextLengthError(
            f"{start + ids.shape[-1]} tokens exceed the model's context of {config.context}: "
            "shorten the text, or train a model with a longer context"
        )
    if ids.min() < 0 or ids.max() >= config.vocab_size:
        wrong = ids[(ids < 0) | (ids >= config.vocab_size)][0]
        raise InputError(
            f"token id {wrong} is not in the vocabulary: ids go from 0 to {config.vocab_size - 1}"
        )


@dataclass(frozen=True)
class _AttentionPositions:
    """Positions in attention: ``mask`` is added to the scores, ``rope`` are cos and sin of RoPE or None."""

    mask: Array
    rope: tuple[Array, Array] | None

    @classmethod
    def of(cls, positions: Array, config: SmallDecoderConfig, dtype: np.dtype) -> "_AttentionPositions":
        n_query, n_key = len(positions), int(positions[-1]) + 1
        mask = causal_mask(n_query, n_key, dtype)  # (n_query, n_key)
        if config.positions == "alibi":
            mask = mask + alibi_bias(config.n_heads, n_query, n_key, dtype)  # (n_heads, n_query, n_key)
        if config.positions != "rope":
            return cls(mask, None)
        return cls(mask, rope_tables(positions, config.d_head, ROPE_THETA, dtype))


def _attend(
    x: Array,
    name: str,
    layer: int,
    params: Params,
    config: SmallDecoderConfig,
    positions: _AttentionPositions,
    cache: KVCache | None,
    trace: Tracer,
    ops: TrainingPrimitives,
) -> Array:
    """Multi-head causal attention with one matrix for queries, keys and values: the shape of ``x``."""
    qkv = _affine(x, params, f"{name}.qkv").reshape(*x.shape[:-1], 3, config.n_heads, config.d_head)
    # (..., n_tokens, 3, n_heads, d_head) -> 3 views (..., n_heads, n_tokens, d_head)
    query, key, value = (qkv[..., j, :, :].swapaxes(-3, -2) for j in range(3))
    if positions.rope is not None:
        query, key = apply_rope(query, *positions.rope), apply_rope(key, *positions.rope)
    if cache is not None:
        key, value = cache.extend(layer, key, value)
    trace("query", query), trace("key", key), trace("value", value)
    context = ops.attention(query, key, value, positions.mask, trace)
    merged = trace("merged", merge_heads(context))  # (..., n_tokens, d_model)
    return trace("output", _affine(merged, params, f"{name}.output"))


def _affine(x: Array, params: Params, name: str) -> Array:
    return linear(x, params[f"{name}.weight"], params[f"{name}.bias"])


def _norm(x: Array, params: Params, name: str, ops: TrainingPrimitives) -> Array:
    return ops.layer_norm(x, params[f"{name}.norm.weight"], params[f"{name}.norm.bias"], NORM_EPS)


def _dropped(x: Array, rate: float, trace: Tracer, rng: np.random.Generator | None) -> Array:
    """Dropout in training; traces the mask."""
    if rng is None or rate == 0:
        return x
    x, mask = dropout(x, rate, rng)
    trace("dropout", mask)
    return x
