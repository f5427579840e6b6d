"""Jina's BERT, of jina-embeddings-v2 (Günther et al. 2023): ALiBi in both directions, and gated layers.

There are no positions: every score loses an amount that grows with the distance of the two tokens, at a pace
of its own in each head (Press et al. 2022). The newer files, of code and of two languages, norm queries and
keys as well, and have a second norm behind attention.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import ModelFileError
from ..layers.attention import split_heads
from ..layers.linear import Linear
from ..layers.norm import LayerNorm
from ..layers.positions import alibi_slopes, by_distance
from ..layers.primitives import NUMPY, Primitives
from ..layers.tracing import Array, Shapes, Tracer, no_trace, scoped
from ..weights.tensors import TensorReader, read_json
from . import bert
from .bert import EncoderConfig, EncoderWeights, embed, joined_types, with_embeddings
from .parallel import packed
from .shared_layers import attention_output, gated_feed_forward, layer_trace_shapes, post_norm_layer

GATES = {"geglu": "gelu", "reglu": "relu"}  # by feed_forward_type
NEWER = "qk-post-norm"  # in the name of their code
OLD_NORM = "attention.output.LayerNorm"


@dataclass(frozen=True)
class JinaConfig(EncoderConfig):
    """Sizes of Jina's BERT; ``is_newer`` of the files with norms on queries and keys."""

    is_newer: bool = False


@dataclass(frozen=True)
class JinaLayer:
    """Parameters of one layer."""

    query: Linear
    key: Linear
    value: Linear
    attention_output: Linear
    attention_norm: LayerNorm
    gate_up: Linear  # ``(2 d_ff, d_model)``
    ffn_output: Linear
    output_norm: LayerNorm
    query_norm: LayerNorm | None = None  # these three are of the newer files, else None
    key_norm: LayerNorm | None = None
    inner_norm: LayerNorm | None = None


def distance_bias(n_heads: int, n_tokens: int, dtype: np.dtype) -> Array:
    """``-slope |j - i|``, a view: ``(n_heads, n_tokens, n_tokens)``."""
    distances = np.abs(np.arange(1 - n_tokens, n_tokens))
    return by_distance((-alibi_slopes(n_heads)[:, None] * distances).astype(dtype))


def encoder_forward(
    sequences: Sequence[Sequence[int]],
    weights: EncoderWeights,
    config: JinaConfig,
    trace: Tracer = no_trace,
    ops: Primitives = NUMPY,
    type_ids: Sequence[Sequence[int]] | None = None,
) -> list[Array]:
    """Token vectors of each sequence of ids, ``(n_tokens, d_model)`` each; the rest is as in BERT's."""
    ids, positions, spans = packed(sequences)
    types = joined_types(ids, type_ids)
    hidden = embed(ids, positions, types, weights, config.norm_eps, ops, scoped(trace, "embeddings"))
    biases = [distance_bias(config.n_heads, len(sequence), hidden.dtype) for sequence in sequences]
    for number, layer in enumerate(weights.layers):

        def attend(x: Array, trace: Tracer, layer: JinaLayer = layer) -> Array:
            output = self_attention(x, layer, config, spans, biases, ops, trace)
            if layer.inner_norm is None:
                return output
            return trace("inner_norm", ops.layer_norm(x + output, *layer.inner_norm, config.norm_eps))

        def transform(x: Array, trace: Tracer, layer: JinaLayer = layer) -> Array:
            return gated_feed_forward(x, layer, config.activation, ops, trace)

        layer_trace = scoped(trace, f"layers.{number}")
        hidden = post_norm_layer(hidden, layer, config.norm_eps, attend, transform, ops, layer_trace)
    return [hidden[span] for span in spans]


