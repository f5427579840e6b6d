import json
import math

import gguf
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from engine import Decoder
from engine.errors import ContextLengthError, InputError, MemoryLimitError, ModelFileError
from engine.generation.prefix_cache import PrefixCache
from engine.models.decoders import CACHE_TOKENS, final_norm, forward_module, memory_bytes
from engine.models.llama import parameter_count as llama_parameters
from engine.official_program import decoder_trace, load_decoder
from engine.verify import verify_model
from engine.weights.gguf_file import GGUF
from engine.weights.quantized import QUANTIZED
from engine.weights.stored import StoredTensor
from tests.decoder_folders import ENDS, random_decoder
from tests.engine.weights.random_blocks import random_blocks
from tests.model_files import config_with, edit_config, edit_tensors, finish_gguf, without
from tests.pytorch import torch, transformers
from tests.tokenizer_files import save_as_filed, small_byte_level

TEXT = "the cat sat on 12 rugs, naïve 🙂"
LLAMA_SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
}
GPT2_SIZES = {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 64}
# The context of the first training is short, so that all three ranges of the scaling are met.
LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 100.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
LOCAL_FIRST = {
    "use_sliding_window": True,
    "sliding_window": 2,
    "layer_types": ["sliding_attention", "full_attention"],
}
# Of the prompt and 20 more tokens, the first 35 are as few as those of the first training.
LONG_ROPE = {
    "rope_parameters": {
        "rope_type": "longrope",
        "rope_theta": 100.0,
        "partial_rotary_factor": 0.75,
        "short_factor": [1.0, 1.1, 1.5],
        "long_factor": [2.0, 5.0, 9.0],
    },
    "max_position_embeddings": 128,
    "original_max_position_embeddings": 64,
}
SIX_LAYERS = {"num_hidden_layers": 6, "sliding_window": 4}
GEMMA3 = {"head_dim": 8, "query_pre_attn_scalar": 8, **SIX_LAYERS}
CAPPED = {"final_logit_softcapping": 2.0, "num_key_value_heads": 1, "tie_word_embeddings": False}
LINEAR_ROPE = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.5}


@pytest.fixture(scope="module")
def tokenizer():
    return small_byte_level()


def random_model(tokenizer, kind, **sizes):
    defaults = GPT2_SIZES if kind == "gpt2" else LLAMA_SIZES
    settings = {"vocab_size": tokenizer.get_vocab_size(), **defaults, **ENDS, **sizes}
    return random_decoder(transformers.AutoConfig.for_model(kind, **settings))


def save_folder(folder, tokenizer, kind, **sizes):
    model = random_model(tokenizer, kind, **sizes)
    model.save_pretrained(folder)
    save_as_filed(tokenizer, folder)
    return model


