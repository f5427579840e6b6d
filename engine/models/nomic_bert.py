"""Nomic BERT (Nussbaum et al. 2024), forward: BERT with RoPE for positions, SwiGLU and no biases in its maps.

Norms follow each part of a layer, as in BERT. config.json has the names of the first files (``n_embd``,
``n_head``) or those of transformers; the tensors have the names of the first files in both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ModelFileError
from ..layers.linear import Linear
from ..layers.norm import LayerNorm
from ..layers.primitives import NUMPY, Primitives
from ..layers.tracing import Array, Shapes, Tracer, no_trace, scoped
from ..weights.tensors import MAX_EPS, TensorReader, config_activation, config_float, config_size, read_json
from .bert import EncoderConfig, EncoderWeights, checked_config, embed, joined_types, with_embeddings
from .parallel import packed
from .rope import Rope, read_folder_rope, rotations
from .shared_layers import gated_output, layer_trace_shapes, post_norm_layer, rotary_attention

THETA = 1000.0  # where files state none
# Settings of the first files that are not implemented, with the only values that are read.
FIXED: dict[str, tuple[Any, ...]] = {
    "prenorm": (None, False),
    "rotary_emb_fraction": (None, 1, 1.0),
    "rotary_emb_interleaved": (None, False),
    "rotary_emb_scale_base": (None,),
    "rotary_scaling_factor": (None,),
    "qkv_proj_bias": (None, False),
    "mlp_fc1_bias": (None, False),
    "mlp_fc2_bias": (None, False),
    "use_rms_norm": (None, False),
    "parallel_block": (None, False),
    "causal": (None, False),
    "activation_function": (None, "swiglu"),
}


@dataclass(frozen=True, kw_only=True)
class NomicBertConfig(EncoderConfig):
    """Sizes of a Nomic BERT encoder; ``max_positions`` is its context length in tokens."""

    rope: Rope


@dataclass(frozen=True)
class NomicBertLayer:
    """Parameters of one layer; the weight of ``query_key_value`` is ``(3 d_model, d_model)``."""

    query_key_value: Linear
    attention_output: Linear
    attention_norm: LayerNorm
    gate: Linear
    up: Linear
    ffn_output: Linear
    output_norm: LayerNorm


def encoder_forward(
    sequences: Sequence[Sequence[int]],
    weights: EncoderWeights,
    config: NomicBertConfig,
    trace: Tracer = no_trace,
    ops: Primitives = NUMPY,
    type_ids: Sequence[Sequence[int]] | None = None,
) -> list[Array]:
    """Token vectors of each sequence of ids, ``(n_tokens, d_model)`` each; the rest is as in BERT's.

    Compiled ``ops`` overwrite traced arrays: trace with NumPy's.
    """
    ids, positions, spans = packed(sequences)
    types = joined_types(ids, type_ids)
    hidden = embed(ids, positions, types, weights, config.norm_eps, ops, scoped(trace, "embeddings"))
    rope = rotations(config.rope, positions, hidden.dtype)
    for number, layer in enumerate(weights.layers):

        def attend(x: Array, trace: Tracer, layer: NomicBertLayer = layer) -> Array:
            return rotary_attention(x, layer, config.n_heads, rope, spans, ops, trace)

        def transform(x: Array, trace: Tracer, layer: NomicBertLayer = layer) -> Array:
            gate, up = ops.linear(x, *layer.gate), ops.linear(x, *layer.up)
            return gated_output(gate, up, layer.ffn_output, config.activation, ops, trace)

        layer_trace = scoped(trace, f"layers.{number}")
        hidden = post_norm_layer(hidden, layer, config.norm_eps, attend, transform, ops, layer_trace)
    return [hidden[span] for span in spans]


def trace_shapes(config: NomicBertConfig, n_tokens: int) -> Shapes:
    """Shape of every array that a forward pass over one text names."""
    embeddings = ("token", *(["type"] if config.n_types else []), "sum", "output")
    hidden = ("gate", "hidden", "activation")
    return layer_trace_shapes(config, n_tokens, embeddings, hidden, ("attention.norm",), final_norm=False)


def read_config(folder: Path) -> NomicBertConfig:
    """Read a config.json of either form."""
    raw = read_json(folder / "config.json")
    for key, values in FIXED.items():
        if raw.get(key) not in values:
            raise ModelFileError(f"{folder} sets {key} to {raw[key]!r}, which is not read: use another model")

    def size(name: str, first: str, default: int | None = None) -> int:
        return config_size(raw, name, default) if name in raw else config_size(raw, first, default)

    d_model = size("hidden_size", "n_embd")
    norm_eps = "layer_norm_eps" if "layer_norm_eps" in raw else "layer_norm_epsilon"
    n_heads = size("num_attention_heads", "n_head")
    if config_size(raw, "head_dim", d_model // n_heads) != d_model // n_heads:
        raise ModelFileError(f"{folder} has heads of {raw['head_dim']} dimensions, not hidden_size by heads")
    config = NomicBertConfig(
        vocab_size=config_size(raw, "vocab_size"),
        d_model=d_model,
        n_layers=size("num_hidden_layers", "n_layer"),
        n_heads=n_heads,
        d_ff=size("intermediate_size", "n_inner", 4 * d_model),
        max_positions=size("max_position_embeddings", "n_positions"),
        n_types=config_size(raw, "type_vocab_size"),
        norm_eps=config_float(raw, norm_eps, most=MAX_EPS),
        activation=config_activation(raw, "hidden_act", "silu"),
        rope=read_folder_rope(
            {"rope_theta": raw.get("rotary_emb_base", THETA)} | raw, d_model // n_heads, folder
        ),
    )
    return checked_config(config, folder)


def read_weights(tensors: dict[str, Array], config: NomicBertConfig, dtype: np.dtype) -> EncoderWeights:
    """Name the tensors of a checkpoint."""
    read = TensorReader(tensors, dtype)
    d_model, d_ff = config.d_model, config.d_ff

    def layer(number: int) -> NomicBertLayer:
        prefix = f"encoder.layers.{number}."
        return NomicBertLayer(
            query_key_value=read.dense(f"{prefix}attn.Wqkv", d_model, 3 * d_model, biased=False),
            attention_output=read.dense(f"{prefix}attn.out_proj", d_model, d_model, biased=False),
            attention_norm=read.norm(f"{prefix}norm1", d_model),
            gate=read.dense(f"{prefix}mlp.fc12", d_model, d_ff, biased=False),
            up=read.dense(f"{prefix}mlp.fc11", d_model, d_ff, biased=False),
            ffn_output=read.dense(f"{prefix}mlp.fc2", d_ff, d_model, biased=False),
            output_norm=read.norm(f"{prefix}norm2", d_model),
        )

    return with_embeddings(read, config, layer, norm="emb_ln")
