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
from ..weights.tensors import TensorReader, config_size, read_json
from .bert import EncoderWeights, checked_config, with_embeddings
from .nomic_bert import NomicBertConfig, NomicBertLayer
from .nomic_bert import encoder_forward as encoder_forward
from .nomic_bert import trace_shapes as trace_shapes
from .rope import read_folder_rope
from .shared_layers import config_fields

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
    sizes = config_fields(raw, "layer_norm_eps", "hidden_act")
    d_head = max(sizes["d_model"] // sizes["n_heads"], 1)
    config = NomicBertConfig(
        **sizes,
        n_types=config_size(raw, "type_vocab_size") if raw.get("type_vocab_size") else 0,
        rope=read_folder_rope({"rope_theta": THETA} | raw, d_head, folder),
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

    return with_embeddings(read, config, layer)
