"""GPT-2 from files: sizes and parameters, of a folder or a .gguf file."""

from dataclasses import replace
from pathlib import Path

from ..errors import ModelFileError
from ..layers.linear import Linear
from ..layers.norm import LayerNorm
from ..weights.gguf_file import GGUF
from ..weights.stored import StoredTensor
from ..weights.tensors import MAX_EPS, config_activation, config_float, config_size, read_json
from .gpt2 import GPT2Config, GPT2Layer, GPT2Weights
from .llama_file import GGUF_SIZES
from .stored_reader import StoredReader

# The name of each part in GGUF files, and in folders.
NAMES = {
    "token_table": ("token_embd", "wte"),
    "position_table": ("position_embd", "wpe"),
    "final_norm": ("output_norm", "ln_f"),
    "unembedding": ("output", "lm_head"),
    "attention_norm": ("blk.{}.attn_norm", "h.{}.ln_1"),
    "query_key_value": ("blk.{}.attn_qkv", "h.{}.attn.c_attn"),
    "attention_output": ("blk.{}.attn_output", "h.{}.attn.c_proj"),
    "ffn_norm": ("blk.{}.ffn_norm", "h.{}.ln_2"),
    "ffn_hidden": ("blk.{}.ffn_up", "h.{}.mlp.c_fc"),
    "ffn_output": ("blk.{}.ffn_down", "h.{}.mlp.c_proj"),
}
GGUF_NAMES, FOLDER_NAMES = ({part: own[kind] for part, own in NAMES.items()} for kind in (0, 1))
EPSILON = "attention.layer_norm_epsilon"
# Settings of config.json that change attention in ways that are not implemented.
UNREAD = {"scale_attn_weights": False, "scale_attn_by_inverse_layer_idx": True, "add_cross_attention": True}


def read_gguf_config(file: GGUF) -> GPT2Config:
    """Read the sizes from a GGUF file's metadata."""
    raw = {key: file[f"gpt2.{key}"] for key in (*GGUF_SIZES, EPSILON)}
    return checked(
        GPT2Config(
            vocab_size=len(file.texts("tokenizer.ggml.tokens")),
            d_model=config_size(raw, "embedding_length"),
            n_layers=config_size(raw, "block_count"),
            n_heads=config_size(raw, "attention.head_count"),
            d_ff=config_size(raw, "feed_forward_length"),
            max_positions=config_size(raw, "context_length"),
            norm_eps=config_float(raw, EPSILON, most=MAX_EPS),
            activation="gelu_new",
            tied="output.weight" not in file,
        ),
        file.path,
    )


def read_folder_config(folder: Path) -> GPT2Config:
    """Read the sizes from a GPT-2 folder's config.json.

    ``reorder_and_upcast_attn`` matters in half precision only.
    """
    raw = read_json(folder / "config.json")
    for key, unread in UNREAD.items():
        if raw.get(key) is unread:
            raise ModelFileError(
                f"{folder} has {key} {unread}, which is not read: use a GPT-2 with {key} {not unread}"
            )
    d_model = config_size(raw, "n_embd")
    return checked(
        GPT2Config(
            vocab_size=config_size(raw, "vocab_size"),
            d_model=d_model,
            n_layers=config_size(raw, "n_layer"),
            n_heads=config_size(raw, "n_head"),
            d_ff=config_size(raw, "n_inner", default=4 * d_model),
            max_positions=config_size(raw, "n_positions"),
            norm_eps=config_float(raw, "layer_norm_epsilon", default=1e-5, most=MAX_EPS),
            activation=config_activation(raw, "activation_function", "gelu_new"),
            tied=raw.get("tie_word_embeddings", True),
        ),
        folder,
    )


def checked(config: GPT2Config, path: Path) -> GPT2Config:
    """Return the sizes; raise `ModelFileError` if two of them contradict each other."""
    if config.d_model % config.n_heads:
        raise ModelFileError(
            f"{path}: {config.n_heads} heads cannot share {config.d_model} dimensions evenly: "
            f"download it again"
        )
    return config


def read_weights(reader: StoredReader, config: GPT2Config, gguf_architecture: str = "") -> GPT2Weights:
    """Read the tensors of a folder, which holds matrices ``(d_in, d_out)``, or of a GGUF file."""
    names, transposed = (GGUF_NAMES, False) if gguf_architecture else (FOLDER_NAMES, True)
    d_model, d_ff = config.d_model, config.d_ff

    def table(part: str, n_rows: int) -> StoredTensor:
        return reader.tensor(f"{names[part]}.weight", n_rows, d_model)

    def norm(part: str, number: int | None = None) -> LayerNorm:
        name = names[part].format(number)
        weight, bias = (reader.tensor(f"{name}.{kind}", d_model) for kind in ("weight", "bias"))
        return LayerNorm(reader.vector(weight), reader.vector(bias))

    def linear(part: str, number: int, d_out: int, d_in: int) -> Linear:
        name = names[part].format(number)
        stored = reader.tensor(f"{name}.weight", *((d_in, d_out) if transposed else (d_out, d_in)))
        weight = replace(stored, rows=stored.rows.T) if transposed else stored
        return Linear(reader.matrix(weight), reader.vector(reader.tensor(f"{name}.bias", d_out)))

    def layer(number: int) -> GPT2Layer:
        return GPT2Layer(
            attention_norm=norm("attention_norm", number),
            query_key_value=linear("query_key_value", number, 3 * d_model, d_model),
            attention_output=linear("attention_output", number, d_model, d_model),
            ffn_norm=norm("ffn_norm", number),
            ffn_hidden=linear("ffn_hidden", number, d_ff, d_model),
            ffn_output=linear("ffn_output", number, d_model, d_ff),
        )

    token_table = reader.matrix(table("token_table", config.vocab_size))
    return GPT2Weights(
        token_table=token_table,
        position_table=reader.vector(table("position_table", config.max_positions)),
        layers=tuple(layer(number) for number in range(config.n_layers)),
        final_norm=norm("final_norm"),
        unembedding=token_table if config.tied else reader.matrix(table("unembedding", config.vocab_size)),
    )
