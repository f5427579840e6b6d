"""Gemma 3 from files: sizes and parameters, of a folder or a .gguf file.

Folders hold the weights of norms less 1; GGUF files hold them as they are used.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import ModelFileError
from ..weights.gguf_file import GGUF
from ..weights.tensors import config_float, config_size, read_json
from . import llama_file
from .gemma3 import Gemma3Config
from .llama import LlamaWeights
from .llama_file import GLOBAL, LOCAL, all_but_every, assemble_weights, checked, layer_types
from .rope import Rope, read_kind_rope
from .shared_layers import config_fields
from .stored_reader import StoredReader

GGUF_NAMES = llama_file.GGUF_NAMES | {
    "attention_post_norm": "blk.{}.post_attention_norm",
    "ffn_post_norm": "blk.{}.post_ffw_norm",
}
FOLDER_NAMES = llama_file.FOLDER_NAMES | {
    "attention_post_norm": "model.layers.{}.post_attention_layernorm",
    "ffn_norm": "model.layers.{}.pre_feedforward_layernorm",
    "ffn_post_norm": "model.layers.{}.post_feedforward_layernorm",
}
# Of settings that folders may leave out.
DEFAULTS = {
    "max_position_embeddings": 131_072,
    "rms_norm_eps": 1e-6,
    "hidden_activation": "gelu_pytorch_tanh",
}
LOCAL_THETA, GLOBAL_THETA = 1e4, 1e6
PATTERN = 6  # one layer in 6 sees all tokens
# llama.cpp identifies the largest model by its layers: files do not state how its scores are scaled.
LAYERS_OF_27B = 62


def read_gguf_config(file: GGUF) -> Gemma3Config:
    """Read the sizes from a GGUF file's metadata."""
    own = ("attention.sliding_window_pattern", "rope.freq_base_swa", "final_logit_softcapping")
    raw = llama_file.gguf_settings(file, "gemma3", (*llama_file.GGUF_OPTIONS, *own))
    sizes, window = llama_file.gguf_sizes(file, "gemma3", raw, d_head=256), llama_file.gguf_window(raw)
    n_layers, n_heads, d_head = sizes["n_layers"], sizes["n_heads"], sizes["d_head"]
    pattern = config_size(raw, "attention.sliding_window_pattern", default=PATTERN)
    local_theta = config_float(raw, "rope.freq_base_swa", default=LOCAL_THETA)
    return checked(
        Gemma3Config(
            **sizes,
            biased=frozenset(),
            head_norms=True,
            windows=tuple(window if local else None for local in all_but_every(pattern, n_layers)),
            rotated=(True,) * n_layers,
            stacked=False,
            local_rope=Rope(local_theta, (1.0,) * (d_head // 2)),
            query_scalar=sizes["d_model"] / n_heads if n_layers == LAYERS_OF_27B else d_head,
            logit_cap=optional_float(raw, "final_logit_softcapping"),
        ),
        file.path,
    )


def read_folder_config(folder: Path) -> Gemma3Config:
    """Read the sizes of a decoder from a Gemma 3 folder's config.json."""
    if read_json(folder / "config.json").get("use_bidirectional_attention"):
        raise ModelFileError(f"{folder} reads in both directions, as an embedding model: it does not write")
    return read_sizes(folder)


def read_sizes(folder: Path) -> Gemma3Config:
    """Read the sizes from a Gemma 3 folder's config.json."""
    raw = read_json(folder / "config.json")
    if raw["model_type"] != "gemma3_text":
        raise ModelFileError(
            f"{folder} is a model of images and texts, which is not read: "
            f"use a Gemma 3 of text only (gemma3_text), or a GGUF file"
        )
    sizes = config_fields(raw, "rms_norm_eps", "hidden_activation", **DEFAULTS)
    n_layers = sizes["n_layers"]
    d_head = config_size(raw, "head_dim", default=256)
    is_local = all_but_every(config_size(raw, "sliding_window_pattern", default=PATTERN), n_layers)
    kinds = layer_types(raw, [LOCAL if local else GLOBAL for local in is_local], folder)
    window = config_size(raw, "sliding_window", default=4096)
    return checked(
        Gemma3Config(
            **sizes,
            n_kv_heads=config_size(raw, "num_key_value_heads", default=4),
            d_head=d_head,
            rope=folder_rope(raw, GLOBAL, d_head, folder),
            tied=raw.get("tie_word_embeddings", True),
            biased=llama_file.folder_biases(raw),
            head_norms=True,
            windows=tuple(window if kind == LOCAL else None for kind in kinds),
            rotated=(True,) * n_layers,
            stacked=False,
            local_rope=folder_rope(raw, LOCAL, d_head, folder),
            query_scalar=config_float(raw, "query_pre_attn_scalar", default=256),
            logit_cap=optional_float(raw, "final_logit_softcapping"),
        ),
        folder,
    )


def optional_float(raw: Mapping[str, Any], key: str) -> float | None:
    """Return a number above 0, or None where there is none."""
    return None if raw.get(key) is None else config_float(raw, key)


def folder_rope(raw: Mapping[str, Any], kind: str, d_head: int, folder: Path) -> Rope:
    """Read the rotations of a kind of layers: older files scale only those of the global layers."""
    old = {"rope_theta": GLOBAL_THETA, "rope_local_base_freq": LOCAL_THETA, **raw}
    if kind == GLOBAL:
        return read_kind_rope(old, kind, "rope_theta", d_head, folder)
    return read_kind_rope(old | {"rope_scaling": None}, kind, "rope_local_base_freq", d_head, folder)


def read_weights(reader: StoredReader, config: Gemma3Config, gguf_architecture: str = "") -> LlamaWeights:
    """Read the tensors of a folder, or of a GGUF file."""
    if gguf_architecture:
        return assemble_weights(GGUF_NAMES, reader, config)
    return assemble_weights(FOLDER_NAMES, reader, config, norm_offset=1)
