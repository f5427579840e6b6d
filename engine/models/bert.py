"""BERT (Devlin et al. 2019), forward.

Texts of a batch are packed: their tokens are the rows of one matrix, so every linear layer is a single
product without padding; only attention runs text by text.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from ..errors import ModelFileError
from ..layers.attention import split_heads
from ..layers.linear import Linear
from ..layers.norm import LayerNorm
from ..layers.primitives import NUMPY, Primitives
from ..layers.tracing import Array, Shapes, Tracer, no_trace, scoped
from ..weights.tensors import TensorReader, config_size, read_json
from .kv_cache import OwnKeyHeads
from .parallel import packed
from .shared_layers import attention_output, config_fields, feed_forward, layer_trace_shapes, post_norm_layer


@dataclass(frozen=True)
class EncoderConfig(OwnKeyHeads):
    """Sizes of a BERT-family encoder."""

    is_causal: ClassVar[bool] = False

    vocab_size: int
    d_model: int
    n_layers: int
    n_heads: int
    d_ff: int
    max_positions: int  # length of the position table
    n_types: int  # number of segments
    norm_eps: float
    activation: str
    # norms stand before each part of a layer, not behind (Xiong et al. 2020), for which no BERT was trained:
    # it shows the effect
    norm_first: bool = False


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
    position_table: Array | None  # None for families that rotate
    type_table: Array | None  # None for those without segments
    embedding_norm: LayerNorm
    layers: tuple[Any, ...]  # those of the family
    pooler: Linear | None


def embed(
    ids: Array,
    positions: Array,
    types: Array,
    weights: EncoderWeights,
    eps: float,
    ops: Primitives,
    trace: Tracer,
) -> Array:
    """Sum of token, position and type embedding, normed: ``(n_tokens,) -> (n_tokens, d_model)``."""
    total = trace("token", weights.token_table[ids])  # (n_tokens, d_model)
    if weights.position_table is not None:
        total = total + trace("position", weights.position_table[positions])
    if weights.type_table is not None:
        total = total + trace("type", weights.type_table[types])
    total = trace("sum", total)
    return trace("output", ops.layer_norm(total, *weights.embedding_norm, eps))


def encoder_layer(
    hidden: Array,
    layer: EncoderLayer,
    config: EncoderConfig,
    spans: Sequence[slice],
    ops: Primitives,
    trace: Tracer,
    masks: Sequence[Array | None] | None = None,
) -> Array:
    """Attention and feed-forward, each with a residual, and a layer norm after it (or in front).

    Each text of the pack attends to itself; ``masks`` are added to the scores of each, ``(n_heads, n_tokens,
    n_tokens)`` or broadcast to it.
    """

    def attend(x: Array, trace: Tracer) -> Array:
        query = trace("query", split_heads(ops.linear(x, *layer.query), config.n_heads))
        key = trace("key", split_heads(ops.linear(x, *layer.key), config.n_heads))
        value = trace("value", split_heads(ops.linear(x, *layer.value), config.n_heads))
        contexts = [  # of (n_heads, n_tokens, d_head)
            ops.attention(query[:, s], key[:, s], value[:, s], mask, trace)
            for s, mask in zip(spans, masks or [None] * len(spans), strict=True)
        ]
        return attention_output(contexts, layer.attention_output, ops, trace)

    def transform(x: Array, trace: Tracer) -> Array:
        return feed_forward(x, layer, config.activation, ops, trace)

    return post_norm_layer(hidden, layer, config.norm_eps, attend, transform, ops, trace, config.norm_first)


def encoder_forward(
    sequences: Sequence[Sequence[int]],
    weights: EncoderWeights,
    config: EncoderConfig,
    trace: Tracer = no_trace,
    ops: Primitives = NUMPY,
    type_ids: Sequence[Sequence[int]] | None = None,
    positions: Sequence[Array] | None = None,
    masks: Sequence[Array] | None = None,
) -> list[Array]:
    """Token vectors of each sequence of ids: a list of ``(n_tokens, d_model)``.

    ``type_ids`` are the segments of each sequence's tokens, all 0 for None; ``positions`` the rows of the
    position table, counted from 0 for None; ``masks`` are as in `encoder_layer`. Compiled ``ops`` overwrite
    traced arrays: trace with NumPy's.
    """
    ids, places, spans = packed(sequences)
    if positions:
        places = np.concatenate(positions)
    types = joined_types(ids, type_ids)
    embeddings_trace = scoped(trace, "embeddings")
    hidden = embed(ids, places, types, weights, config.norm_eps, ops, embeddings_trace)
    for number, layer in enumerate(weights.layers):
        hidden = encoder_layer(hidden, layer, config, spans, ops, scoped(trace, f"layers.{number}"), masks)
    return [hidden[span] for span in spans]


def joined_types(ids: Array, type_ids: Sequence[Sequence[int]] | None) -> Array:
    """Return the segments of all tokens of a pack, ``(n_tokens,)``: all 0 for None."""
    return np.zeros_like(ids) if type_ids is None else np.concatenate([np.asarray(t) for t in type_ids])


def trace_shapes(config: EncoderConfig, n_tokens: int) -> Shapes:
    """Shape of every array that a forward pass over one text names."""
    embeddings = ("token", "position", *(["type"] if config.n_types else []), "sum", "output")
    hidden = ("hidden", "activation")
    return layer_trace_shapes(config, n_tokens, embeddings, hidden, ("attention.norm",), final_norm=False)


def read_config(folder: Path, has_segments: bool = True, positions: str = "absolute") -> EncoderConfig:
    """Read a config.json with BERT's names; families without segments state no number of them."""
    raw = read_json(folder / "config.json")
    if raw.get("position_embedding_type", "absolute") != positions:
        raise ModelFileError(
            f"{folder} uses {raw['position_embedding_type']!r} positions: only {positions} is read"
        )
    if raw.get("is_decoder"):
        raise ModelFileError(f"{folder} reads left to right (is_decoder), which no encoder does: use another")
    return checked_config(
        EncoderConfig(
            **config_fields(raw, "layer_norm_eps", "hidden_act"),
            n_types=config_size(raw, "type_vocab_size") if has_segments else 0,
        ),
        folder,
    )


