"""BERT (Devlin et al. 2019), forward.

Texts of a batch are packed: their tokens stand one below the other in one matrix, so every linear
layer is a single product and nothing is padded; only attention goes text by text.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.errors import ModelFileError
from engine.layers.activation import ACTIVATIONS
from engine.layers.attention import attention, merge_heads, split_heads
from engine.layers.linear import Linear, linear
from engine.layers.norm import LayerNorm, layer_norm
from engine.layers.tracing import Array, Tracer, no_trace, scoped
from engine.weights.tensors import config_float, config_size, read_json, require, shaped


@dataclass(frozen=True)
class EncoderConfig:
    """Sizes of a BERT-family encoder; ``max_positions`` is the length of its position table."""

    vocab_size: int
    d_model: int
    n_layers: int
    n_heads: int
    d_ff: int
    max_positions: int
    n_types: int
    norm_eps: float
    activation: str


@dataclass(frozen=True)
class EncoderLayer:
    """Parameters of one layer."""

    query: Linear
    key: Linear
    value: Linear
    attention_output: Linear
    attention_norm: LayerNorm
    ffn_hidden: Linear
    ffn_output: Linear
    output_norm: LayerNorm


@dataclass(frozen=True)
class EncoderWeights:
    """Parameters of the whole encoder; embedding tables are ``(n_rows, d_model)``."""

    token_table: Array
    position_table: Array
    type_table: Array
    embedding_norm: LayerNorm
    layers: tuple[EncoderLayer, ...]
    pooler: Linear | None


def embed(ids: Array, positions: Array, weights: EncoderWeights, eps: float, trace: Tracer) -> Array:
    """Sum of token, position and type embedding, normed: ``(n_tokens,) -> (n_tokens, d_model)``."""
    token = trace("token", weights.token_table[ids])  # (n_tokens, d_model)
    position = trace("position", weights.position_table[positions])
    segment = trace("type", weights.type_table[np.zeros_like(ids)])  # a single text is all segment 0
    total = trace("sum", token + position + segment)
    return trace("output", layer_norm(total, *weights.embedding_norm, eps))


def self_attention(
    hidden: Array, layer: EncoderLayer, n_heads: int, spans: Sequence[slice], trace: Tracer
) -> Array:
    """Multi-head self-attention within each text of the pack: ``(n_tokens, d_model)`` to the same."""
    query = trace("query", split_heads(linear(hidden, *layer.query), n_heads))  # (n_heads, n_tokens, d_head)
    key = trace("key", split_heads(linear(hidden, *layer.key), n_heads))
    value = trace("value", split_heads(linear(hidden, *layer.value), n_heads))
    contexts = [attention(query[:, s], key[:, s], value[:, s], trace=trace) for s in spans]
    return trace("output", linear(merge_heads(np.concatenate(contexts, axis=1)), *layer.attention_output))


def feed_forward(
    hidden: Array, layer: EncoderLayer, activation: Callable[[Array], Array], trace: Tracer
) -> Array:
    """``W2 act(W1 x + b1) + b2``: ``(n_tokens, d_model) -> (n_tokens, d_ff) -> (n_tokens, d_model)``."""
    inner = trace("hidden", linear(hidden, *layer.ffn_hidden))
    activated = trace("activation", activation(inner))
    return trace("output", linear(activated, *layer.ffn_output))


def encoder_layer(
    hidden: Array, layer: EncoderLayer, config: EncoderConfig, spans: Sequence[slice], trace: Tracer
) -> Array:
    """Attention and feed-forward, each followed by residual and layer norm (post-norm)."""
    attended = self_attention(hidden, layer, config.n_heads, spans, scoped(trace, "attention"))
    hidden = trace("attention.norm", layer_norm(hidden + attended, *layer.attention_norm, config.norm_eps))
    transformed = feed_forward(hidden, layer, ACTIVATIONS[config.activation], scoped(trace, "ffn"))
    return trace("output", layer_norm(hidden + transformed, *layer.output_norm, config.norm_eps))


def encoder_forward(
    sequences: Sequence[Sequence[int]],
    weights: EncoderWeights,
    config: EncoderConfig,
    trace: Tracer = no_trace,
) -> list[Array]:
    """Token vectors of each sequence of ids: a list of ``(n_tokens, d_model)``."""
    ids = np.concatenate([np.asarray(sequence) for sequence in sequences])  # (all tokens of the pack,)
    positions = np.concatenate([np.arange(len(sequence)) for sequence in sequences])
    ends = np.cumsum([len(sequence) for sequence in sequences])
    spans = [slice(end - len(sequence), end) for sequence, end in zip(sequences, ends, strict=True)]

    hidden = embed(ids, positions, weights, config.norm_eps, scoped(trace, "embeddings"))
    for number, layer in enumerate(weights.layers):
        hidden = encoder_layer(hidden, layer, config, spans, scoped(trace, f"layers.{number}"))
    return [hidden[span] for span in spans]


def read_config(folder: Path) -> EncoderConfig:
    """Read a BERT-family config.json."""
    raw = read_json(folder / "config.json")
    if raw.get("model_type") != "bert":
        raise ModelFileError(
            f"{folder} is a {raw.get('model_type')!r} model: the encoder reads BERT-family models ('bert')"
        )
    if raw.get("position_embedding_type", "absolute") != "absolute":
        raise ModelFileError(
            f"{folder} uses {raw['position_embedding_type']!r} positions: only absolute is read"
        )
    if raw.get("hidden_act") not in list(ACTIVATIONS):
        raise ModelFileError(
            f"{folder}: activation {raw.get('hidden_act')!r} is not one of {', '.join(ACTIVATIONS)}"
        )
    config = EncoderConfig(
        vocab_size=config_size(raw, "vocab_size"),
        d_model=config_size(raw, "hidden_size"),
        n_layers=config_size(raw, "num_hidden_layers"),
        n_heads=config_size(raw, "num_attention_heads"),
        d_ff=config_size(raw, "intermediate_size"),
        max_positions=config_size(raw, "max_position_embeddings"),
        n_types=config_size(raw, "type_vocab_size"),
        norm_eps=config_float(raw, "layer_norm_eps"),
        activation=raw["hidden_act"],
    )
    if config.d_model % config.n_heads:
        raise ModelFileError(
            f"{folder}: hidden_size {config.d_model} does not divide into {config.n_heads} heads"
        )
    return config


def read_weights(tensors: dict[str, Array], config: EncoderConfig, dtype: np.dtype) -> EncoderWeights:
    """Name the tensors of a BERT checkpoint, with or without the prefix ``bert.``."""
    tensors = {name.removeprefix("bert."): array for name, array in tensors.items()}
    d_model, d_ff = config.d_model, config.d_ff

    def tensor(name: str, *shape: int) -> Array:
        return shaped(require(tensors, name), name, shape, dtype)

    def dense(name: str, d_in: int, d_out: int) -> Linear:
        return Linear(tensor(f"{name}.weight", d_out, d_in), tensor(f"{name}.bias", d_out))

    def norm(name: str) -> LayerNorm:
        return LayerNorm(tensor(f"{name}.weight", d_model), tensor(f"{name}.bias", d_model))

    def layer(prefix: str) -> EncoderLayer:
        return EncoderLayer(
            query=dense(f"{prefix}.attention.self.query", d_model, d_model),
            key=dense(f"{prefix}.attention.self.key", d_model, d_model),
            value=dense(f"{prefix}.attention.self.value", d_model, d_model),
            attention_output=dense(f"{prefix}.attention.output.dense", d_model, d_model),
            attention_norm=norm(f"{prefix}.attention.output.LayerNorm"),
            ffn_hidden=dense(f"{prefix}.intermediate.dense", d_model, d_ff),
            ffn_output=dense(f"{prefix}.output.dense", d_ff, d_model),
            output_norm=norm(f"{prefix}.output.LayerNorm"),
        )

    def table(name: str, n_rows: int) -> Array:
        return tensor(f"embeddings.{name}_embeddings.weight", n_rows, d_model)

    return EncoderWeights(
        token_table=table("word", config.vocab_size),
        position_table=table("position", config.max_positions),
        type_table=table("token_type", config.n_types),
        embedding_norm=norm("embeddings.LayerNorm"),
        layers=tuple(layer(f"encoder.layer.{number}") for number in range(config.n_layers)),
        pooler=dense("pooler.dense", d_model, d_model) if "pooler.dense.weight" in tensors else None,
    )
