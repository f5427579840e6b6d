import json

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForMaskedLM, BertModel

from engine import Encoder
from engine.errors import InputError, ModelFileError

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefghij", *(f"##{c}" for c in "abcdefghij")]
TEXTS = ["a", "abc def", "j i h g f e d c b a " * 3, "unknown?", ""]
SIZES = {
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "max_position_embeddings": 20,
}


def save_tokenizer(folder):
    tokenizer = Tokenizer(
        models.WordPiece({token: i for i, token in enumerate(VOCABULARY)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.save(str(folder / "tokenizer.json"))


def save_model(folder, model_class=BertModel, **sizes):
    torch.manual_seed(0)
    config = BertConfig(vocab_size=len(VOCABULARY), **{**SIZES, **sizes})
    model = model_class(config).eval()
    for parameter in model.parameters():  # norms and biases are ones and zeros at first
        torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(folder)
    save_tokenizer(folder)
    return model


@pytest.mark.parametrize(
    "sizes",
    [
        {},
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
        vector = trace[last].mean(axis=0)
        np.testing.assert_allclose(encoder.encode([text])[0], vector, atol=tolerance)


def test_a_checkpoint_with_prefix_and_without_pooler_is_read(tmp_path):
    model = save_model(tmp_path, BertForMaskedLM)
    encoder = Encoder.load(tmp_path)
    trace = encoder.trace("abc def")
    with torch.inference_mode():
        expected = model.bert(torch.tensor(trace["ids"])[None]).last_hidden_state[0].numpy()
    np.testing.assert_allclose(trace["layers.1.output"], expected, atol=2e-5)
    assert "pooled.pooler" not in trace


def test_bfloat16_weights_are_widened(tmp_path):
    model = save_model(tmp_path).to(torch.bfloat16)
    model.save_pretrained(tmp_path)
    trace = Encoder.load(tmp_path).trace("abc def")
    with torch.inference_mode():
        expected = model.float()(torch.tensor(trace["ids"])[None]).last_hidden_state[0].numpy()
    np.testing.assert_allclose(trace["layers.1.output"], expected, atol=2e-5)


def test_the_limit_is_the_position_table_where_nothing_else_says(tmp_path):
    save_model(tmp_path)
    assert Encoder.load(tmp_path).max_tokens == SIZES["max_position_embeddings"]


def edit_config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def edit_tensors(folder, change):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path)


def cut(path, n_bytes):
    path.write_bytes(path.read_bytes()[:n_bytes])


KEY = "encoder.layer.1.attention.self.key.weight"


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda f: edit_tensors(f, lambda t: t.pop(KEY)), f"no tensor '{KEY}'"),
        (lambda f: edit_tensors(f, lambda t: t.update({KEY: t[KEY][:, :5].copy()})), r"shape \(24, 5\)"),
        (lambda f: cut(f / "model.safetensors", 5000), "not a complete safetensors file"),
        (lambda f: cut(f / "model.safetensors", 0), "not a complete safetensors file"),
        (lambda f: (f / "model.safetensors").unlink(), "no model.safetensors"),
        (lambda f: (f / "config.json").unlink(), "no config.json"),
        (lambda f: (f / "config.json").write_text("{"), "not readable JSON"),
        (lambda f: (f / "config.json").write_text("[]"), "no JSON object"),
        (lambda f: (f / "tokenizer.json").unlink(), "no tokenizer.json"),
        (lambda f: (f / "tokenizer.json").write_text("{}"), "not a readable tokenizer"),
        (lambda f: edit_config(f, model_type="electra"), "'electra' model"),
        (lambda f: edit_config(f, architectures=["BertForSequenceClassification"]), "a classifier or cross"),
        (lambda f: edit_config(f, hidden_act="mish"), "activation 'mish'"),
        (lambda f: edit_config(f, num_attention_heads=7), "does not divide"),
        (lambda f: edit_config(f, num_attention_heads=0), "heads"),
        (lambda f: edit_config(f, num_hidden_layers=-1), "layers"),
        (lambda f: edit_config(f, hidden_size="24"), "hidden_size"),
        (lambda f: edit_config(f, layer_norm_eps=None), "layer_norm_eps"),
        (lambda f: edit_config(f, hidden_act=["gelu"]), "activation"),
        (
            lambda f: (f / "sentence_bert_config.json").write_text('{"max_seq_length": "10"}'),
            "max_seq_length",
        ),
        (lambda f: edit_config(f, position_embedding_type="relative_key"), "relative_key"),
        (lambda f: edit_config(f, intermediate_size=41), "shape"),
    ],
)
def test_a_damaged_folder_is_refused_with_the_reason(tmp_path, damage, reason):
    save_model(tmp_path)
    damage(tmp_path)
    with pytest.raises(ModelFileError, match=reason):
        Encoder.load(tmp_path)


def test_a_tokenizer_larger_than_the_model_is_refused(tmp_path):
    save_model(tmp_path)
    edit_config(tmp_path, vocab_size=5)
    edit_tensors(
        tmp_path,
        lambda t: t.update(
            {"embeddings.word_embeddings.weight": t["embeddings.word_embeddings.weight"][:5].copy()}
        ),
    )
    with pytest.raises(ModelFileError, match="tokenizer has 24 tokens"):
        Encoder.load(tmp_path)


def test_a_model_without_pooler_refuses_that_pooling_alone(tmp_path):
    torch.manual_seed(0)
    config = BertConfig(vocab_size=len(VOCABULARY), **SIZES)
    BertModel(config, add_pooling_layer=False).save_pretrained(tmp_path)
    save_tokenizer(tmp_path)
    encoder = Encoder.load(tmp_path)
    assert encoder.encode(["abc"]).shape == (1, 24)
    with pytest.raises(InputError, match="no pooler weights"):
        encoder.encode(["abc"], pooling="pooler")


def test_an_empty_text_is_refused_where_a_model_adds_no_special_tokens(tmp_path):
    save_model(tmp_path)
    path = tmp_path / "tokenizer.json"
    nothing = dict.fromkeys(("add_prefix_space", "trim_offsets", "use_regex"), False) | {"type": "ByteLevel"}
    path.write_text(json.dumps({**json.loads(path.read_text()), "post_processor": nothing}))
    encoder = Encoder.load(tmp_path)
    assert encoder.encode(["a"]).shape == (1, 24)
    with pytest.raises(InputError, match=r"a text has no tokens, and .* adds none"):
        encoder.encode(["a", ""])
