import gguf
import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from engine import Decoder
from engine.errors import ContextLengthError, InputError, ModelFileError
from engine.models.decoders import FAMILIES, forward_module
from engine.weights.catalog import DEFAULT_DECODER
from engine.weights.fetch import model_path
from tests.model_files import edit_config, edit_tensors
from tests.tokenizer_files import small_byte_level

CORPUS = ["the cat sat on the mat", "a feline rests on 12 rugs", "naïve café 東京 🙂"]
SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "eos_token_id": 0,
    "bos_token_id": 0,
}


@pytest.fixture(scope="module")
def tokenizer():
    return small_byte_level(CORPUS)


def save_model(folder, tokenizer, dtype=torch.float32, **sizes):
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=tokenizer.get_vocab_size(), **{**SIZES, **sizes})
    model = LlamaForCausalLM(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    model = model.to(dtype)
    model.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return model.float()


@pytest.mark.parametrize(
    "sizes",
    [
        {},
        {"tie_word_embeddings": True},
        {"num_key_value_heads": 1},
        {"num_key_value_heads": 4, "rope_theta": 500000.0},
        {"head_dim": 12},
        {"num_hidden_layers": 4, "rms_norm_eps": 1e-3},
        {"dtype": torch.bfloat16},
        {"dtype": torch.float16},
    ],
    ids=str,
)
def test_any_llama_folder_equals_transformers(tmp_path, tokenizer, official_greedy, sizes):
    model = save_model(tmp_path, tokenizer, **sizes)
    decoder = Decoder.load(tmp_path)
    ids = decoder.tokenizer.encode("the cat sat on 12 rugs, naïve 🙂").ids
    with torch.inference_mode():
        expected = model(torch.tensor([ids])).logits[0].numpy()
    np.testing.assert_allclose(decoder.logits(ids), expected, atol=1e-4)
    assert [step.token_id for step in decoder.generate(ids, max_new_tokens=20)] == official_greedy(
        model, ids, 20, [0]
    )


def test_rope_theta_matters(tmp_path, tokenizer):
    logits = []
    for theta in (100.0, 500000.0):
        folder = tmp_path / str(theta)
        folder.mkdir()
        save_model(folder, tokenizer, rope_parameters={"rope_theta": theta, "rope_type": "default"})
        decoder = Decoder.load(folder)
        assert decoder.config.rope.theta == theta
        logits.append(decoder.logits(range(1, 30)))
    assert np.abs(logits[0] - logits[1]).max() > 1e-3


def test_the_tokenizer_of_a_folder_equals_the_library(tmp_path, tokenizer):
    save_model(tmp_path, tokenizer)
    ours = Decoder.load(tmp_path).tokenizer
    for text in (*CORPUS, "unseen words, <end> and 한국어\n\n  tabs\t", ""):
        expected = tokenizer.encode(text)
        assert ours.encode(text).ids == expected.ids
        assert ours.encode(text).tokens == expected.tokens


KEY = "model.layers.1.self_attn.k_proj.weight"


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda f: edit_tensors(f, lambda t: t.pop(KEY)), f"no tensor '{KEY}'"),
        (lambda f: edit_tensors(f, lambda t: t.pop("lm_head.weight")), "no tensor 'lm_head.weight'"),
        (lambda f: edit_tensors(f, lambda t: t.update({KEY: t[KEY][:, :5].copy()})), r"shape \(16, 5\)"),
        (
            lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:9000]),
            "not a complete safetensors file",
        ),
        (
            lambda f: edit_config(f, model_type="gpt_neox"),
            "'gpt_neox' model.*: give one of .* llama, qwen2, .*, gpt2",
        ),
        (lambda f: edit_config(f, attention_bias=True), "no tensor 'model.layers.0.self_attn.q_proj.bias'"),
        (lambda f: edit_config(f, mlp_bias=True), "no tensor 'model.layers.0.mlp.gate_proj.bias'"),
        (lambda f: edit_config(f, rope_parameters={"rope_type": "llama3"}), "has factor None"),
        (lambda f: edit_config(f, hidden_act="gelu"), "not silu"),
        (lambda f: (f / "tokenizer.json").write_text('{"model": {"type": "Unigram"}}'), "byte-level BPE"),
    ],
)
def test_a_damaged_folder_is_refused_with_the_reason(tmp_path, tokenizer, damage, reason):
    save_model(tmp_path, tokenizer)
    damage(tmp_path)
    with pytest.raises(ModelFileError, match=reason):
        Decoder.load(tmp_path)


@pytest.mark.parametrize("keep", [0, 100, 1_000_000, -100])
def test_a_truncated_gguf_file_is_refused(tmp_path, keep):
    content = model_path(DEFAULT_DECODER).read_bytes()
    path = tmp_path / "cut.gguf"
    path.write_bytes(content[:keep])
    with pytest.raises(ModelFileError, match="not a complete GGUF file"):
        Decoder.load(path)