def interleaved(rows, n_heads):
    """What llama.cpp's converter does to query and key of Llama models (LlamaModel.permute)."""
    return rows.reshape(n_heads, 2, -1, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


INTERLEAVED = ("llama", "mistral", "smollm3")


def gguf_architecture(kind):
    """How llama.cpp's converter calls models of a kind."""
    return {"mistral": "llama", "gemma3_text": "gemma3"}.get(kind, kind)


def gguf_tensors(model):
    """Names, as the gguf package maps them, and arrays, as llama.cpp's converter writes them."""
    config, kind = model.config, model.config.model_type
    architecture = {name: key for key, name in gguf.MODEL_ARCH_NAMES.items()}[gguf_architecture(kind)]
    names = gguf.get_tensor_name_map(architecture, config.num_hidden_layers)
    for name, parameter in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        array = parameter.numpy()
        if kind == "gpt2" and name.endswith((".c_attn.weight", ".c_proj.weight", ".c_fc.weight")):
            array = array.T
        if kind in INTERLEAVED and ".q_proj." in name:
            array = interleaved(array, config.num_attention_heads)
        if kind in INTERLEAVED and ".k_proj." in name:
            array = interleaved(array, config.num_key_value_heads)
        if kind == "gemma3_text" and name.endswith("norm.weight"):
            array = array + 1
        yield names.get_name(name, try_suffixes=(".weight", ".bias")), np.ascontiguousarray(array)
    if kind == "phi3" and config.rope_parameters["rope_type"] == "longrope":
        for text in ("short", "long"):
            yield f"rope_factors_{text}.weight", np.float32(config.rope_parameters[f"{text}_factor"])


def write_gguf(path, model, tokenizer, change=lambda tensors: None, metadata=None):
    config, kind = model.config, gguf_architecture(model.config.model_type)
    writer = gguf.GGUFWriter(path, kind)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_head_count(config.num_attention_heads)
    if kind == "gpt2":
        writer.add_feed_forward_length(config.n_inner or 4 * config.hidden_size)
        writer.add_layer_norm_eps(config.layer_norm_epsilon)
    else:
        writer.add_feed_forward_length(config.intermediate_size)
        writer.add_head_count_kv(config.num_key_value_heads)
        writer.add_layer_norm_rms_eps(config.rms_norm_eps)
        rope = config.rope_parameters.get("full_attention", config.rope_parameters)
        writer.add_rope_freq_base(rope["rope_theta"])
        if getattr(config, "head_dim", None):
            writer.add_key_length(config.head_dim)
            writer.add_value_length(config.head_dim)
        if kind == "phi3":
            d_head = config.hidden_size // config.num_attention_heads
            writer.add_rope_dimension_count(int(d_head * rope["partial_rotary_factor"]))
            writer.add_rope_scaling_orig_ctx_len(config.original_max_position_embeddings)
            if rope["rope_type"] == "longrope":
                longer = config.max_position_embeddings / config.original_max_position_embeddings
                factor = math.log(longer) / math.log(config.original_max_position_embeddings)
                writer.add_rope_scaling_attn_factors(math.sqrt(1 + factor))
        if getattr(config, "final_logit_softcapping", None):
            writer.add_final_logit_softcapping(config.final_logit_softcapping)
        if kind == "phi3" or getattr(config, "sliding_window", None):
            writer.add_sliding_window(config.sliding_window or 0)
    for key, value in (metadata or {}).items():
        writer.add_key_value(f"{kind}.{key}", value, gguf.GGUFValueType.get_type(value))

    vocabulary = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(vocabulary["vocab"], key=vocabulary["vocab"].get)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token == "<end>" else 1 for token in tokens])
    writer.add_token_merges([" ".join(pair) for pair in vocabulary["merges"]])
    writer.add_eos_token_id(0)

    tensors = dict(gguf_tensors(model))
    change(tensors)
    finish_gguf(writer, tensors)


def official_logits(model, ids):
    with torch.inference_mode():
        return model(torch.tensor([ids])).logits[0].numpy()


def assert_equal_to(model, decoder, official_greedy):
    ids = decoder.tokenizer.encode(TEXT).ids
    trace = decoder.trace(ids)
    np.testing.assert_allclose(decoder.logits(ids), official_logits(model, ids), atol=1e-4)
    last = trace[f"layers.{decoder.config.n_layers - 1}.output"]
    np.testing.assert_array_equal(final_norm(last, decoder.weights, decoder.config), trace["norm"])
    assert {name: array.shape for name, array in trace.items() if name not in ("tokens", "ids")} == (
        decoder.trace_shapes(len(ids))
    )
    tokens = [step.token_id for step in decoder.generate(ids, max_new_tokens=20)]
    assert tokens == official_greedy(model, ids, 20, [0])


