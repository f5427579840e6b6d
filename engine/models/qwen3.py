"""Qwen3 as an encoder (Zhang et al. 2025, Qwen3-Embedding): a decoder whose last token is the text's vector.

It is Llama with an RMS norm on each head's queries and keys, and no biases. Texts are read left to right, so
that a token sees those before it alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..errors import ModelFileError
from ..layers.positions import rope_tables
from ..layers.primitives import NUMPY, DecoderPrimitives, Primitives
from ..layers.tracing import Array, Tracer, no_trace
from ..weights.tensors import TensorReader, read_json
from .llama import LlamaConfig, LlamaWeights, final_norm, layers
from .llama import trace_shapes as trace_shapes
from .llama_file import FOLDER_NAMES, assemble_weights, read_folder_config
from .parallel import packed

PREFIX = "model."


@dataclass(frozen=True)
class Qwen3Weights(LlamaWeights):
    """Parameters of the whole encoder; the unembedding is not used."""

    pooler: None = None


def encoder_forward(
    sequences: Sequence[Sequence[int]],
    weights: Qwen3Weights,
    config: LlamaConfig,
    trace: Tracer = no_trace,
    ops: Primitives = NUMPY,
    type_ids: Sequence[Sequence[int]] | None = None,
) -> list[Array]:
    """Token vectors of each sequence of ids, ``(n_tokens, d_model)`` each; there are no segments.

    Compiled ``ops`` overwrite traced arrays: trace with NumPy's.
    """
    ids, positions, spans = packed(sequences)
    hidden = trace("embeddings.output", weights.token_table[ids])
    rope = rope_tables(positions, config.d_head, config.rope.theta, hidden.dtype, config.rope.factors)
    decoder_ops = of_pack(spans, ops)
    hidden = layers((hidden, *rope), weights, config, None, decoder_ops, trace)
    hidden = trace("norm", final_norm(hidden, weights, config, decoder_ops))
    return [hidden[span] for span in spans]


def of_pack(spans: Sequence[slice], ops: Primitives) -> DecoderPrimitives:
    """Primitives of a decoder that reads the texts of a pack, each from its first token, without a cache."""

    def causal_attention(
        query: Array, key: Array, value: Array, cache: None, layer: int, trace: Tracer, *_: None
    ) -> Array:
        query, key, value = trace("query", query), trace("key", key), trace("value", value)
        contexts = [
            ops.windowed_attention(query[:, s], key[:, s], value[:, s], s.stop - s.start, 0, trace)
            for s in spans
        ]
        return np.concatenate(contexts, axis=1)

    return DecoderPrimitives(
        ops.linear,
        ops.rms_norm,
        ops.layer_norm,
        ops.apply_rope,
        causal_attention,
        np.add,
        ops.gated,
        ops.activations,
    )


def read_config(folder: Path) -> LlamaConfig:
    """Read a config.json."""
    raw = read_json(folder / "config.json")
    if raw.get("is_causal") is False or raw.get("use_bidirectional_attention"):
        raise ModelFileError(f"{folder} reads texts in both directions, which is not read for this family")
    config = read_folder_config(folder)
    if any(config.windows):
        raise ModelFileError(f"{folder} has sliding windows, which are not read for this family")
    return config


def read_weights(tensors: dict[str, Array], config: LlamaConfig, dtype: np.dtype) -> Qwen3Weights:
    """Name the tensors of a checkpoint, with or without the prefix ``model.``."""
    tensors = {PREFIX + name.removeprefix(PREFIX): array for name, array in tensors.items()}
    no_unembedding = replace(config, tied=True)
    return Qwen3Weights(**vars(assemble_weights(FOLDER_NAMES, TensorReader(tensors, dtype), no_unembedding)))
