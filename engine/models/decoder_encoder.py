"""Decoders as encoders: Qwen3-Embedding (Zhang et al. 2025), E5-Mistral (Wang et al. 2024), EmbeddingGemma.

The layers are those of Llama, or of Gemma 3. Mostly texts are read left to right, so that a token sees those
before it only, and the last token's vector is the text's; EmbeddingGemma (Schechter Vera et al. 2025) reads
in both directions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..layers.primitives import NUMPY, DecoderPrimitives, Primitives
from ..layers.tracing import Array, Shapes, Tracer, no_trace
from ..weights.tensors import TensorReader, read_json
from . import gemma3, gemma3_file, llama, llama_file
from .gemma3 import Gemma3Config
from .llama import LlamaConfig, LlamaWeights
from .llama_file import assemble_weights
from .parallel import packed
from .rope import rotations

PREFIX = "model."
GEMMA = "gemma3_text"


@dataclass(frozen=True)
class TwoWayLlamaConfig(LlamaConfig):
    """Sizes of an encoder whose tokens see those behind them, too; ``windows`` count one side."""

    is_causal = False


@dataclass(frozen=True)
class TwoWayGemma3Config(Gemma3Config):
    """As `TwoWayLlamaConfig`, of Gemma 3."""

    is_causal = False


@dataclass(frozen=True)
class DecoderEncoderWeights(LlamaWeights):
    """Parameters of the whole encoder; the unembedding is not used."""

    pooler: None = None


def encoder_forward(
    sequences: Sequence[Sequence[int]],
    weights: DecoderEncoderWeights,
    config: LlamaConfig,
    trace: Tracer = no_trace,
    ops: Primitives = NUMPY,
    type_ids: Sequence[Sequence[int]] | None = None,
) -> list[Array]:
    """Token vectors of each sequence of ids, ``(n_tokens, d_model)`` each; there are no segments.

    Compiled ``ops`` overwrite traced arrays: trace with NumPy's.
    """
    ids, positions, spans = packed(sequences)
    token = weights.token_table[ids]
    decoder_ops = of_pack(spans, ops, config.is_causal)
    if isinstance(config, Gemma3Config):
        hidden = gemma3.scaled(token, config, trace)
        tables = [rotations(rope, positions, token.dtype) for rope in (config.rope, config.local_rope)]
        inputs = hidden, *tables[0], *tables[1]
        hidden = gemma3.layers(inputs, weights, config, None, decoder_ops, trace)
    else:
        hidden = trace("embeddings.output", token)
        own = hidden, *rotations(config.rope, positions, token.dtype)
        hidden = llama.layers(own, weights, config, None, decoder_ops, trace)
    hidden = trace("norm", llama.final_norm(hidden, weights, config, decoder_ops))
    return [hidden[span] for span in spans]


def of_pack(spans: Sequence[slice], ops: Primitives, is_causal: bool) -> DecoderPrimitives:
    """Primitives of a decoder that reads the texts of a pack, each from its first token, without a cache."""

    def attention(
        query: Array,
        key: Array,
        value: Array,
        cache: None,
        layer: int,
        trace: Tracer,
        window: int | None,
        scale: float | None,
    ) -> Array:
        query, key, value = trace("query", query), trace("key", key), trace("value", value)
        if scale is not None:  # of the scores, in place of 1 / sqrt(d_head)
            query = query * query.dtype.type(scale * np.sqrt(query.shape[-1]))
        contexts = []
        for s in spans:
            before = s.stop - s.start if window is None else window - 1
            after = 0 if is_causal else before
            own = query[:, s], key[:, s], value[:, s]
            contexts.append(ops.windowed_attention(*own, before, after, trace))
        return np.concatenate(contexts, axis=1)

    return DecoderPrimitives(
        ops.linear,
        ops.rms_norm,
        ops.layer_norm,
        ops.apply_rope,
        attention,
        np.add,
        ops.gated,
        ops.activations,
    )


def trace_shapes(config: LlamaConfig, n_tokens: int) -> Shapes:
    """Shape of every array that a forward pass over one text names."""
    family = gemma3 if isinstance(config, Gemma3Config) else llama
    shapes: Shapes = family.trace_shapes(config, n_tokens)
    return shapes


def read_config(folder: Path) -> LlamaConfig:
    """Read a config.json."""
    raw = read_json(folder / "config.json")
    is_gemma = raw["model_type"] == GEMMA
    config = gemma3_file.read_sizes(folder) if is_gemma else llama_file.read_folder_config(folder)
    # As transformers reads them: only Gemma knows the first, which puts half of a window on each side, and
    # the second counts windows without the token itself.
    halved = is_gemma and bool(raw.get("use_bidirectional_attention"))
    both_ways = raw.get("is_causal") is False
    if not (halved or both_ways):
        return config
    windows = tuple(w and (w // 2 + 1 if halved else w) + both_ways for w in config.windows)
    kind = TwoWayGemma3Config if is_gemma else TwoWayLlamaConfig
    return kind(**{**vars(config), "windows": windows})


def read_weights(tensors: dict[str, Array], config: LlamaConfig, dtype: np.dtype) -> DecoderEncoderWeights:
    """Name the tensors of a checkpoint, with or without the prefix ``model.``."""
    tensors = {PREFIX + name.removeprefix(PREFIX): array for name, array in tensors.items()}
    reader, sizes = TensorReader(tensors, dtype), replace(config, tied=True)  # without an unembedding
    if isinstance(config, Gemma3Config):
        weights = assemble_weights(gemma3_file.FOLDER_NAMES, reader, sizes, norm_offset=1)
    else:
        weights = assemble_weights(llama_file.FOLDER_NAMES, reader, sizes)
    return DecoderEncoderWeights(**vars(weights))