# Each feature once: shared keys, biases, tied tables, norms of heads, windows, rotated parts of heads, …
FAMILIES = [
    ("llama", {}),
    ("llama", {"attention_bias": True, "mlp_bias": True, "num_key_value_heads": 4}),
    ("qwen2", {"tie_word_embeddings": True, "num_key_value_heads": 1}),
    ("qwen3", {"head_dim": 14, "hidden_size": 36, "num_attention_heads": 6, "intermediate_size": 50}),
    ("mistral", {"sliding_window": 4, "head_dim": 12}),
    ("smollm3", {"num_hidden_layers": 5, "attention_bias": True}),
    ("phi3", {"sliding_window": 6, "rope_parameters": {"partial_rotary_factor": 0.5}}),
    ("phi3", LONG_ROPE),
    ("gemma3_text", GEMMA3),
    ("gemma3_text", {"head_dim": 12, "query_pre_attn_scalar": 12, **SIX_LAYERS, **CAPPED}),
    ("gpt2", {}),
    ("gpt2", {"n_inner": 40, "n_head": 2, "layer_norm_epsilon": 1e-2, "tie_word_embeddings": False}),
]


@pytest.mark.parametrize(("kind", "sizes"), FAMILIES, ids=str)
def test_a_folder_and_a_gguf_file_equal_transformers(tmp_path, tokenizer, official_greedy, kind, sizes):
    model = save_folder(tmp_path, tokenizer, kind, **sizes)
    decoder = Decoder.load(tmp_path)
    assert_equal_to(model, decoder, official_greedy)
    write_gguf(tmp_path / "model.gguf", model, tokenizer)
    assert_equal_to(model, Decoder.load(tmp_path / "model.gguf"), official_greedy)

    config = decoder.config
    assert forward_module(config).parameter_count(config) == model.num_parameters()
    n_keys = config.n_layers * config.n_kv_heads * config.d_head * 64  # all 64 positions
    assert memory_bytes(config, None) > 4 * (model.num_parameters() + 2 * n_keys)

    official = load_decoder.__wrapped__(str(tmp_path), None)
    texts = [TEXT, "a"]  # of one token nothing is masked, so that scores are compared
    checks = verify_model(decoder, texts, lambda text: decoder_trace(*official, text, config.n_kv_heads))
    assert [check for check in checks if not check.passed] == []
    missing = {*decoder.trace_shapes(1)} - {check.stage for check in checks}
    assert missing <= {"embeddings.token", "embeddings.position"}

    kept, ids = PrefixCache(), decoder.tokenizer.encode(TEXT).ids
    at_once = [step.token_id for step in decoder.generate(ids, max_new_tokens=20, kv_cache=False)]
    list(decoder.generate([*ids[:-4], 1, 2], max_new_tokens=3, reuse=kept))
    assert [step.token_id for step in decoder.generate(ids, max_new_tokens=20, reuse=kept)] == at_once
    assert kept.reused_tokens == len(ids) - 4


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        ("gpt2", {"activation_function": "relu", "reorder_and_upcast_attn": True}),
        ("qwen2", {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1}),
        ("qwen3", {"head_dim": 8, **LOCAL_FIRST}),
        ("smollm3", {"no_rope_layers": [0, 1]}),
        ("smollm3", {"no_rope_layer_interval": 2, "use_sliding_window": True, "sliding_window": 4}),
        ("qwen2", {"use_sliding_window": False, "sliding_window": 4, "max_window_layers": 0}),
        ("gemma3_text", {"head_dim": 8, "query_pre_attn_scalar": 21, **LOCAL_FIRST}),
        ("gemma3_text", {"head_dim": 8, "rope_parameters": {"full_attention": LINEAR_ROPE}}),
        ("llama", {"rope_parameters": LINEAR_ROPE}),
        ("llama", {"rope_parameters": LLAMA3_ROPE}),
        ("qwen2", {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0}}),
        ("qwen2", {"hidden_act": "relu", "rope_parameters": LINEAR_ROPE | {"rope_type": "dynamic"}}),
        ("gemma3_text", {"head_dim": 8, "attention_bias": True, "attn_logit_softcapping": 5.0}),
    ],
    ids=str,
)
def test_what_a_config_may_ask_for_is_read(tmp_path, tokenizer, official_greedy, kind, sizes):
    model = save_folder(tmp_path, tokenizer, kind, **sizes)
    assert_equal_to(model, Decoder.load(tmp_path), official_greedy)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_numbers_of_16_bits_are_read(tmp_path, tokenizer, dtype):
    model = save_folder(tmp_path, tokenizer, "llama").to(getattr(torch, dtype))
    model.save_pretrained(tmp_path)
    expected = official_logits(model.float(), [1, 2, 3])
    np.testing.assert_allclose(Decoder.load(tmp_path).logits([1, 2, 3]), expected, atol=1e-4)


