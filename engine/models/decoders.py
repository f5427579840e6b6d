"""The decoder families behind one set of functions; which one it is, the type of the sizes tells."""

from collections.abc import Sequence
from pathlib import Path

from engine.layers.linear import linear
from engine.layers.tracing import Array, Shapes, Tracer, no_trace
from engine.models import llama
from engine.models.kv_cache import KVCache
from engine.weights.tensors import GGUF

DecoderConfig = llama.DecoderConfig
DecoderWeights = llama.DecoderWeights


def read_gguf_model(file: GGUF) -> tuple[DecoderConfig, DecoderWeights]:
    """Read sizes and parameters of a decoder from a GGUF file."""
    config = llama.read_gguf_config(file)
    return config, llama.read_gguf_weights(file, config)


def read_folder_model(folder: Path) -> tuple[DecoderConfig, DecoderWeights]:
    """Read sizes and parameters of a decoder from a folder with config.json and model.safetensors."""
    config = llama.read_folder_config(folder)
    return config, llama.read_folder_weights(folder, config)


def decoder_forward(
    ids: Sequence[int],
    weights: DecoderWeights,
    config: DecoderConfig,
    cache: KVCache,
    trace: Tracer = no_trace,
) -> Array:
    """Final hidden states of ``ids``, which follow the tokens in ``cache``: ``(n_new, d_model)``."""
    return llama.decoder_forward(ids, weights, config, cache, trace)


def unembed(hidden: Array, weights: DecoderWeights) -> Array:
    """Hidden states to logits: ``(n_tokens, d_model) -> (n_tokens, vocab_size)``."""
    return linear(hidden, weights.unembedding)


def trace_shapes(config: DecoderConfig, n_tokens: int) -> Shapes:
    """Shape of every array that a forward pass over ``n_tokens`` names."""
    return llama.trace_shapes(config, n_tokens)
