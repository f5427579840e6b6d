"""RoBERTa (Liu et al. 2019) and XLM-RoBERTa (Conneau et al. 2020): BERT trained longer, without segments.

Positions begin behind the padding token's id and skip padding tokens, which a text may contain.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import ModelFileError
from ..layers.primitives import NUMPY, Primitives
from ..layers.tracing import Array, Tracer, no_trace
from ..weights.tensors import read_json
from . import bert
from .bert import EncoderConfig, EncoderWeights, TensorNames
from .bert import trace_shapes as trace_shapes

NAMES = TensorNames(prefix="roberta.")


@dataclass(frozen=True)
class RobertaConfig(EncoderConfig):
    """Sizes of a RoBERTa encoder."""

    # of the padding token: so many and one more rows of the position table are no positions
    padding_id: int = 1


def token_positions(ids: Sequence[int], padding_id: int) -> Array:
    """Row of each token in the position table, ``(n_tokens,)``, from that of padding, ``padding_id``, on."""
    real = np.asarray(ids) != padding_id
    return np.cumsum(real) * real + padding_id


def encoder_forward(
    sequences: Sequence[Sequence[int]],
    weights: EncoderWeights,
    config: RobertaConfig,
    trace: Tracer = no_trace,
    ops: Primitives = NUMPY,
    type_ids: Sequence[Sequence[int]] | None = None,
) -> list[Array]:
    """Token vectors of each sequence of ids, ``(n_tokens, d_model)`` each; there are no segments."""
    positions = [token_positions(ids, config.padding_id) for ids in sequences]
    return bert.encoder_forward(sequences, weights, config, trace, ops, positions=positions)


def read_config(folder: Path) -> RobertaConfig:
    """Read a config.json."""
    return with_padding(
        bert.read_config(folder), read_json(folder / "config.json").get("pad_token_id", 1), folder
    )


def with_padding(config: EncoderConfig, padding_id: object, folder: Path) -> RobertaConfig:
    """Return the sizes of an encoder whose positions begin behind ``padding_id``."""
    if not isinstance(padding_id, int) or not 0 <= padding_id < config.max_positions - 1:
        raise ModelFileError(f"{folder}: pad_token_id is {padding_id!r}, which leaves no position")
    sizes = {**vars(config), "max_positions": config.max_positions - padding_id - 1}
    return RobertaConfig(**sizes, padding_id=padding_id)


def read_weights(
    tensors: dict[str, Array], config: RobertaConfig, dtype: np.dtype, names: TensorNames = NAMES
) -> EncoderWeights:
    """Name the tensors of a checkpoint."""
    return bert.read_weights(tensors, config, dtype, names, config.max_positions + config.padding_id + 1)