@pytest.mark.parametrize(
    ("rope", "official"),
    [
        ({"type": "linear", "factor": 2.0}, {"rope_type": "linear", "factor": 2.0}),
        (None, {"rope_type": "default"}),
    ],
    ids=str,
)
def test_positions_in_the_older_spelling_are_read(tmp_path, tokenizer, rope, official):
    model = save_folder(tmp_path, tokenizer, "llama", rope_parameters={"rope_theta": 500.0, **official})
    edit_config(tmp_path, rope_parameters=None, rope_scaling=rope, rope_theta=500.0)
    ids = list(range(1, 30))
    np.testing.assert_allclose(Decoder.load(tmp_path).logits(ids), official_logits(model, ids), atol=1e-4)


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        ("llama", {"rope_parameters": LINEAR_ROPE}),
        ("gemma3_text", GEMMA3 | {"rope_parameters": {"full_attention": LINEAR_ROPE}}),
    ],
)
def test_a_gguf_file_scales_its_positions_by_a_factor(tmp_path, tokenizer, official_greedy, kind, sizes):
    model = random_model(tokenizer, kind, **sizes)
    metadata = {"rope.scaling.type": "linear", "rope.scaling.factor": 2.5}
    write_gguf(tmp_path / "model.gguf", model, tokenizer, metadata=metadata)
    assert_equal_to(model, Decoder.load(tmp_path / "model.gguf"), official_greedy)


def test_a_gguf_file_scales_its_positions_by_a_tensor(tmp_path, tokenizer, official_greedy):
    model = random_model(tokenizer, "llama", rope_parameters=LLAMA3_ROPE)
    frequencies = 100.0 ** (-np.arange(0, 8, 2, dtype=np.float32) / 8)  # heads of 8 dimensions
    factors = frequencies / model.model.rotary_emb.inv_freq.numpy()
    assert len(set(factors.round(3))) == 3  # unslowed, in part, and by 8
    write_gguf(
        tmp_path / "model.gguf",
        model,
        tokenizer,
        lambda tensors: tensors.update({"rope_freqs.weight": factors}),
    )
    assert_equal_to(model, Decoder.load(tmp_path / "model.gguf"), official_greedy)


def test_gpt2_without_the_first_part_of_its_names_is_read(tmp_path, tokenizer):
    model = save_folder(tmp_path, tokenizer, "gpt2")
    path = tmp_path / "model.safetensors"
    tensors = {name.removeprefix("transformer."): array for name, array in load_file(path).items()}
    tensors["h.0.attn.bias"] = np.tril(np.ones((1, 1, 64, 64), np.float32))  # GPT-2's file holds its mask
    save_file(tensors, path)
    logits = Decoder.load(tmp_path).logits([1, 2, 3])
    np.testing.assert_allclose(logits, official_logits(model, [1, 2, 3]), atol=1e-4)


def test_a_folder_in_several_files_equals_one_in_a_single_file(tmp_path, tokenizer):
    model = save_folder(tmp_path, tokenizer, "qwen2")
    whole = Decoder.load(tmp_path).logits([1, 2, 3])
    (tmp_path / "model.safetensors").unlink()
    model.save_pretrained(tmp_path, max_shard_size="20KB")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 1
    np.testing.assert_array_equal(Decoder.load(tmp_path).logits([1, 2, 3]), whole)


