"""The decoder families behind one set of functions; which one it is, the type of the sizes tells.

Every family is a module ``X`` of a forward pass and what belongs to it, and a module ``X_file`` that
reads it; the functions of all families have the same names.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.errors import ModelFileError
from engine.layers.linear import linear
from engine.layers.primitives import NUMPY_DECODER, has_programs
from engine.layers.tracing import Array, Shapes, Tracer, no_trace
from engine.models import gpt2, gpt2_file, llama, llama_file
from engine.models.kv_cache import KVCache
from engine.weights.gguf_file import GGUF
from engine.weights.memory import require_memory
from engine.weights.stored import StoredTensor
from engine.weights.tensors import read_json, read_stored, require

if TYPE_CHECKING:
    from engine.layers.program import Program

DecoderConfig = llama.LlamaConfig | gpt2.GPT2Config
DecoderWeights = llama.LlamaWeights | gpt2.GPT2Weights

FLOAT32_BYTES = 4
# Room for the keys and values of a long prompt and its answer; a model may have positions for more.
CACHE_TOKENS = 2048


def read_gguf_model(file: GGUF, compiled: bool) -> tuple[DecoderConfig, DecoderWeights]:
    """Read sizes and parameters of a decoder from a GGUF file.

    With ``compiled`` matrices stay in the file's own few bits, where the kernels have steps for the model.

    Raises
    ------
    ModelFileError
        The file is of another architecture, or damaged.
    MemoryLimitError
        The decoder would not fit into the memory that is free.
    """
    family = file_module(file["general.architecture"], file.path)
    config = family.read_gguf_config(file)
    packed = compiled and has_steps(config)
    require_memory(memory_bytes(config, file.held_bytes if packed else None), str(file.path))
    return config, family.read_gguf_weights(file, config, packed)


def read_folder_model(folder: Path, compiled: bool) -> tuple[DecoderConfig, DecoderWeights]:
    """Read sizes and parameters of a decoder from a folder with config.json and safetensors.

    As `read_gguf_model` does; 16-bit numbers stay so.
    """
    family = file_module(read_json(folder / "config.json").get("model_type"), folder)
    config = family.read_folder_config(folder)
    packed = compiled and has_steps(config)
    n_bytes = sum(path.stat().st_size for path in folder.glob("*.safetensors")) if packed else None
    require_memory(memory_bytes(config, n_bytes), str(folder))
    return config, family.read_folder_weights(folder_tensors(folder), config, packed)


def has_steps(config: DecoderConfig) -> bool:
    """Whether there are compiled steps, here and for a decoder of these sizes."""
    if not has_programs():
        return False
    from engine.layers.program import fits

    return fits(config.d_head, config.activation if isinstance(config, gpt2.GPT2Config) else "swiglu")


def file_module(architecture: object, path: Path) -> ModuleType:
    """Return the module that reads models of an architecture, or say which ones are read."""
    for family in (llama_file, gpt2_file):
        if architecture in family.ARCHITECTURES:
            return family
    known = ", ".join((*llama_file.ARCHITECTURES, *gpt2_file.ARCHITECTURES))
    raise ModelFileError(
        f"{path} is a {architecture!r} model, which is not read: give one of the architectures {known}"
    )


def folder_tensors(folder: Path) -> Callable[[str], StoredTensor]:
    """Open a folder's model.safetensors, or the several files that its index lists.

    The function returned gives each tensor once and lets go of it, so that copies of it in another
    form do not add up.
    """
    whole, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    tensors: dict[str, StoredTensor] = {}
    for file in [whole.name] if whole.is_file() or not index.is_file() else shards(index):
        # GPT-2's own checkpoint leaves out the first part of the names.
        found = read_stored(folder / file)
        tensors |= {name.removeprefix("transformer."): stored for name, stored in found.items()}

    def read(name: str) -> StoredTensor:
        require(tensors, name)
        return tensors.pop(name)

    return read


def shards(index: Path) -> list[str]:
    """Names of the files that hold a model's tensors, as its index lists them."""
    files = read_json(index).get("weight_map")
    names = list(files.values()) if isinstance(files, dict) else []
    if not names or any(not isinstance(name, str) or name != Path(name).name for name in names):
        raise ModelFileError(f"{index} does not list the files beside it: download it again")
    return sorted(set(names))


def memory_bytes(config: DecoderConfig, packed_bytes: int | None) -> int:
    """Bytes that a decoder takes: its parameters, packed or as float32, and the cache of a long prompt."""
    n_tokens = min(config.max_positions, CACHE_TOKENS)
    n_cached = 2 * config.n_layers * config.n_kv_heads * config.d_head * n_tokens
    if packed_bytes is not None:
        return packed_bytes + n_cached * np.dtype(np.float16).itemsize
    return FLOAT32_BYTES * (forward_module(config).parameter_count(config) + n_cached)


