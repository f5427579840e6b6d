"""The decoder families behind one set of functions; the class of the sizes identifies the family.

To add a family, write a module of its forward pass and one that reads its files, and an entry of `FAMILIES`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ..errors import InputError, ModelFileError
from ..kernels.primitives import has_op_tape
from ..layers.activation import soft_cap
from ..layers.linear import linear
from ..layers.primitives import NUMPY_DECODER
from ..layers.tracing import Array, Shapes, Tracer, no_trace
from ..weights.catalog import DecoderSizes
from ..weights.gguf_file import GGUF
from ..weights.memory import require_memory
from ..weights.stored import StoredTensor, held_bytes
from ..weights.tensors import read_json, read_stored, require
from . import gemma3, gemma3_file, gpt2, gpt2_file, llama, llama_file
from .kv_cache import KVCache
from .stored_reader import StoredReader

DecoderConfig = llama.LlamaConfig | gpt2.GPT2Config
DecoderWeights = llama.LlamaWeights | gpt2.GPT2Weights

FLOAT32_BYTES = 4
MAX_FILE_NAME = 255  # characters, of all usual file systems
# Tokens of a long prompt and its answer, whose keys and values count as memory; a model may have more.
CACHE_TOKENS = 8192
# Prompt tokens go through the layers in blocks of this many, which bounds the attention scores
# in memory at once to (n_heads, 512, n_tokens).
BLOCK_TOKENS = 512
SCORE_COPIES = 4  # of the scores that NumPy holds at once, in `attention_weights` and `softmax`


def read_gguf_model(file: GGUF, compiled: bool) -> tuple[DecoderConfig, DecoderWeights]:
    """Read sizes and parameters of a decoder from a GGUF file.

    With ``compiled``, matrices keep the file's quantization if the compiled operations support the model.
    """
    kind = "mmproj" if file.get("general.architecture") == "clip" else file.get("general.type")
    if isinstance(kind, str) and kind in OTHER_TYPES:
        raise ModelFileError(f"{file.path} is {OTHER_TYPES[kind]}")
    family = file_module(file["general.architecture"], file.path)
    config = family.read_gguf_config(file)
    packed = compiled and has_compiled_ops(config)
    n_bytes = file.held_bytes if packed else None
    require_memory(memory_bytes(config, n_bytes), str(file.path))
    reader = StoredReader(file.tensor, packed)
    return config, family.read_weights(reader, config, file["general.architecture"])


def read_folder_model(folder: Path, compiled: bool) -> tuple[DecoderConfig, DecoderWeights]:
    """Read a decoder's folder with config.json and safetensors as `read_gguf_model` reads a file."""
    family = file_module(read_json(folder / "config.json").get("model_type"), folder)
    config = family.read_folder_config(folder)
    packed = compiled and has_compiled_ops(config)
    n_bytes = sum(path.stat().st_size for path in folder.glob("*.safetensors")) if packed else None
    require_memory(memory_bytes(config, n_bytes), str(folder))
    return config, family.read_weights(StoredReader(folder_tensors(folder), packed), config)


def has_compiled_ops(config: DecoderConfig) -> bool:
    """Whether compiled operations are available and support a decoder of these sizes."""
    if not has_op_tape():
        return False
    from ..kernels.op_tape import fits

    return fits(config.d_head, config.activation)


@dataclass(frozen=True)
class Family:
    """A decoder family: the class of its sizes, the module of its forward pass, and the one that reads files.

    The functions of the modules have the same names in all families.
    """

    config: type
    forward: ModuleType
    files: ModuleType