@pytest.mark.parametrize(
    ("index", "reason"),
    [
        ({"weight_map": {"model.norm.weight": "../model.safetensors"}}, "does not list the files next to it"),
        ({"weight_map": {"model.norm.weight": "a" * 2**20}}, "does not list the files next to it"),
        ({"weight_map": {"model.norm.weight": 3}}, "does not list the files next to it"),
        ({}, "does not list the files next to it"),
        ({"weight_map": {"model.norm.weight": "model-2.safetensors"}}, "has no model-2.safetensors"),
    ],
)
def test_a_wrong_list_of_files_is_refused(tmp_path, tokenizer, index, reason):
    save_folder(tmp_path, tokenizer, "qwen2")
    (tmp_path / "model.safetensors").rename(tmp_path.parent / "model.safetensors")
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ModelFileError, match=reason):
        Decoder.load(tmp_path)


def test_the_default_model_has_as_many_parameters_as_its_name_says(decoder):
    assert llama_parameters(decoder.config) == 134_515_008  # of the model card: 135M
    assert memory_bytes(decoder.config, None) > 4 * 134_515_008 + 30 * 3 * 64 * CACHE_TOKENS * 2 * 4


WHOLE_BLOCKS = {"hidden_size": 256, "intermediate_size": 512, "tie_word_embeddings": True}


def quantized_as(kinds, default):
    """Return a change of a file's matrices: random blocks, of the type of the first name that fits."""
    rng = np.random.default_rng(0)

    def change(tensors):
        for name, array in tensors.items():
            if array.ndim == 2:
                kind = next((kind for part, kind in kinds.items() if part in name), default)
                n_rows, n_blocks = len(array), array.shape[1] // QUANTIZED[kind].n_columns
                tensors[name] = StoredTensor(kind, random_blocks(rng, kind, n_rows, n_blocks, scale=3e-4))

    return change


@pytest.mark.parametrize(
    ("kinds", "default"),
    [({"attn_v": "Q6_K", "ffn_down": "Q6_K", "token_embd": "Q6_K"}, "Q4_K"), ({"attn_v": "Q5_K"}, "Q3_K")],
    ids=["as Q4_K_M", "as Q3_K_M"],
)
def test_a_gguf_file_of_several_types_is_held_as_it_is(tmp_path, tokenizer, kinds, default):
    path = tmp_path / "model.gguf"
    model = random_model(tokenizer, "llama", **WHOLE_BLOCKS)
    write_gguf(path, model, tokenizer, quantized_as(kinds, default))
    compiled, readable = Decoder.load(path), Decoder.load(path, compiled=False)
    layer = compiled.weights.layers[-1]
    assert [part.kind for part in layer.query_key_value.weight.parts] == [default, kinds["attn_v"]]
    assert layer.gate_up.weight.kind == default
    assert layer.ffn_output.weight.kind == kinds.get("ffn_down", default)
    ids = compiled.tokenizer.encode(TEXT).ids
    for n_tokens in (3, len(ids)):  # in fixed point where the processor can, and unpacked
        expected = readable.logits(ids[:n_tokens])
        largest = np.abs(expected).max()
        np.testing.assert_allclose(compiled.logits(ids[:n_tokens]), expected, atol=2e-3 * largest)


def test_a_gguf_file_of_a_type_that_is_not_held_is_refused_unread(tmp_path, tokenizer, monkeypatch):
    path, blocks = tmp_path / "model.gguf", np.zeros((256, 66), np.uint8)
    unheld = {"blk.0.attn_q.weight": StoredTensor("IQ2_XXS", blocks)}
    model = random_model(tokenizer, "llama", **WHOLE_BLOCKS)
    write_gguf(path, model, tokenizer, lambda tensors: tensors.update(unheld))
    monkeypatch.setattr(GGUF, "tensor", None)
    with pytest.raises(ModelFileError, match=r"type IQ2_XXS, which cannot be used.*use a file in Q4_0, "):
        Decoder.load(path)