def test_a_file_that_is_no_gguf_is_refused(tmp_path):
    (tmp_path / "noise.gguf").write_bytes(bytes(range(256)) * 100)
    with pytest.raises(ModelFileError, match="not a complete GGUF file"):
        Decoder.load(tmp_path / "noise.gguf")


@pytest.mark.parametrize(
    ("architecture", "reason"),
    [
        (
            "gemma2",
            r"'gemma2' model, which is not read \(Gemma 2, with bounded attention scores\): "
            "give one of the architectures llama, qwen2, ",
        ),
        ("qwen2moe", r"'qwen2moe' model, which is not read \(Qwen2-MoE, where each token passes"),
        ("phimoe", r"'phimoe' model, which is not read \(Phi-3\.5-MoE, where"),
        ("llama4", r"'llama4' model, which is not read \(Llama 4, where"),
        ("gpt-oss", r"'gpt-oss' model, which is not read \(gpt-oss, where"),
        ("mamba", "'mamba' model, which is not read: give one of the architectures llama, qwen2, "),
        ("llama", "no metadata 'llama.block_count'"),
        ("qwen2", "no metadata 'qwen2.block_count'"),
        ("gpt2", "no metadata 'gpt2.block_count'"),
    ],
)
def test_a_gguf_of_another_model_is_refused(tmp_path, architecture, reason):
    path = tmp_path / "other.gguf"
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_tensor("x", np.zeros((2, 32), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(ModelFileError, match=reason):
        Decoder.load(path)


def test_a_new_family_is_one_entry(tmp_path, tokenizer, monkeypatch):
    official = save_model(tmp_path, tokenizer)
    edit_config(tmp_path, model_type="arcee")
    with pytest.raises(ModelFileError, match="'arcee' model, which is not read"):
        Decoder.load(tmp_path)
    monkeypatch.setitem(FAMILIES, "arcee", FAMILIES["llama"])
    ids = [5, 6, 7]
    with torch.no_grad():
        expected = official(torch.tensor([ids])).logits[0].numpy()
    np.testing.assert_allclose(Decoder.load(tmp_path).logits(ids), expected, atol=1e-4)


def test_sizes_of_an_unknown_family_are_an_error():
    with pytest.raises(InputError, match=r"no decoder family: give sizes of llama, qwen2, .*, gpt2"):
        forward_module(object())


def test_an_answer_ends_where_the_context_does(tmp_path, tokenizer):
    save_model(tmp_path, tokenizer, eos_token_id=None)
    decoder = Decoder.load(tmp_path)
    steps = list(decoder.generate([5] * 60, max_new_tokens=20))
    assert [step.finish_reason for step in steps] == [None] * 3 + ["length"]
    with pytest.raises(ContextLengthError, match=r"65 tokens exceed the 64 positions .* by 1"):
        decoder.generate([5] * 64)


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_folder_that_lacks_a_file_names_it(tmp_path, tokenizer, missing):
    save_model(tmp_path, tokenizer)
    (tmp_path / missing).unlink()
    with pytest.raises(ModelFileError, match=f"has no {missing}"):
        Decoder.load(tmp_path)


def test_a_tokenizer_larger_than_the_model_is_refused(tmp_path, tokenizer):
    save_model(tmp_path, tokenizer)
    edit_config(tmp_path, vocab_size=200)
    with pytest.raises(ModelFileError, match="not of one model"):
        Decoder.load(tmp_path)


@pytest.mark.parametrize(
    ("rope", "official"),
    [
        ({"type": "linear", "factor": 2.0}, {"rope_type": "linear", "factor": 2.0}),
        (None, {"rope_type": "default"}),
    ],
    ids=str,
)
def test_positions_in_the_older_spelling_are_read(tmp_path, tokenizer, rope, official):
    model = save_model(tmp_path, tokenizer, rope_parameters={"rope_theta": 500.0, **official})
    edit_config(tmp_path, rope_parameters=None, rope_scaling=rope, rope_theta=500.0)
    ids = list(range(1, 30))
    with torch.inference_mode():
        expected = model(torch.tensor([ids])).logits[0].numpy()
    np.testing.assert_allclose(Decoder.load(tmp_path).logits(ids), expected, atol=1e-4)


def test_scaled_positions_in_the_older_spelling_are_refused(tmp_path, tokenizer):
    save_model(tmp_path, tokenizer)
    edit_config(tmp_path, rope_parameters=None, rope_scaling={"type": "dynamic", "factor": 2.0})
    with pytest.raises(ModelFileError, match=r"\(dynamic\), which is not read: linear and llama3 are"):
        Decoder.load(tmp_path)
