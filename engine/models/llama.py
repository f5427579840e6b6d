"""Llama (Touvron et al. 2023), forward: RMS norm, RoPE, grouped-query attention, SwiGLU."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from engine.errors import ModelFileError
from engine.layers.activation import silu
from engine.layers.attention import attention, causal_mask, merge_heads, split_heads
from engine.layers.linear import linear
from engine.layers.norm import rms_norm
from engine.layers.positions import apply_rope, rope_tables
from engine.layers.tracing import Array, Shapes, Tracer, no_trace, scoped
from engine.models.kv_cache import KVCache
from engine.weights.tensors import (
    GGUF,
    config_float,
    config_size,
    read_json,
    read_safetensors,
    require,
    shaped,
)


@dataclass(frozen=True)
class DecoderConfig:
    """Sizes of a Llama-family decoder; ``max_positions`` is its context length in tokens.

    ``tied`` models turn hidden states into logits with their token embeddings.
    """

    vocab_size: int
    d_model: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    d_head: int
    d_ff: int
    max_positions: int
    norm_eps: float
    rope_theta: float
    tied: bool


@dataclass(frozen=True)
class DecoderLayer:
    """Parameters of one layer; matrices that read the same input are stacked into one.

    ``query_key_value`` is ``((n_heads + 2 n_kv_heads) d_head, d_model)``, ``gate_up`` is
    ``(2 d_ff, d_model)``.
    """

    attention_norm: Array
    query_key_value: Array
    attention_output: Array
    ffn_norm: Array
    gate_up: Array
    ffn_output: Array


@dataclass(frozen=True)
class DecoderWeights:
    """Parameters of the whole decoder; ``unembedding`` is ``token_table`` itself where tied."""

    token_table: Array
    layers: tuple[DecoderLayer, ...]
    final_norm: Array
    unembedding: Array


def causal_self_attention(
    normed: Array,
    layer: DecoderLayer,
    config: DecoderConfig,
    rope: tuple[Array, Array],
    remember: Callable[[Array, Array], tuple[Array, Array]],
    trace: Tracer,
) -> Array:
    """Grouped-query attention over the cached and the new tokens: ``(n_new, d_model)`` to the same."""
    heads = split_heads(linear(normed, layer.query_key_value), config.n_heads + 2 * config.n_kv_heads)
    query, key, value = np.split(heads, [config.n_heads, config.n_heads + config.n_kv_heads])
    query, key = apply_rope(query, *rope), apply_rope(key, *rope)  # (n_heads or n_kv_heads, n_new, d_head)
    key, value = remember(key, value)  # (n_kv_heads, n_cached + n_new, d_head)
    query, key, value = trace("query", query), trace("key", key), trace("value", value)
    n_new = query.shape[1]
    mask = causal_mask(n_new, key.shape[1], query.dtype) if n_new > 1 else None
    context = attention(query, key, value, mask, trace)
    return trace("output", linear(merge_heads(context), layer.attention_output))


def swiglu(normed: Array, layer: DecoderLayer, trace: Tracer) -> Array:
    """``W_down (silu(W_gate x) * W_up x)`` (Shazeer 2020): ``(n_tokens, d_model)`` to the same."""
    gate, up = np.split(linear(normed, layer.gate_up), 2, axis=-1)  # (n_tokens, d_ff) each
    activation = trace("activation", silu(trace("gate", gate)) * trace("hidden", up))
    return trace("output", linear(activation, layer.ffn_output))


def decoder_forward(
    ids: Sequence[int],
    weights: DecoderWeights,
    config: DecoderConfig,
    cache: KVCache,
    trace: Tracer = no_trace,
) -> Array:
    """Final hidden states of ``ids``, which follow the tokens in ``cache``: ``(n_new, d_model)``.

    The cache takes in the new tokens.
    """
    hidden = trace("embeddings.output", weights.token_table[np.asarray(ids)])  # (n_new, d_model)
    positions = np.arange(cache.length, cache.length + len(ids))
    rope = rope_tables(positions, config.d_head, config.rope_theta, hidden.dtype)
    for number, layer in enumerate(weights.layers):
        layer_trace = scoped(trace, f"layers.{number}")

        def remember(key: Array, value: Array, number: int = number) -> tuple[Array, Array]:
            return cache.extend(number, key, value)

        normed = layer_trace("attention.norm", rms_norm(hidden, layer.attention_norm, config.norm_eps))
        attention_trace = scoped(layer_trace, "attention")
        hidden = hidden + causal_self_attention(normed, layer, config, rope, remember, attention_trace)
        normed = layer_trace("ffn.norm", rms_norm(hidden, layer.ffn_norm, config.norm_eps))
        hidden = layer_trace("output", hidden + swiglu(normed, layer, scoped(layer_trace, "ffn")))
    cache.length += len(ids)
    return trace("norm", rms_norm(hidden, weights.final_norm, config.norm_eps))


def trace_shapes(config: DecoderConfig, n_tokens: int) -> Shapes:
    """Shape of every array that a forward pass over ``n_tokens`` names."""
    vectors, inner = (n_tokens, config.d_model), (n_tokens, config.d_ff)
    heads = (config.n_heads, n_tokens, config.d_head)
    key_heads = (config.n_kv_heads, n_tokens, config.d_head)
    maps = (config.n_heads, n_tokens, n_tokens)
    shapes: Shapes = {"embeddings.output": vectors}
    for i in range(config.n_layers):
        attention_shapes: Shapes = {"norm": vectors, "query": heads, "key": key_heads, "value": key_heads}
        attention_shapes |= {"scores": maps, "weights": maps, "context": heads, "output": vectors}
        ffn_shapes: Shapes = {
            "norm": vectors,
            "gate": inner,
            "hidden": inner,
            "activation": inner,
            "output": vectors,
        }
        shapes |= {f"layers.{i}.attention.{name}": shape for name, shape in attention_shapes.items()}
        shapes |= {f"layers.{i}.ffn.{name}": shape for name, shape in ffn_shapes.items()}
        shapes |= {f"layers.{i}.ffn.output": vectors, f"layers.{i}.output": vectors}
    return shapes | {"norm": vectors}


def read_gguf_config(file: GGUF) -> DecoderConfig:
    """Read the sizes from a GGUF file's metadata."""
    architecture = file["general.architecture"]
    if architecture != "llama":
        raise ModelFileError(f"{file.path} is a {architecture!r} model: the decoder reads 'llama' models")
    scaling = file.get("llama.rope.scaling.type", "none")
    if scaling != "none" or "rope_freqs.weight" in file:
        raise ModelFileError(f"{file.path} scales its rotary positions ({scaling}), which is not read")
    n_heads, d_model = file["llama.attention.head_count"], file["llama.embedding_length"]
    return DecoderConfig(
        vocab_size=len(file["tokenizer.ggml.tokens"]),
        d_model=d_model,
        n_layers=file["llama.block_count"],
        n_heads=n_heads,
        n_kv_heads=file.get("llama.attention.head_count_kv", n_heads),
        d_head=file.get("llama.attention.key_length", d_model // n_heads),
        d_ff=file["llama.feed_forward_length"],
        max_positions=file["llama.context_length"],
        norm_eps=file["llama.attention.layer_norm_rms_epsilon"],
        rope_theta=file.get("llama.rope.freq_base", 10000.0),
        tied="output.weight" not in file,
    )


def read_folder_config(folder: Path) -> DecoderConfig:
    """Read the sizes from a Llama-family folder's config.json."""
    raw = read_json(folder / "config.json")
    if raw.get("model_type") != "llama":
        raise ModelFileError(
            f"{folder} is a {raw.get('model_type')!r} model: the decoder reads 'llama' models"
        )
    rope = raw.get("rope_parameters") or raw.get("rope_scaling") or {}
    kind = rope.get("rope_type", rope.get("type", "default")) if isinstance(rope, dict) else rope
    if kind != "default":
        raise ModelFileError(f"{folder} scales its rotary positions ({kind}), which is not read")
    if raw.get("attention_bias") or raw.get("mlp_bias"):
        raise ModelFileError(f"{folder} has biases in its linear layers, which are not read")
    if raw.get("hidden_act", "silu") != "silu":
        raise ModelFileError(f"{folder}: activation {raw['hidden_act']!r} is not silu")
    n_heads, d_model = config_size(raw, "num_attention_heads"), config_size(raw, "hidden_size")
    return DecoderConfig(
        vocab_size=config_size(raw, "vocab_size"),
        d_model=d_model,
        n_layers=config_size(raw, "num_hidden_layers"),
        n_heads=n_heads,
        n_kv_heads=config_size(raw, "num_key_value_heads", default=n_heads),
        d_head=config_size(raw, "head_dim", default=d_model // n_heads),
        d_ff=config_size(raw, "intermediate_size"),
        max_positions=config_size(raw, "max_position_embeddings"),
        norm_eps=config_float(raw, "rms_norm_eps"),
        rope_theta=config_float({**raw, **rope}, "rope_theta", default=10000.0),
        tied=raw.get("tie_word_embeddings", False),
    )


GGUF_NAMES = {
    "token_table": "token_embd",
    "final_norm": "output_norm",
    "unembedding": "output",
    "attention_norm": "blk.{}.attn_norm",
    "query": "blk.{}.attn_q",
    "key": "blk.{}.attn_k",
    "value": "blk.{}.attn_v",
    "attention_output": "blk.{}.attn_output",
    "ffn_norm": "blk.{}.ffn_norm",
    "gate": "blk.{}.ffn_gate",
    "up": "blk.{}.ffn_up",
    "ffn_output": "blk.{}.ffn_down",
}
FOLDER_NAMES = {
    "token_table": "model.embed_tokens",
    "final_norm": "model.norm",
    "unembedding": "lm_head",
    "attention_norm": "model.layers.{}.input_layernorm",
    "query": "model.layers.{}.self_attn.q_proj",
    "key": "model.layers.{}.self_attn.k_proj",
    "value": "model.layers.{}.self_attn.v_proj",
    "attention_output": "model.layers.{}.self_attn.o_proj",
    "ffn_norm": "model.layers.{}.post_attention_layernorm",
    "gate": "model.layers.{}.mlp.gate_proj",
    "up": "model.layers.{}.mlp.up_proj",
    "ffn_output": "model.layers.{}.mlp.down_proj",
}


def read_gguf_weights(file: GGUF, config: DecoderConfig) -> DecoderWeights:
    """Dequantise a GGUF file's tensors to float32, one at a time."""
    return assemble_weights(GGUF_NAMES, file.tensor, config, interleaved=True)


def read_folder_weights(folder: Path, config: DecoderConfig) -> DecoderWeights:
    """Read a Llama-family folder's model.safetensors as float32."""
    tensors = read_safetensors(folder / "model.safetensors")
    return assemble_weights(FOLDER_NAMES, partial(require, tensors), config, interleaved=False)


def assemble_weights(
    names: Mapping[str, str], read: Callable[[str], Array], config: DecoderConfig, interleaved: bool
) -> DecoderWeights:
    """Read every tensor by its name in the file, and stack those that read the same input.

    ``interleaved`` files hold the two halves of each head's rotary dimensions row by row in turn.
    """
    d_model, d_ff = config.d_model, config.d_ff
    d_query, d_key = config.n_heads * config.d_head, config.n_kv_heads * config.d_head

    def tensor(part: str, *shape: int, layer: int | None = None) -> Array:
        name = names[part].format(layer) + ".weight"
        return shaped(read(name), name, shape, np.dtype(np.float32))

    def read_layer(number: int) -> DecoderLayer:
        query = tensor("query", d_query, d_model, layer=number)
        key = tensor("key", d_key, d_model, layer=number)
        if interleaved:
            query, key = deinterleave(query, config.n_heads), deinterleave(key, config.n_kv_heads)
        value = tensor("value", d_key, d_model, layer=number)
        gate, up = (tensor(part, d_ff, d_model, layer=number) for part in ("gate", "up"))
        return DecoderLayer(
            attention_norm=tensor("attention_norm", d_model, layer=number),
            query_key_value=np.concatenate([query, key, value]),
            attention_output=tensor("attention_output", d_model, d_query, layer=number),
            ffn_norm=tensor("ffn_norm", d_model, layer=number),
            gate_up=np.concatenate([gate, up]),
            ffn_output=tensor("ffn_output", d_model, d_ff, layer=number),
        )

    token_table = tensor("token_table", config.vocab_size, d_model)
    return DecoderWeights(
        token_table=token_table,
        layers=tuple(read_layer(number) for number in range(config.n_layers)),
        final_norm=tensor("final_norm", d_model),
        unembedding=token_table if config.tied else tensor("unembedding", config.vocab_size, d_model),
    )


def deinterleave(rows: Array, n_heads: int) -> Array:
    """Undo what llama.cpp's converter does to query and key: ``(n_heads * d_head, d_model)`` to the same."""
    pairs = rows.reshape(n_heads, -1, 2, rows.shape[1])  # (n_heads, d_head / 2, 2, d_model)
    return pairs.swapaxes(1, 2).reshape(rows.shape)