def self_attention(
    x: Array,
    layer: JinaLayer,
    config: JinaConfig,
    spans: Sequence[slice],
    biases: Sequence[Array],
    ops: Primitives,
    trace: Tracer,
) -> Array:
    """Self-attention with `distance_bias` within each text of a pack: ``(n_tokens, d_model)`` to the same."""

    def heads(name: str, projection: Linear, norm: LayerNorm | None = None) -> Array:
        projected = ops.linear(x, *projection)
        if norm is not None:
            projected = ops.layer_norm(projected, *norm, config.norm_eps)
        return trace(name, split_heads(projected, config.n_heads))  # (n_heads, n_tokens, d_head)

    query = heads("query", layer.query, layer.query_norm)
    key, value = heads("key", layer.key, layer.key_norm), heads("value", layer.value)
    contexts = [
        ops.attention(query[:, s], key[:, s], value[:, s], bias, trace)
        for s, bias in zip(spans, biases, strict=True)
    ]
    return attention_output(contexts, layer.attention_output, ops, trace)


def trace_shapes(config: JinaConfig, n_tokens: int) -> Shapes:
    """Shape of every array that a forward pass over one text names."""
    names = ("attention.inner_norm", "attention.norm") if config.is_newer else ("attention.norm",)
    embeddings, hidden = ("token", "type", "sum", "output"), ("gate", "hidden", "activation")
    return layer_trace_shapes(config, n_tokens, embeddings, hidden, norms=names, final_norm=False)


def read_config(folder: Path) -> JinaConfig:
    """Read a config.json."""
    raw = read_json(folder / "config.json")
    gate = raw.get("feed_forward_type")
    if gate not in GATES:
        raise ModelFileError(f"{folder}: feed_forward_type {gate!r} is not one of {', '.join(GATES)}")
    sizes = vars(bert.read_config(folder, positions="alibi")) | {"activation": GATES[gate]}
    return JinaConfig(**sizes, is_newer=NEWER in f"{raw.get('auto_map')} {raw.get('_name_or_path')}")


def read_weights(tensors: dict[str, Array], config: JinaConfig, dtype: np.dtype) -> EncoderWeights:
    """Name the tensors of a checkpoint, with or without the prefix ``bert.``."""
    tensors = {name.removeprefix("bert."): array for name, array in tensors.items()}
    read = TensorReader(tensors, dtype)
    d_model, d_ff = config.d_model, config.d_ff

    def dense(name: str) -> Linear:
        return read.dense(name, d_model, d_model)

    def norm(name: str, exists: bool = True) -> LayerNorm | None:
        return read.norm(name, d_model) if exists else None

    def layer(number: int) -> JinaLayer:
        prefix = f"encoder.layer.{number}."
        attention = f"{prefix}attention."
        first, second = ("layer_norm_1", "layer_norm_2") if config.is_newer else (OLD_NORM, "mlp.layernorm")
        gate_up, down = ("up_gated_layer", "down_layer") if config.is_newer else ("gated_layers", "wo")
        stacked = read.tensor(f"{prefix}mlp.{gate_up}.weight", 2 * d_ff, d_model)
        if config.is_newer:  # the gate is the second half
            stacked = np.roll(stacked, d_ff, axis=0)
        return JinaLayer(
            query=dense(f"{attention}self.query"),
            key=dense(f"{attention}self.key"),
            value=dense(f"{attention}self.value"),
            attention_output=dense(f"{attention}output.dense"),
            attention_norm=read.norm(prefix + first, d_model),
            gate_up=Linear(np.asfortranarray(stacked), np.zeros(2 * d_ff, dtype)),
            ffn_output=read.dense(f"{prefix}mlp.{down}", d_ff, d_model),
            output_norm=read.norm(prefix + second, d_model),
            query_norm=norm(f"{attention}self.layer_norm_q", config.is_newer),
            key_norm=norm(f"{attention}self.layer_norm_k", config.is_newer),
            inner_norm=norm(prefix + OLD_NORM, config.is_newer),
        )

    return with_embeddings(read, config, layer)