def forward_module(config: DecoderConfig) -> ModuleType:
    """Return the module of the forward pass that goes with these sizes."""
    return gpt2 if isinstance(config, gpt2.GPT2Config) else llama


def new_cache(
    weights: DecoderWeights, config: DecoderConfig, capacity: int, limit: int | None = None
) -> KVCache:
    """Return an empty cache: of float16 where compiled steps read it, which costs no more than rounding."""
    return KVCache(config, capacity, limit, np.float16 if is_packed(weights) else np.float32)


def is_packed(weights: DecoderWeights) -> bool:
    """Whether a decoder holds its matrices packed, for compiled steps."""
    return not isinstance(weights.token_table, np.ndarray)


def decoder_forward(
    ids: Sequence[int],
    weights: DecoderWeights,
    config: DecoderConfig,
    cache: KVCache,
    trace: Tracer = no_trace,
) -> Array:
    """Final hidden states of ``ids``, which follow the tokens in ``cache``: ``(n_new, d_model)``.

    The cache takes in the new tokens. Compiled steps are for a `new_cache` of packed weights where nobody
    looks; anything else goes the readable way.
    """
    family, ops = forward_module(config), NUMPY_DECODER
    if cache.keys.dtype == np.float16 and trace is no_trace:
        ops = new_program(cache.length)
    begin = family.embed(ids, weights, config, cache.length, trace)
    hidden = family.layers(begin, weights, config, cache, ops, trace)
    cache.length += len(ids)
    return trace("norm", family.final_norm(hidden, weights, config, ops))


def new_program(length: int, record: bool = False) -> Any:
    """Return compiled primitives for a pass behind ``length`` cached tokens."""
    from engine.layers.program import Program  # needs numba

    return Program(length, record)


@dataclass(frozen=True)
class RecordedPass:
    """A few tokens' way through a decoder, to be gone again: where it begins, its steps, where it ends.

    What it begins with and the logits have room for `FEW_TOKENS` rows, if the model has as many positions.
    """

    begin: tuple[Array, ...]
    program: "Program"
    logits: Array


def record_pass(
    n_tokens: int, weights: DecoderWeights, config: DecoderConfig, cache: KVCache
) -> RecordedPass:
    """Write down the way of up to ``n_tokens`` through a decoder, which nobody goes yet."""
    family, ops = forward_module(config), new_program(cache.length, record=True)
    begin = family.embed([0] * n_tokens, weights, config, start=0)
    hidden = family.final_norm(family.layers(begin, weights, config, cache, ops), weights, config, ops)
    return RecordedPass(begin, ops, ops.linear(hidden, weights.unembedding))


def next_logits(ids: Sequence[int], weights: DecoderWeights, config: DecoderConfig, cache: KVCache) -> Array:
    """Logits after each of a few more tokens, which the cache takes in: ``(n_tokens, vocab_size)``.

    Compiled steps give a token the same logits, to the last bit, whichever others are read along with it.
    """
    if cache.keys.dtype != np.float16:
        return unembed(decoder_forward(ids, weights, config, cache), weights)
    from engine.layers.matrix_steps import FEW_TOKENS  # needs numba

    n_tokens = len(ids)
    cache.reserve(cache.length + n_tokens)
    if not isinstance(cache.recorded, RecordedPass):
        cache.recorded = record_pass(min(FEW_TOKENS, config.max_positions), weights, config, cache)
    recorded = cache.recorded
    begin = forward_module(config).embed(ids, weights, config, cache.length)
    for place, value in zip(recorded.begin, begin, strict=True):
        place[:n_tokens] = value
    recorded.program.run(cache.length, n_tokens)
    cache.length += n_tokens
    return recorded.logits[:n_tokens].copy()


def final_norm(hidden: Array, weights: DecoderWeights, config: DecoderConfig) -> Array:
    """Return the norm between the last layer and `unembed`: ``(..., d_model)`` to the same."""
    return forward_module(config).final_norm(hidden, weights, config)


def unembed(hidden: Array, weights: DecoderWeights) -> Array:
    """Hidden states to logits: ``(n_tokens, d_model) -> (n_tokens, vocab_size)``."""
    if is_packed(weights):
        return new_program(0).linear(np.ascontiguousarray(hidden), weights.unembedding)
    return linear(hidden, weights.unembedding)


def trace_shapes(config: DecoderConfig, n_tokens: int) -> Shapes:
    """Shape of every array that a forward pass over ``n_tokens`` names."""
    return forward_module(config).trace_shapes(config, n_tokens)
