"""ModernBERT (Warner et al. 2024), forward: RoPE, GeGLU, norms in front, local and global attention in turn.

Every third layer attends to the whole text, the others to the tokens at most half a window away; the two
kinds rotate by bases of their own. Linear maps and norms of the released models have no biases, and the first
layer has no norm in front of its attention: the embeddings are normed already.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..layers.linear import Linear
from ..layers.norm import LayerNorm
from ..layers.primitives import NUMPY, Primitives
from ..layers.tracing import Array, Shapes, Tracer, no_trace
from ..weights.tensors import TensorReader, config_size, read_json
from .bert import EncoderConfig, checked_config
from .llama_file import GLOBAL, LOCAL, layer_types
from .parallel import packed
from .rope import Rope, read_kind_rope, rotations
from .shared_layers import config_fields, gated_feed_forward, layer_trace_shapes, rotary_attention, run_layers

THETAS = {GLOBAL: 160_000.0, LOCAL: 10_000.0}
OLD_KEYS = {GLOBAL: "global_rope_theta", LOCAL: "local_rope_theta"}  # of transformers before version 5


@dataclass(frozen=True, kw_only=True)
class ModernBertConfig(EncoderConfig):
    """Sizes of a ModernBERT encoder; ``max_positions`` is its context length in tokens."""

    is_global: tuple[bool, ...]  # whether each layer attends to the whole text, ``(n_layers,)``
    reach: int  # tokens to each side that the other layers attend to
    global_rope: Rope  # rotations of the first kind of layers
    local_rope: Rope  # and of the others


@dataclass(frozen=True)
class ModernBertLayer:
    """Parameters of one layer; matrices that read the same input are stacked into one."""

    attention_norm: LayerNorm | None
    query_key_value: Linear  # ``(3 d_model, d_model)``
    attention_output: Linear
    ffn_norm: LayerNorm
    gate_up: Linear  # ``(2 d_ff, d_model)``
    ffn_output: Linear


@dataclass(frozen=True)
class ModernBertWeights:
    """Parameters of the whole encoder."""

    token_table: Array
    embedding_norm: LayerNorm
    layers: tuple[ModernBertLayer, ...]
    final_norm: LayerNorm
    pooler: None = None


def encoder_forward(
    sequences: Sequence[Sequence[int]],
    weights: ModernBertWeights,
    config: ModernBertConfig,
    trace: Tracer = no_trace,
    ops: Primitives = NUMPY,
    type_ids: Sequence[Sequence[int]] | None = None,
) -> list[Array]:
    """Token vectors of each sequence of ids, ``(n_tokens, d_model)`` each; there are no segments.

    Compiled ``ops`` overwrite traced arrays: trace with NumPy's.
    """
    ids, positions, spans = packed(sequences)
    token = trace("embeddings.token", weights.token_table[ids])

    def norm(x: Array, parameters: LayerNorm | None) -> Array:
        return x if parameters is None else ops.layer_norm(x.copy(), *parameters, config.norm_eps)

    def attend(normed: Array, layer: ModernBertLayer, number: int, trace: Tracer) -> Array:
        is_global = config.is_global[number]
        reach = None if is_global else config.reach
        return rotary_attention(normed, layer, config.n_heads, ropes[is_global], spans, ops, trace, reach)

    def transform(normed: Array, layer: ModernBertLayer, trace: Tracer) -> Array:
        return gated_feed_forward(normed, layer, config.activation, ops, trace)

    ropes = {
        True: rotations(config.global_rope, positions, token.dtype),
        False: rotations(config.local_rope, positions, token.dtype),
    }
    hidden = trace("embeddings.output", norm(token, weights.embedding_norm))
    hidden = run_layers(hidden, weights.layers, norm, attend, transform, np.add, trace)
    hidden = trace("norm", norm(hidden, weights.final_norm))
    return [hidden[span] for span in spans]


def trace_shapes(config: ModernBertConfig, n_tokens: int) -> Shapes:
    """Shape of every array that a forward pass over one text names."""
    return layer_trace_shapes(config, n_tokens, ("token", "output"), ("gate", "hidden", "activation"))


def read_config(folder: Path) -> ModernBertConfig:
    """Read a config.json, of transformers before version 5 or later."""
    raw = read_json(folder / "config.json")
    sizes = config_fields(raw, "norm_eps", "hidden_activation")
    d_head = sizes["d_model"] // sizes["n_heads"]
    global_rope, local_rope = (
        read_kind_rope({OLD_KEYS[kind]: THETAS[kind]} | raw, kind, OLD_KEYS[kind], d_head, folder)
        for kind in (GLOBAL, LOCAL)
    )
    every = config_size(raw, "global_attn_every_n_layers", default=3)
    usual = [LOCAL if number % every else GLOBAL for number in range(sizes["n_layers"])]
    config = ModernBertConfig(
        **sizes,
        n_types=0,
        is_global=tuple(kind == GLOBAL for kind in layer_types(raw, usual, folder)),
        reach=config_size(raw, "local_attention", default=128) // 2,
        global_rope=global_rope,
        local_rope=local_rope,
    )
    return checked_config(config, folder)


def read_weights(tensors: dict[str, Array], config: ModernBertConfig, dtype: np.dtype) -> ModernBertWeights:
    """Name the tensors of a checkpoint, with or without the prefix ``model.``."""
    tensors = {name.removeprefix("model."): array for name, array in tensors.items()}
    read = TensorReader(tensors, dtype)
    d_model, d_ff = config.d_model, config.d_ff

    def norm(name: str) -> LayerNorm:
        return read.norm(name, d_model, biased=f"{name}.bias" in tensors)

    def dense(name: str, d_in: int, d_out: int) -> Linear:
        return read.dense(name, d_in, d_out, biased=f"{name}.bias" in tensors)

    def layer(number: int) -> ModernBertLayer:
        prefix = f"layers.{number}."
        return ModernBertLayer(
            attention_norm=norm(f"{prefix}attn_norm") if number else None,
            query_key_value=dense(f"{prefix}attn.Wqkv", d_model, 3 * d_model),
            attention_output=dense(f"{prefix}attn.Wo", d_model, d_model),
            ffn_norm=norm(f"{prefix}mlp_norm"),
            gate_up=dense(f"{prefix}mlp.Wi", d_model, 2 * d_ff),
            ffn_output=dense(f"{prefix}mlp.Wo", d_ff, d_model),
        )

    return ModernBertWeights(
        token_table=read.tensor("embeddings.tok_embeddings.weight", config.vocab_size, d_model),
        embedding_norm=norm("embeddings.norm"),
        layers=tuple(layer(number) for number in range(config.n_layers)),
        final_norm=norm("final_norm"),
    )
