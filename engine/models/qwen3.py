"""Qwen3 as an encoder (Zhang et al. 2025, Qwen3-Embedding): a decoder whose last token is the text's vector.

It is Llama with an RMS norm on each head's queries and keys, and no biases. Texts are read left to right, so
that a token sees those before it alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.errors import ModelFileError
from engine.kernels.primitives import NUMPY, NUMPY_DECODER, Primitives
from engine.layers.linear import Linear
from engine.layers.tracing import Array, Tracer, no_trace
from engine.models.kv_cache import KVCache
from engine.models.llama import (
    LlamaConfig,
    LlamaLayer,
    LlamaWeights,
    embed,
    final_norm,
    layers,
    matrix_shapes,
)
from engine.models.llama import trace_shapes as trace_shapes
from engine.models.llama_file import FOLDER_NAMES, GATE_UP, QUERY_KEY_VALUE, read_folder_config
from engine.weights.tensors import TensorReader, read_json

PIECE_TOKENS = 512  # read at a time, which bounds the memory of the scores
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
    """Token vectors of each sequence of ids, ``(n_tokens, d_model)`` each; segments are not told apart.

    The texts are run one after the other, by NumPy.
    """
    return [trace("norm", read_text(ids, weights, config, trace)) for ids in sequences]


def read_text(ids: Sequence[int], weights: Qwen3Weights, config: LlamaConfig, trace: Tracer) -> Array:
    """Token vectors of one text, ``(n_tokens, d_model)``; without a trace it is read in pieces."""
    cache = KVCache(config, len(ids), dtype=weights.token_table.dtype.type)
    size = PIECE_TOKENS if trace is no_trace else len(ids)
    pieces = []
    for start in range(0, len(ids), size):
        inputs = embed(ids[start : start + size], weights, config, start, trace)
        pieces.append(layers(inputs, weights, config, cache, NUMPY_DECODER, trace))
        cache.length += len(pieces[-1])
    return final_norm(np.concatenate(pieces), weights, config)


def read_config(folder: Path) -> LlamaConfig:
    """Read a config.json."""
    raw = read_json(folder / "config.json")
    if raw.get("is_causal") is False or raw.get("use_bidirectional_attention"):
        raise ModelFileError(f"{folder} reads texts in both directions, which is not read for this family")
    return read_folder_config(folder)


def read_weights(tensors: dict[str, Array], config: LlamaConfig, dtype: np.dtype) -> Qwen3Weights:
    """Name the tensors of a checkpoint, with or without the prefix ``model.``."""
    read = TensorReader({name.removeprefix(PREFIX): array for name, array in tensors.items()}, dtype)
    shapes = matrix_shapes(config)

    def name(part: str, number: int = 0) -> str:
        return FOLDER_NAMES[part].removeprefix(PREFIX).format(number)

    def stacked(number: int, *parts: str) -> Linear:
        weights = [read.tensor(f"{name(part, number)}.weight", *shapes[part]) for part in parts]
        biases = [
            read.tensor(f"{name(part, number)}.bias", shapes[part][0])
            for part in parts
            if part in config.biased
        ]
        return Linear(np.concatenate(weights), np.concatenate(biases) if biases else None)

    def norm(part: str, number: int = 0) -> Array:
        return read.tensor(f"{name(part, number)}.weight", config.d_model)

    def head_norm(part: str, number: int) -> Array:
        return read.tensor(f"layers.{number}.self_attn.{part}_norm.weight", config.d_head)

    def layer(number: int) -> LlamaLayer:
        return LlamaLayer(
            attention_norm=norm("attention_norm", number),
            query_key_value=stacked(number, *QUERY_KEY_VALUE),
            attention_output=stacked(number, "attention_output"),
            ffn_norm=norm("ffn_norm", number),
            gate_up=stacked(number, *GATE_UP),
            ffn_output=stacked(number, "ffn_output"),
            query_norm=head_norm("q", number),
            key_norm=head_norm("k", number),
        )

    token_table = read.tensor(f"{name('token_table')}.weight", config.vocab_size, config.d_model)
    return Qwen3Weights(
        token_table=token_table,
        layers=tuple(layer(number) for number in range(config.n_layers)),
        final_norm=norm("final_norm"),
        unembedding=token_table,
    )