Config = TypeVar("Config", bound=EncoderConfig)


def checked_config(config: Config, folder: Path) -> Config:
    """Return the sizes; raise `ModelFileError` for heads that do not fit."""
    if config.d_model % config.n_heads:
        raise ModelFileError(
            f"{folder}: hidden_size {config.d_model} does not divide into {config.n_heads} heads"
        )
    return config


@dataclass(frozen=True)
class TensorNames:
    """Names of a family's tensors, without ``.weight`` and ``.bias``; those of a layer follow its prefix."""

    prefix: str = "bert."
    layer: str = "encoder.layer.{}."
    query: str = "attention.self.query"
    key: str = "attention.self.key"
    value: str = "attention.self.value"
    attention_output: str = "attention.output.dense"
    attention_norm: str = "attention.output.LayerNorm"
    ffn_hidden: str = "intermediate.dense"
    ffn_output: str = "output.dense"
    output_norm: str = "output.LayerNorm"


BERT_NAMES = TensorNames()


def read_weights(
    tensors: dict[str, Array],
    config: EncoderConfig,
    dtype: np.dtype,
    names: TensorNames = BERT_NAMES,
    n_rows: int | None = None,
) -> EncoderWeights:
    """Name the tensors of a checkpoint of BERT's layout, with or without the prefix of its family.

    ``n_rows`` is the length of the position table where it is not ``config.max_positions``.
    """
    tensors = {name.removeprefix(names.prefix): array for name, array in tensors.items()}
    read = TensorReader(tensors, dtype)
    d_model, d_ff = config.d_model, config.d_ff

    def layer(number: int) -> EncoderLayer:
        prefix = names.layer.format(number)
        return EncoderLayer(
            query=read.dense(prefix + names.query, d_model, d_model),
            key=read.dense(prefix + names.key, d_model, d_model),
            value=read.dense(prefix + names.value, d_model, d_model),
            attention_output=read.dense(prefix + names.attention_output, d_model, d_model),
            attention_norm=read.norm(prefix + names.attention_norm, d_model),
            ffn_hidden=read.dense(prefix + names.ffn_hidden, d_model, d_ff),
            ffn_output=read.dense(prefix + names.ffn_output, d_ff, d_model),
            output_norm=read.norm(prefix + names.output_norm, d_model),
        )

    return with_embeddings(read, config, layer, n_rows or config.max_positions)


def with_embeddings(
    read: TensorReader,
    config: EncoderConfig,
    layer: Callable[[int], Any],
    n_positions: int = 0,
    norm: str = "embeddings.LayerNorm",
) -> EncoderWeights:
    """Read the embeddings and the pooler of a checkpoint of BERT's layout, and each ``layer`` by its number.

    There is no position table for 0 ``n_positions``; ``norm`` is the name of that of the embeddings.
    """
    d_model = config.d_model

    def table(name: str, n_rows: int) -> Array:
        return read.tensor(f"embeddings.{name}_embeddings.weight", n_rows, d_model)

    return EncoderWeights(
        token_table=table("word", config.vocab_size),
        position_table=table("position", n_positions) if n_positions else None,
        type_table=table("token_type", config.n_types) if config.n_types else None,
        embedding_norm=read.norm(norm, d_model),
        layers=tuple(layer(number) for number in range(config.n_layers)),
        pooler=read.dense("pooler.dense", d_model, d_model)
        if "pooler.dense.weight" in read.tensors
        else None,
    )


def embedding_tensors(weights: EncoderWeights) -> dict[str, Array]:
    """Return the tensors in front of the layers by their names in a checkpoint of BERT."""
    norm = weights.embedding_norm._asdict()
    tables = {
        "word_embeddings.weight": weights.token_table,
        "position_embeddings.weight": weights.position_table,
        "token_type_embeddings.weight": weights.type_table,
        **{f"LayerNorm.{kind}": array for kind, array in norm.items()},
    }
    return {f"embeddings.{name}": array for name, array in tables.items() if array is not None}


def layer_tensors(weights: EncoderWeights) -> dict[str, Array]:
    """Return the tensors of the layers by their names in a checkpoint, as `read_weights` reads them."""
    return {
        f"{BERT_NAMES.layer.format(number)}{getattr(BERT_NAMES, part)}.{kind}": np.asarray(array)
        for number, layer in enumerate(weights.layers)
        for part, pair in vars(layer).items()
        for kind, array in zip(("weight", "bias"), pair, strict=True)
    }
