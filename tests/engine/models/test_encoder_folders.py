"""Folders of BERT models, whole and damaged."""

import numpy as np
import pytest

from engine import Encoder
from engine.errors import InputError, ModelFileError
from tests.model_files import config_with, edit_config, edit_json, edit_tensors, without
from tests.pytorch import torch, transformers
from tests.sentence_transformer_folders import SIZES, TEXTS, WORDPIECES, random_model, save_bert


def save_model(folder, model_class="BertModel", **sizes):
    save_bert(folder, None, **sizes)
    config = transformers.BertConfig(vocab_size=len(WORDPIECES), **{**SIZES, **sizes})
    model = random_model(getattr(transformers, model_class), config)
    model.save_pretrained(folder)
    return model


@pytest.mark.parametrize(
    "sizes",
    [
        {"hidden_act": "relu", "layer_norm_eps": 1e-5},
        {"hidden_act": "gelu_new", "num_attention_heads": 1, "hidden_size": 16},
        {"num_hidden_layers": 5, "num_attention_heads": 8, "hidden_size": 64, "intermediate_size": 32},
        {"layer_norm_eps": 0.1, "type_vocab_size": 4},
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_bert_folder_equals_transformers(tmp_path, sizes, dtype):
    model = save_model(tmp_path, **sizes).to(torch.float32 if dtype == np.float32 else torch.float64)
    encoder = Encoder.load(tmp_path, dtype=dtype)
    last = f"layers.{encoder.config.n_layers - 1}.output"
    for text in TEXTS:
        trace = encoder.trace(text)
        with torch.inference_mode():
            output = model(torch.tensor(trace["ids"])[None])
        tolerance = 2e-5 if dtype == np.float32 else 1e-10
        np.testing.assert_allclose(trace[last], output.last_hidden_state[0].numpy(), atol=tolerance)
        np.testing.assert_allclose(trace["pooled.pooler"], output.pooler_output[0].numpy(), atol=tolerance)
        np.testing.assert_allclose(encoder.encode([text])[0], trace[last].mean(axis=0), atol=tolerance)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_checkpoint_with_prefix_and_without_pooler_is_read_from_numbers_of_any_width(tmp_path, dtype):
    model = save_model(tmp_path, "BertForMaskedLM").to(getattr(torch, dtype))
    model.save_pretrained(tmp_path)
    encoder = Encoder.load(tmp_path)
    assert encoder.max_tokens == SIZES["max_position_embeddings"]  # where nothing else says
    trace = encoder.trace("abc def")
    with torch.inference_mode():
        expected = model.float().bert(torch.tensor(trace["ids"])[None]).last_hidden_state[0].numpy()
    np.testing.assert_allclose(trace["layers.1.output"], expected, atol=2e-5)
    assert "pooled.pooler" not in trace
    with pytest.raises(InputError, match="no pooler weights"):
        encoder.encode(["abc"], pooling="pooler")


def cut(path, n_bytes):
    path.write_bytes(path.read_bytes()[:n_bytes])


KEY = "encoder.layer.1.attention.self.key.weight"
TABLE = "embeddings.word_embeddings.weight"


def shrink_vocabulary(folder):
    edit_config(folder, vocab_size=5)
    edit_tensors(folder, lambda tensors: tensors.update({TABLE: tensors[TABLE][:5].copy()}))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (without(KEY), f"no tensor '{KEY}'"),
        (lambda f: edit_tensors(f, lambda t: t.update({KEY: t[KEY][:, :5].copy()})), r"shape \(24, 5\)"),
        (shrink_vocabulary, "tokenizer has 24 tokens"),
        (lambda f: cut(f / "model.safetensors", 5000), "not a complete safetensors file"),
        (lambda f: cut(f / "model.safetensors", 0), "not a complete safetensors file"),
        (lambda f: (f / "model.safetensors").unlink(), "no model.safetensors"),
        (lambda f: (f / "config.json").unlink(), "no config.json"),
        (lambda f: (f / "config.json").write_text("{"), "not readable JSON"),
        (lambda f: (f / "config.json").write_text("[]"), "no JSON object"),
        (lambda f: (f / "tokenizer.json").unlink(), "no tokenizer.json"),
        (lambda f: (f / "tokenizer.json").write_text("{}"), "not a readable tokenizer"),
        (lambda f: (f / "sentence_bert_config.json").write_text('{"max_seq_length": "10"}'), "max_seq_leng"),
        (config_with(model_type="electra"), "'electra' model"),
        (config_with(architectures=["BertForSequenceClassification"]), "a classifier or cross"),
        (config_with(hidden_act=["gelu"]), "activation"),
        (config_with(num_attention_heads=7), "does not divide"),
        (config_with(num_hidden_layers=-1), "layers"),
        (config_with(hidden_size="24"), "hidden_size"),
        (config_with(layer_norm_eps=None), "layer_norm_eps"),
        (config_with(position_embedding_type="relative_key"), "relative_key"),
    ],
)
def test_a_damaged_folder_is_refused_with_the_reason(tmp_path, damage, reason):
    save_model(tmp_path)
    damage(tmp_path)
    with pytest.raises(ModelFileError, match=reason):
        Encoder.load(tmp_path)


def test_an_empty_text_is_refused_where_a_model_adds_no_special_tokens(tmp_path):
    save_model(tmp_path)
    nothing = dict.fromkeys(("add_prefix_space", "trim_offsets", "use_regex"), False) | {"type": "ByteLevel"}
    edit_json(tmp_path / "tokenizer.json", post_processor=nothing)
    encoder = Encoder.load(tmp_path)
    assert encoder.encode(["a"]).shape == (1, 24)
    with pytest.raises(InputError, match=r"a text has no tokens, and .* adds none"):
        encoder.encode(["a", ""])
