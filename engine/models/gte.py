"""GTE (Zhang et al. 2024, mGTE) and Snowflake's Arctic-embed 2: BERT with RoPE for positions and GeGLU.

The forward pass is that of Nomic BERT; attention has biases, and some models have no segments. Files call the
family ``gte``, or ``new`` where they are of its makers. Some models have longer contexts than they were
trained with first, by rotations of another base (NTK).
"""

from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ModelFileError
from ..layers.linear import Linear
from ..layers.tracing import Array
from ..weights.tensors import MAX_EPS, TensorReader, config_activation, config_float, config_size, read_json
from .bert import EncoderWeights, checked_config
from .nomic_bert import NomicBertConfig, NomicBertLayer
from .nomic_bert import encoder_forward as encoder_forward
from .nomic_bert import trace_shapes as trace_shapes
from .rope import read_folder_rope

# Settings that are not implemented, with the only values that are read.
FIXED: dict[str, tuple[Any, ...]] = {
    "layer_norm_type": (None, "layer_norm"),
    "position_embedding_type": (None, "rope"),
    "logn_attention_scale": (None, False),
    "logn_attention_clip1": (None, False),
    "pack_qkv": (None, True),
}
THETA = 160_000.0  # where files of transformers state none


def read_config(folder: Path) -> NomicBertConfig:
    """Read a config.json of Alibaba-NLP, or of transformers."""
    raw = read_json(folder / "config.json")
    for key, values in FIXED.items():
        if raw.get(key) not in values:
            raise ModelFileError(f"{folder} sets {key} to {raw[key]!r}, which is not read: use another model")
    d_model, n_heads = config_size(raw, "hidden_size"), config_size(raw, "num_attention_heads")
    rope = read_folder_rope({"rope_theta": THETA} | raw, max(d_model // n_heads, 1), folder)
    config = NomicBertConfig(
        vocab_size=config_size(raw, "vocab_size"),
        d_model=d_model,
        n_layers=config_size(raw, "num_hidden_layers"),
        n_heads=n_heads,
        d_ff=config_size(raw, "intermediate_size"),
        max_positions=config_size(raw, "max_position_embeddings"),
        n_types=config_size(raw, "type_vocab_size") if raw.get("type_vocab_size") else 0,
        norm_eps=config_float(raw, "layer_norm_eps", most=MAX_EPS),
        activation=config_activation(raw, "hidden_act"),
        rope=rope,
    )
    return checked_config(config, folder)


def read_weights(tensors: dict[str, Array], config: NomicBertConfig, dtype: np.dtype) -> EncoderWeights:
    """Name the tensors of a checkpoint, with or without a prefix."""
    for prefix in ("new.", "gte."):
        tensors = {name.removeprefix(prefix): array for name, array in tensors.items()}
    read = TensorReader(tensors, dtype)
    d_model, d_ff = config.d_model, config.d_ff

    def layer(number: int) -> NomicBertLayer:
        prefix = f"encoder.layer.{number}."
        stacked = read.tensor(f"{prefix}mlp.up_gate_proj.weight", 2 * d_ff, d_model)
        up, gate = (Linear(np.asfortranarray(half), np.zeros(d_ff, dtype)) for half in np.split(stacked, 2))
        return NomicBertLayer(
            query_key_value=read.dense(f"{prefix}attention.qkv_proj", d_model, 3 * d_model),
            attention_output=read.dense(f"{prefix}attention.o_proj", d_model, d_model),
            attention_norm=read.norm(f"{prefix}attn_ln", d_model),
            gate=gate,
            up=up,
            ffn_output=read.dense(f"{prefix}mlp.down_proj", d_ff, d_model),
            output_norm=read.norm(f"{prefix}mlp_ln", d_model),
        )

    def table(name: str, n_rows: int) -> Array:
        return read.tensor(f"embeddings.{name}_embeddings.weight", n_rows, d_model)

    return EncoderWeights(
        token_table=table("word", config.vocab_size),
        position_table=None,
        type_table=table("token_type", config.n_types) if config.n_types else None,
        embedding_norm=read.norm("embeddings.LayerNorm", d_model),
        layers=tuple(layer(number) for number in range(config.n_layers)),
        pooler=read.dense("pooler.dense", d_model, d_model) if "pooler.dense.weight" in tensors else None,
    )