LLAMA = Family(llama.LlamaConfig, llama, llama_file)
GEMMA3 = Family(gemma3.Gemma3Config, gemma3, gemma3_file)
# By the architecture: config.json calls it model_type, and GGUF general.architecture. The GGUF files of
# Mistral are llama's.
FAMILIES = {
    "llama": LLAMA,
    "qwen2": LLAMA,
    "qwen3": LLAMA,
    "mistral": LLAMA,
    "smollm3": LLAMA,
    "phi3": LLAMA,
    "gemma3_text": GEMMA3,
    "gemma3": GEMMA3,
    "gpt2": Family(gpt2.GPT2Config, gpt2, gpt2_file),
}
# Related families that are not read, by their names in config.json or GGUF without _ and -; how they differ.
EXPERTS = "each token passes through a few of many feed-forward networks"
NOT_READ = {
    "qwen2moe": f"Qwen2-MoE, where {EXPERTS}",
    "qwen3moe": f"Qwen3-MoE, where {EXPERTS}",
    "mixtral": f"Mixtral, where {EXPERTS}",
    "phimoe": f"Phi-3.5-MoE, where {EXPERTS}",
    "llama4": f"Llama 4, where {EXPERTS}",
    "llama4text": f"Llama 4, where {EXPERTS}",
    "gptoss": f"gpt-oss, where {EXPERTS}",
    "gemma": "the first Gemma, with other norms than Gemma 3",
    "gemma2": "Gemma 2, with bounded attention scores",
    "gemma3n": "Gemma 3n, with several streams of hidden states",
    "phi3small": "Phi-3-small, with sparse attention",
}


# GGUF files other than those of models, by their general.type, and what to give.
OTHER_TYPES = {
    "adapter": "an adapter (LoRA), which changes another model: merge it into that one by llama.cpp's "
    "llama-export-lora, and give the result",
    "mmproj": "the part of a model that reads pictures or sound: give the file of the language model itself",
    "imatrix": "a table of statistics for quantising a model: give the file of the model itself",
}


def file_module(architecture: object, path: Path) -> ModuleType:
    """Return the module that reads models of an architecture; raise `ModelFileError` for unknown ones."""
    if isinstance(architecture, str) and architecture in FAMILIES:
        return FAMILIES[architecture].files
    difference = NOT_READ.get(str(architecture).replace("_", "").replace("-", ""))
    reason = f" ({difference})" if difference else ""
    raise ModelFileError(
        f"{path} is a {architecture!r} model, which is not read{reason}: "
        f"give one of the architectures {', '.join(FAMILIES)}"
    )


def forward_module(config: DecoderConfig) -> ModuleType:
    """Return the module of the forward pass for these sizes; raise `InputError` for unknown ones."""
    for family in FAMILIES.values():
        if type(config) is family.config:
            return family.forward
    raise InputError(
        f"{type(config).__name__} belongs to no decoder family: give sizes of {', '.join(FAMILIES)}"
    )


def folder_tensors(folder: Path) -> Callable[[str], StoredTensor]:
    """Open a folder's model.safetensors, or the several files that its index lists.

    The function returned gives each tensor once and drops it, so that converted copies do not add up.
    """
    whole, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    tensors: dict[str, StoredTensor] = {}
    for file in [whole.name] if whole.is_file() or not index.is_file() else shards(index):
        # GPT-2's original checkpoint has names without this prefix.
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
    if not names or any(
        not isinstance(name, str) or name != Path(name).name or len(name) > MAX_FILE_NAME for name in names
    ):
        raise ModelFileError(f"{index} does not list the files next to it: download it again")
    return sorted(set(names))


def memory_bytes(config: DecoderConfig, packed_bytes: int | None) -> int:
    """Bytes of a decoder: its parameters, packed or as float32, and the attention to a long prompt."""
    packed = packed_bytes is not None
    n_tokens = min(config.max_positions, CACHE_TOKENS)
    attention = cache_bytes(config, packed) + scores_bytes(config, n_tokens, packed)
    if packed_bytes is not None:
        return packed_bytes + attention
    return FLOAT32_BYTES * forward_module(config).parameter_count(config) + attention


def cache_bytes(config: DecoderConfig | DecoderSizes, packed: bool) -> int:
    """Bytes of the keys and values of a long prompt.

    While a full cache grows, the old keys, or the old values, are in memory with the new ones.
    """
    n_vectors = 2 * config.n_layers * config.n_kv_heads * min(config.max_positions, CACHE_TOKENS)
    n_cached = n_vectors * config.d_head * np.dtype(cache_type(packed)).itemsize
    return n_cached + n_cached // 2