def test_what_does_not_fit_is_said_before_the_weights_are_read(tmp_path, tokenizer, monkeypatch):
    monkeypatch.setattr("engine.weights.memory.available_memory", lambda: 10**9)
    save_folder(tmp_path, tokenizer, "qwen2")
    edit_config(tmp_path, vocab_size=2**24)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(MemoryLimitError, match=r"needs [\d.]+ GB of memory and [\d.]+ GB are free"):
        Decoder.load(tmp_path)


def test_what_does_not_fit_is_said_before_a_gguf_file_is_dequantised(tmp_path, tokenizer):
    model = random_model(tokenizer, "llama")
    metadata = {"feed_forward_length": 2**24, "block_count": 2**20}
    write_gguf(tmp_path / "model.gguf", model, tokenizer, dict.clear, metadata)
    with pytest.raises(MemoryLimitError, match="choose a smaller model"):
        Decoder.load(tmp_path / "model.gguf")


def cut_file(path):
    path.write_bytes(path.read_bytes()[:-1000])


Q_BIAS = "model.layers.1.self_attn.q_proj.bias"
C_ATTN = "transformer.h.2.attn.c_attn.weight"
CHUNKED = {"use_sliding_window": True, "sliding_window": 4, "layer_types": ["chunked_attention"] * 2}


@pytest.mark.parametrize(
    ("kind", "damage", "reason"),
    [
        ("qwen2", without(Q_BIAS), f"no tensor '{Q_BIAS}'"),
        ("qwen2", config_with(num_attention_heads=8), r"shape \(16, 32\)"),
        ("qwen2", config_with(head_dim=5), "5 dimensions cannot be rotated in pairs"),
        ("qwen2", config_with(num_key_value_heads=3), "4 query heads cannot share 3 key"),
        ("qwen2", config_with(use_sliding_window=True, sliding_window=0), "0, not a size"),
        ("qwen2", config_with(**CHUNKED), "not 2 of full_attention and sliding_attention"),
        ("qwen2", config_with(hidden_act="mish"), "'mish' is not one of gelu"),
        ("qwen2", config_with(rope_parameters={"rope_type": "proportional"}), "proportional.*linear, "),
        ("qwen2", config_with(rope_parameters={"rope_type": "linear"}), "factor None"),
        ("qwen2", config_with(vocab_size=200), "not of one model"),
        ("qwen2", lambda f: cut_file(f / "model.safetensors"), "not a complete safetensors file"),
        ("qwen2", lambda f: (f / "config.json").unlink(), "has no config.json"),
        ("qwen2", lambda f: (f / "tokenizer.json").unlink(), "has no tokenizer.json"),
        (
            "llama",
            lambda f: (f / "tokenizer.json").write_text('{"model": {"type": "Unigram", "vocab": []}}'),
            "byte-level BPE",
        ),
        ("llama", config_with(attention_bias=True), "no tensor 'model.layers.0.self_attn.q_proj.bias'"),
        ("llama", without("lm_head.weight"), "no tensor 'lm_head.we"),
        ("phi3", config_with(rope_parameters={"rope_type": "su", "short_factor": [1.0]}), "not 4 numbers"),
        ("smollm3", config_with(no_rope_layers=[1]), "not 2 of 0 and 1"),
        ("mistral", config_with(sliding_window=[4]), "sliding_window .4., not a size"),
        (
            "gpt2",
            lambda f: edit_tensors(f, lambda t: t.update({C_ATTN: t[C_ATTN].T.copy()})),
            r"shape \(96, 32\), but the model's sizes ask for \(32, 96\)",
        ),
        ("gpt2", config_with(n_head=5), "5 heads cannot share 32 dimensions"),
        ("gpt2", config_with(scale_attn_by_inverse_layer_idx=True), "idx True, which is not read"),
        ("gpt2", config_with(model_type=["gpt2"]), "which is not read: give one of .* llama, qwen2, "),
        ("gpt2", config_with(model_type="gpt_oss"), r"which is not read \(gpt-oss, where each"),
        ("gemma3_text", config_with(model_type="gemma3"), "a model of images and texts"),
    ],
)
def test_a_damaged_or_unread_folder_is_refused_with_the_reason(tmp_path, tokenizer, kind, damage, reason):
    save_folder(tmp_path, tokenizer, kind)
    damage(tmp_path)
    with pytest.raises(ModelFileError, match=reason):
        Decoder.load(tmp_path)


