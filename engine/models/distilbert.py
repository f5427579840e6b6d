"""DistilBERT (Sanh et al. 2019): BERT with half the layers, and neither segments nor a pooler."""

from pathlib import Path

import numpy as np

from ..layers.tracing import Array
from ..weights.tensors import config_activation, config_size, read_json
from . import bert
from .bert import EncoderConfig, EncoderWeights, TensorNames, checked_config
from .bert import encoder_forward as encoder_forward
from .bert import trace_shapes as trace_shapes

NORM_EPS = 1e-12  # in the code of the family, not in its config.json
NAMES = TensorNames(
    prefix="distilbert.",
    layer="transformer.layer.{}.",
    query="attention.q_lin",
    key="attention.k_lin",
    value="attention.v_lin",
    attention_output="attention.out_lin",
    attention_norm="sa_layer_norm",
    ffn_hidden="ffn.lin1",
    ffn_output="ffn.lin2",
    output_norm="output_layer_norm",
)


def read_config(folder: Path) -> EncoderConfig:
    """Read a config.json, which has names of its own."""
    raw = read_json(folder / "config.json")
    return checked_config(
        EncoderConfig(
            vocab_size=config_size(raw, "vocab_size"),
            d_model=config_size(raw, "dim"),
            n_layers=config_size(raw, "n_layers"),
            n_heads=config_size(raw, "n_heads"),
            d_ff=config_size(raw, "hidden_dim"),
            max_positions=config_size(raw, "max_position_embeddings"),
            n_types=0,
            norm_eps=NORM_EPS,
            activation=config_activation(raw, "activation"),
        ),
        folder,
    )


def read_weights(tensors: dict[str, Array], config: EncoderConfig, dtype: np.dtype) -> EncoderWeights:
    """Name the tensors of a checkpoint."""
    return bert.read_weights(tensors, config, dtype, NAMES)