def scores_bytes(config: DecoderConfig, n_tokens: int, packed: bool) -> int:
    """Bytes of a layer's attention scores to ``n_tokens``, and of copies of its keys and values."""
    n_scores = SCORE_COPIES * config.n_heads * min(n_tokens, BLOCK_TOKENS)
    if packed:
        from ..kernels.op_tape import scores_per_key  # needs numba

        n_scores = scores_per_key(config.n_heads)
    return FLOAT32_BYTES * n_tokens * (2 * config.n_kv_heads * config.d_head + n_scores)


def cache_type(packed: bool) -> type:
    """Return the type of cached numbers, that of the compiled operations or of NumPy."""
    return np.float16 if packed else np.float32


def memory_bytes_before(sizes: DecoderSizes, file_bytes: int) -> tuple[int, int]:
    """Estimate the bytes of the weights and of the cache of a long prompt before the file is downloaded.

    Matrices that stay in the file's own type take at least as many bytes as in the file.
    """
    packed = has_op_tape()
    n_cached = cache_bytes(sizes, packed)
    if packed:
        return max(file_bytes, round(sizes.n_numbers * held_bytes(sizes.kind))), n_cached
    return FLOAT32_BYTES * sizes.n_numbers, n_cached


def new_cache(
    weights: DecoderWeights, config: DecoderConfig, capacity: int, limit: int | None = None
) -> KVCache:
    """Return an empty cache of a `cache_type`."""
    return KVCache(config, capacity, limit, cache_type(is_packed(weights)))


def is_compiled(weights: DecoderWeights, cache: KVCache) -> bool:
    """Whether compiled operations read the cache, which takes packed weights and float16."""
    return is_packed(weights) and cache.keys.dtype != np.float32


def is_packed(weights: DecoderWeights) -> bool:
    """Whether a decoder's matrices are packed, for compiled operations."""
    return not isinstance(weights.token_table, np.ndarray)


def decoder_forward(
    ids: Sequence[int],
    weights: DecoderWeights,
    config: DecoderConfig,
    cache: KVCache,
    trace: Tracer = no_trace,
) -> Array:
    """Final hidden states of ``ids``, which follow the tokens in ``cache``: ``(n_new, d_model)``.

    The new tokens are added to the cache. Compiled operations need a `new_cache` of packed weights and no
    tracer; otherwise NumPy runs.
    """
    family = forward_module(config)
    compiled = trace is no_trace and is_compiled(weights, cache)
    ops = new_op_tape(cache.length) if compiled else NUMPY_DECODER
    inputs = family.embed(ids, weights, config, cache, trace)
    hidden = family.layers(inputs, weights, config, cache, ops, trace)
    cache.length += len(ids)
    return trace("norm", family.final_norm(hidden, weights, config, ops))


def new_op_tape(length: int) -> Any:
    """Return compiled primitives for a pass behind ``length`` cached tokens."""
    from ..kernels.op_tape import OpTape  # needs numba

    return OpTape(length)


def final_norm(hidden: Array, weights: DecoderWeights, config: DecoderConfig) -> Array:
    """Return the norm between the last layer and `unembed`: ``(..., d_model)`` to the same."""
    return forward_module(config).final_norm(hidden, weights, config)


def unembed(hidden: Array, weights: DecoderWeights, config: DecoderConfig) -> Array:
    """Hidden states to logits: ``(n_tokens, d_model) -> (n_tokens, vocab_size)``."""
    if is_packed(weights):
        return capped(new_op_tape(0).linear(np.ascontiguousarray(hidden), weights.unembedding), config)
    return capped(linear(hidden, weights.unembedding), config)


def capped(logits: Array, config: DecoderConfig) -> Array:
    """Return the logits, bounded softly where the model has a bound: ``(n_tokens, vocab_size)``."""
    cap = config.logit_cap if isinstance(config, gemma3.Gemma3Config) else None
    return logits if cap is None else soft_cap(logits, cap)


def trace_shapes(config: DecoderConfig, n_tokens: int) -> Shapes:
    """Shape of every array that a forward pass over ``n_tokens`` names."""
    return forward_module(config).trace_shapes(config, n_tokens)