def without(*names):
    return lambda tensors: [tensors.pop(name) for name in names]


@pytest.mark.parametrize(
    ("kind", "change", "metadata", "reason"),
    [
        ("qwen2", without("blk.1.attn_k.bias"), {}, "no tensor 'blk.1.attn_k.bias'"),
        (
            "qwen2",
            without(*(f"blk.{i}.attn_{part}.bias" for i in (0, 1) for part in "qkv")),
            {},
            "no tensor 'blk.0.attn_q.bias'",
        ),
        ("llama", lambda t: t.update({"rope_freqs.weight": np.ones(3, np.float32)}), {}, r"shape \(3,\)"),
        ("llama", without(), {"attention.head_count_kv": 3}, "4 query heads cannot share 3 key"),
        ("llama", without(), {"expert_count": 8}, "mixture of 8 experts, which is not read"),
        ("llama", without(), {"rope.dimension_count": 4}, "rotates 4 of the 8 dimensions"),
        ("llama", without(), {"rope.scaling.type": "yarn"}, "yarn.* linear and llama3 are"),
        ("llama", without(), {"rope.scaling.type": "linear"}, "no metadata 'llama.rope.scaling.factor'"),
        ("llama", without(), {"attention.head_count": 0}, "attention.head_count 0, not a size"),
        ("gpt2", without("blk.2.ffn_norm.bias"), {}, "no tensor 'blk.2.ffn_norm.bias'"),
        ("gpt2", without(), {"context_length": 65}, r"'position_embd.weight' has shape \(64, 32\)"),
        ("gpt2", without(), {"attention.head_count": 3}, "3 heads cannot share 32 dimensions"),
    ],
)
def test_a_damaged_gguf_file_is_refused_with_the_reason(tmp_path, tokenizer, kind, change, metadata, reason):
    path, model = tmp_path / "model.gguf", random_model(tokenizer, kind)
    write_gguf(path, model, tokenizer, change, metadata)
    with pytest.raises(ModelFileError, match=reason):
        Decoder.load(path)


@pytest.mark.parametrize(
    ("architecture", "reason"),
    [
        ("gemma2", r"which is not read \(Gemma 2, with bounded attention scores\): give one of"),
        ("mamba", "'mamba' model, which is not read: give one of the architectures llama, qwen2, "),
        ("llama", "no metadata 'llama.block_count'"),
    ],
)
def test_a_gguf_of_another_model_is_refused(tmp_path, architecture, reason):
    path = tmp_path / "other.gguf"
    finish_gguf(gguf.GGUFWriter(path, architecture), {"x": np.zeros((2, 32), np.float32)})
    with pytest.raises(ModelFileError, match=reason):
        Decoder.load(path)


def test_sizes_of_an_unknown_family_are_an_error():
    with pytest.raises(InputError, match=r"no decoder family: give sizes of llama, qwen2, .*, gpt2"):
        forward_module(object())


def test_an_answer_ends_where_the_context_does(tmp_path, tokenizer):
    save_folder(tmp_path, tokenizer, "llama", eos_token_id=None)
    decoder = Decoder.load(tmp_path)
    steps = list(decoder.generate([5] * 60, max_new_tokens=20))
    assert [step.finish_reason for step in steps] == [None] * 3 + ["length"]
    with pytest.raises(ContextLengthError, match=r"65 tokens exceed the 64 positions .* by 1"):
        decoder.generate([5] * 64)
