"""MPNet (Song et al. 2020): BERT whose attention also sees how far apart two tokens are.

Every layer adds to its scores ``b(bucket(j - i))``, one number a head: distances up to 8 have a bucket each,
farther ones share buckets that widen logarithmically up to 128 (Raffel et al. 2020).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import ModelFileError
from ..layers.positions import by_distance
from ..layers.primitives import NUMPY, Primitives
from ..layers.tracing import Array, Tracer, no_trace
from ..weights.tensors import TensorReader, config_size, read_json
from . import bert, roberta
from .bert import EncoderWeights, TensorNames
from .bert import trace_shapes as trace_shapes
from .roberta import RobertaConfig, token_positions

N_BUCKETS, MAX_DISTANCE = 32, 128
PADDING_ID = 1  # in the code of the family, not in its config.json
NAMES = TensorNames(
    prefix="mpnet.",
    query="attention.attn.q",
    key="attention.attn.k",
    value="attention.attn.v",
    attention_output="attention.attn.o",
    attention_norm="attention.LayerNorm",
)


@dataclass(frozen=True)
class MPNetWeights(EncoderWeights):
    """Parameters of the whole encoder; ``distance_table`` is ``(N_BUCKETS, n_heads)``."""

    distance_table: Array


def distance_buckets(distances: Array) -> Array:
    """Bucket of each distance ``j - i``, of the same shape: 0 to 15 behind the token, 16 to 31 before it.

    The nearest 8 distances on a side have a bucket each, the others logarithmic ones up to `MAX_DISTANCE`.
    """
    n_side = N_BUCKETS // 2
    n_exact = n_side // 2
    size = np.abs(distances)
    # float32, as in transformers: a distance on the border of two buckets falls into the same one
    ratio = np.log(np.maximum(size, 1).astype(np.float32) / np.float32(n_exact))
    far = n_exact + (
        ratio / np.float32(np.log(MAX_DISTANCE / n_exact)) * np.float32(n_side - n_exact)
    ).astype(int)
    return np.where(size < n_exact, size, np.minimum(far, n_side - 1)) + n_side * (distances > 0)


def distance_bias(table: Array, n_tokens: int) -> Array:
    """Bias of the scores of a text, a view: ``(n_heads, n_tokens, n_tokens)``."""
    return by_distance(table[distance_buckets(np.arange(1 - n_tokens, n_tokens))].T)


def encoder_forward(
    sequences: Sequence[Sequence[int]],
    weights: MPNetWeights,
    config: RobertaConfig,
    trace: Tracer = no_trace,
    ops: Primitives = NUMPY,
    type_ids: Sequence[Sequence[int]] | None = None,
) -> list[Array]:
    """Token vectors of each sequence of ids, ``(n_tokens, d_model)`` each; there are no segments."""
    positions = [token_positions(ids, config.padding_id) for ids in sequences]
    masks = [distance_bias(weights.distance_table, len(ids)) for ids in sequences]
    return bert.encoder_forward(sequences, weights, config, trace, ops, positions=positions, masks=masks)


def read_config(folder: Path) -> RobertaConfig:
    """Read a config.json."""
    raw = read_json(folder / "config.json")
    if config_size(raw, "relative_attention_num_buckets", default=N_BUCKETS) != N_BUCKETS:
        raise ModelFileError(
            f"{folder} has {raw['relative_attention_num_buckets']} buckets of distances: only {N_BUCKETS}"
        )
    sizes = bert.read_config(folder, has_segments=False)
    return roberta.with_padding(sizes, PADDING_ID, folder)


def read_weights(tensors: dict[str, Array], config: RobertaConfig, dtype: np.dtype) -> MPNetWeights:
    """Name the tensors of a checkpoint."""
    weights = roberta.read_weights(tensors, config, dtype, NAMES)
    tensors = {name.removeprefix(NAMES.prefix): array for name, array in tensors.items()}
    table = TensorReader(tensors, dtype).tensor(
        "encoder.relative_attention_bias.weight", N_BUCKETS, config.n_heads
    )
    return MPNetWeights(**vars(weights), distance_table=table)
