"""Llama-family decoders from files: sizes and parameters, of a folder or a .gguf file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..errors import ModelFileError
from ..layers.linear import Linear, Matrix
from ..layers.tracing import Array
from ..weights.gguf_file import GGUF
from ..weights.tensors import MAX_EPS, TensorReader, config_float, config_size, read_json
from .llama import LlamaConfig, LlamaLayer, LlamaWeights, matrix_shapes
from .rope import read_folder_rope, read_gguf_rope
from .shared_layers import config_fields
from .stored_reader import StoredReader

Config = TypeVar("Config", bound=LlamaConfig)

QUERY_KEY_VALUE = ("query", "key", "value")
GATE_UP = ("gate", "up")
# Matrices that are stacked; all of a stack have a bias, or none.
STACKS = (QUERY_KEY_VALUE, ("attention_output",), GATE_UP, ("ffn_output",))
# Where config.json has no use_sliding_window, the window of all layers if none is stated.
ALWAYS_SLIDING = {"mistral": 4096, "phi3": None}
POST_NORMS = ("attention_post_norm", "ffn_post_norm")  # of families that have them
STACKED = ("phi3",)  # architectures whose files hold stacked matrices
GLOBAL, LOCAL = "full_attention", "sliding_attention"  # the values of layer_types
NOPE_INTERVAL = 4  # one layer of SmolLM3 in 4 does not rotate
NORM_HEADS = ("qwen3",)  # architectures that norm the queries and keys of each head

# The name of each part in GGUF files, and in folders.
NAMES = {
    "token_table": ("token_embd", "model.embed_tokens"),
    "final_norm": ("output_norm", "model.norm"),
    "unembedding": ("output", "lm_head"),
    "attention_norm": ("blk.{}.attn_norm", "model.layers.{}.input_layernorm"),
    "query_key_value": ("blk.{}.attn_qkv", "model.layers.{}.self_attn.qkv_proj"),
    "query": ("blk.{}.attn_q", "model.layers.{}.self_attn.q_proj"),
    "key": ("blk.{}.attn_k", "model.layers.{}.self_attn.k_proj"),
    "value": ("blk.{}.attn_v", "model.layers.{}.self_attn.v_proj"),
    "query_norm": ("blk.{}.attn_q_norm", "model.layers.{}.self_attn.q_norm"),
    "key_norm": ("blk.{}.attn_k_norm", "model.layers.{}.self_attn.k_norm"),
    "attention_output": ("blk.{}.attn_output", "model.layers.{}.self_attn.o_proj"),
    "ffn_norm": ("blk.{}.ffn_norm", "model.layers.{}.post_attention_layernorm"),
    "gate_up": ("blk.{}.ffn_up", "model.layers.{}.mlp.gate_up_proj"),
    "gate": ("blk.{}.ffn_gate", "model.layers.{}.mlp.gate_proj"),
    "up": ("blk.{}.ffn_up", "model.layers.{}.mlp.up_proj"),
    "ffn_output": ("blk.{}.ffn_down", "model.layers.{}.mlp.down_proj"),
}
GGUF_NAMES, FOLDER_NAMES = ({part: own[kind] for part, own in NAMES.items()} for kind in (0, 1))
GGUF_SIZES = (
    "block_count",
    "context_length",
    "embedding_length",
    "feed_forward_length",
    "attention.head_count",
)
RMS_EPSILON = "attention.layer_norm_rms_epsilon"
GGUF_OPTIONS = ("attention.head_count_kv", "attention.key_length", "attention.sliding_window")


def read_gguf_config(file: GGUF) -> LlamaConfig:
    """Read the sizes from a GGUF file's metadata."""
    architecture = file["general.architecture"]
    raw = gguf_settings(file, architecture, GGUF_OPTIONS)
    if n_experts := file.get(f"{architecture}.expert_count"):
        raise ModelFileError(f"{file.path} is a mixture of {n_experts} experts, which is not read")
    n_heads, d_model = config_size(raw, "attention.head_count"), config_size(raw, "embedding_length")
    sizes = gguf_sizes(file, architecture, raw, d_head=max(d_model // n_heads, 1))
    in_file = {stack for stack in STACKS if f"{GGUF_NAMES[stack[0]].format(0)}.bias" in file}
    biased = in_file | {QUERY_KEY_VALUE} if architecture == "qwen2" else in_file
    return checked(
        LlamaConfig(
            **sizes,
            biased=frozenset(part for stack in biased for part in stack),
            head_norms=architecture in NORM_HEADS,
            windows=(gguf_window(raw),) * sizes["n_layers"],
            rotated=all_but_every(NOPE_INTERVAL if architecture == "smollm3" else None, sizes["n_layers"]),
            stacked=architecture in STACKED,
        ),
        file.path,
    )


def gguf_settings(file: GGUF, architecture: str, optional: Sequence[str]) -> dict[str, Any]:
    """Return the sizes and optional settings of a GGUF file, None for those that it does not state."""
    settings = {key: file[f"{architecture}.{key}"] for key in (*GGUF_SIZES, RMS_EPSILON)}
    return settings | {key: file.get(f"{architecture}.{key}") for key in optional}


def gguf_sizes(file: GGUF, architecture: str, raw: Mapping[str, Any], d_head: int) -> dict[str, Any]:
    """Return the fields of `LlamaConfig` that all families state alike; ``d_head`` where none is stated."""
    n_heads = config_size(raw, "attention.head_count")
    d_head = config_size(raw, "attention.key_length", default=d_head)
    rope = read_gguf_rope(file, architecture, d_head)
    return {
        "vocab_size": len(file.texts("tokenizer.ggml.tokens")),
        "d_model": config_size(raw, "embedding_length"),
        "n_layers": config_size(raw, "block_count"),
        "n_heads": n_heads,
        "n_kv_heads": config_size(raw, "attention.head_count_kv", default=n_heads),
        "d_head": d_head,
        "d_ff": config_size(raw, "feed_forward_length"),
        "max_positions": min(config_size(raw, "context_length"), rope.max_positions),
        "norm_eps": config_float(raw, RMS_EPSILON, most=MAX_EPS),
        "rope": rope,
        "tied": "output.weight" not in file,
    }


def gguf_window(raw: Mapping[str, Any]) -> int | None:
    """Return the number of last tokens that a token sees, None for all (0, or nothing stated)."""
    return config_size(raw, "attention.sliding_window") if raw["attention.sliding_window"] else None


def read_folder_config(folder: Path) -> LlamaConfig:
    """Read the sizes from a Llama-family folder's config.json."""
    raw = read_json(folder / "config.json")
    sizes = config_fields(raw, "rms_norm_eps", "hidden_act", hidden_act="silu")
    d_head = config_size(raw, "head_dim", default=max(sizes["d_model"] // sizes["n_heads"], 1))
    rope = read_folder_rope(raw, d_head, folder)
    sizes["max_positions"] = min(sizes["max_positions"], rope.max_positions)
    return checked(
        LlamaConfig(
            **sizes,
            n_kv_heads=config_size(raw, "num_key_value_heads", default=sizes["n_heads"]),
            d_head=d_head,
            rope=rope,
            tied=raw.get("tie_word_embeddings", False),
            biased=folder_biases(raw),
            head_norms=raw["model_type"] in NORM_HEADS,
            windows=folder_windows(raw, folder),
            rotated=folder_rotated(raw, folder),
            stacked=raw["model_type"] in STACKED,
        ),
        folder,
    )


def folder_biases(raw: Mapping[str, Any]) -> frozenset[str]:
    """Return the matrices with a bias, as `LlamaConfig.biased`; families ignore settings that they lack."""
    kind = raw["model_type"]
    if kind == "qwen2":
        return frozenset(QUERY_KEY_VALUE)
    attention = raw.get("attention_bias") and kind in ("llama", "qwen3", "smollm3", "gemma3_text")
    ffn = raw.get("mlp_bias") and kind in ("llama", "smollm3")
    parts = [*QUERY_KEY_VALUE, "attention_output"] if attention else []
    return frozenset([*parts, *((*GATE_UP, "ffn_output") if ffn else ())])


def folder_windows(raw: Mapping[str, Any], folder: Path) -> tuple[int | None, ...]:
    """Number of last tokens that a token sees in each layer of a config.json; None for all."""
    n_layers, always = config_size(raw, "num_hidden_layers"), raw["model_type"] in ALWAYS_SLIDING
    window = raw.get("sliding_window", ALWAYS_SLIDING.get(raw["model_type"], 4096))
    if window is None or not (always or raw.get("use_sliding_window")):
        return (None,) * n_layers
    window = config_size({"sliding_window": window}, "sliding_window")
    if always:
        return (window,) * n_layers
    first = raw.get("max_window_layers", 28)
    usual = [LOCAL if number >= first else GLOBAL for number in range(n_layers)]
    if raw["model_type"] == "smollm3":
        usual = [GLOBAL if rotated else LOCAL for rotated in folder_rotated(raw, folder)]
    return tuple(window if kind == LOCAL else None for kind in layer_types(raw, usual, folder))


def folder_rotated(raw: Mapping[str, Any], folder: Path) -> tuple[bool, ...]:
    """Whether each layer of a config.json rotates queries and keys.

    SmolLM3's ``no_rope_layers`` has 1 for those that do.
    """
    n_layers = config_size(raw, "num_hidden_layers")
    if raw["model_type"] != "smollm3":
        return (True,) * n_layers
    listed = raw.get("no_rope_layers")
    if listed is None:
        return all_but_every(config_size(raw, "no_rope_layer_interval", NOPE_INTERVAL), n_layers)
    if len(listed) < n_layers or not set(listed) <= {0, 1}:
        raise ModelFileError(f"{folder}: no_rope_layers is not {n_layers} of 0 and 1")
    return tuple(map(bool, listed[:n_layers]))


def all_but_every(interval: int | None, n_layers: int) -> tuple[bool, ...]:
    """False for every ``interval``-th of the layers, True for all others."""
    return tuple(interval is None or number % interval != 0 for number in range(1, n_layers + 1))


def layer_types(raw: Mapping[str, Any], usual: Sequence[str], folder: Path) -> Sequence[str]:
    """Return the kind of attention of each layer of a config.json, `GLOBAL` or `LOCAL`."""
    kinds = raw.get("layer_types") or usual
    if len(kinds) != len(usual) or not set(kinds) <= {GLOBAL, LOCAL}:
        raise ModelFileError(f"{folder}: layer_types is not {len(usual)} of {GLOBAL} and {LOCAL}")
    return kinds


def checked(config: Config, path: Path) -> Config:
    """Return the sizes; raise `ModelFileError` if two of them contradict each other."""
    if config.n_heads % config.n_kv_heads:
        raise ModelFileError(
            f"{path}: {config.n_heads} query heads cannot share {config.n_kv_heads} key heads evenly: "
            f"download it again"
        )
    if config.d_head % 2:
        raise ModelFileError(
            f"{path}: heads of {config.d_head} dimensions cannot be rotated in pairs: download it again"
        )
    return config


def read_weights(reader: StoredReader, config: LlamaConfig, gguf_architecture: str = "") -> LlamaWeights:
    """Read the tensors of a folder, or of a GGUF file of an architecture."""
    if not gguf_architecture:
        return assemble_weights(FOLDER_NAMES, reader, config)
    # llama.cpp rotates neighbouring rows of these models, so its converter reorders them.
    interleaved = gguf_architecture in ("llama", "smollm3")
    return assemble_weights(GGUF_NAMES, reader, config, interleaved)


def assemble_weights(
    names: Mapping[str, str],
    reader: StoredReader | TensorReader,
    config: LlamaConfig,
    interleaved: bool = False,
    norm_offset: int = 0,
) -> LlamaWeights:
    """Read every tensor by its name in the file, and stack those with the same input.

    In ``interleaved`` files, rows of the two halves of each head's rotary dimensions alternate.
    ``norm_offset`` is added to the weights of norms.
    """
    shapes, d_model = matrix_shapes(config), config.d_model

    def tensor(part: str, kind: str, *shape: int, number: int | None = None) -> Any:
        stored = reader.tensor(f"{names[part].format(number)}.{kind}", *shape)
        rotated = interleaved and part in ("query", "key")
        return stored[deinterleaved(shape[0], shape[0] // config.d_head)] if rotated else stored

    def linear(number: int, *parts: str) -> Linear:
        weights = [tensor(part, "weight", *shapes[part], number=number) for part in parts]
        biases = [
            reader.vector(tensor(part, "bias", shapes[part][0], number=number))
            for part in parts
            if part in config.biased
        ]
        return Linear(reader.matrix(*weights), np.concatenate(biases) if biases else None)

    def stack(name: str, number: int, *parts: str) -> Linear:
        if not config.stacked:
            return linear(number, *parts)
        d_out = sum(shapes[part][0] for part in parts)
        return Linear(reader.matrix(tensor(name, "weight", d_out, d_model, number=number)), None)

    def norm(part: str, number: int | None = None, width: int = d_model) -> Array:
        return reader.vector(tensor(part, "weight", width, number=number)) + np.float32(norm_offset)

    def head_norm(part: str, number: int) -> Array | None:
        return norm(part, number, config.d_head) if config.head_norms else None

    def read_layer(number: int) -> LlamaLayer:
        return LlamaLayer(
            attention_norm=norm("attention_norm", number),
            query_key_value=stack("query_key_value", number, *QUERY_KEY_VALUE),
            attention_output=linear(number, "attention_output"),
            ffn_norm=norm("ffn_norm", number),
            gate_up=stack("gate_up", number, *GATE_UP),
            ffn_output=linear(number, "ffn_output"),
            query_norm=head_norm("query_norm", number),
            key_norm=head_norm("key_norm", number),
            **{part: norm(part, number) for part in POST_NORMS if part in names},
        )

    def table(part: str) -> Matrix:
        return reader.matrix(tensor(part, "weight", config.vocab_size, d_model))

    token_table = table("token_table")
    return LlamaWeights(
        token_table=token_table,
        layers=tuple(read_layer(number) for number in range(config.n_layers)),
        final_norm=norm("final_norm"),
        unembedding=token_table if config.tied else table("unembedding"),
    )


def deinterleaved(n_rows: int, n_heads: int) -> Array:
    """Row order that undoes the reordering of query and key by llama.cpp's converter: ``(n_rows,)``."""
    pairs = np.arange(n_rows).reshape(n_heads, -1, 2)  # (n_heads, d_head / 2, 2)
    return pairs.swapaxes(1, 2).ravel()
