"""Real weights of several families against the official library: `pytest -m models`, which fetches them."""

import json
import shutil

import numpy as np
import pytest

from engine import Decoder, Encoder
from engine.kernels.primitives import prepare_compiled
from engine.weights.catalog import DEFAULT_ENCODER
from engine.weights.fetch import model_path
from tests.pytorch import Library, torch, transformers
from tests.sentence_transformer_folders import WORDS, library, library_vectors

pytestmark = pytest.mark.models
TEXTS = [*WORDS.split(";"), "The cat sat on the mat.", "e\u0301 Ａ ﬁn", "A long text about bees. " * 60, ""]
MINI_LM = {
    "model_type": "bert",
    "vocab_size": 30522,
    "hidden_size": 384,
    "num_hidden_layers": 3,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "hidden_act": "gelu",
}
DISTILBERT = {
    "model_type": "distilbert",
    "vocab_size": 28996,
    "dim": 768,
    "n_layers": 6,
    "n_heads": 12,
    "hidden_dim": 3072,
    "max_position_embeddings": 512,
    "activation": "gelu",
}


@pytest.fixture(scope="module")
def weights(request):
    """A function that fetches weights by name, into the cache of pytest."""
    real_weights = pytest.importorskip("tests.real_weights")  # which needs onnx
    cache = request.config.cache.mkdir("weights")
    return lambda name: real_weights.fetched(name, cache)


def assert_equal_to_the_library(folder):
    prepare_compiled().join()
    theirs = library_vectors(library(folder), TEXTS)
    np.testing.assert_allclose(Encoder.load(folder).encode(TEXTS), theirs, atol=1e-5)


@pytest.mark.parametrize("name", ["mpnet", "splade"])
def test_a_folder_equals_sentence_transformers(weights, name):
    assert_equal_to_the_library(weights(name).parent)


@pytest.mark.parametrize(
    ("name", "config", "prefix"),
    [("paraphrase", MINI_LM, "auto_model."), ("tagger", DISTILBERT, "distilbert.")],
)
def test_weights_of_an_onnx_file_equal_sentence_transformers(weights, tmp_path, name, config, prefix):
    from_onnx = Library("tests.real_weights").from_onnx
    path = weights(name)
    from_onnx(path, tmp_path, prefix)
    (tmp_path / "config.json").write_text(json.dumps(config))
    cased = {"tokenizer_class": "BertTokenizer", "do_lower_case": name != "tagger", "model_max_length": 128}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(cased))
    own = path.parent / "tokenizer.json"
    of_bert = model_path(DEFAULT_ENCODER) / "tokenizer.json"
    shutil.copy(own if own.is_file() else of_bert, tmp_path / "tokenizer.json")
    assert_equal_to_the_library(tmp_path)
    if name == "paraphrase":  # the tagger's file rounds activations to 8 bits
        assert_equal_to_the_file(path, Encoder.load(tmp_path))


def assert_equal_to_the_file(path, encoder):
    session = Library("onnxruntime").InferenceSession(str(path))
    for text in TEXTS[:5]:
        ids = np.array([encoder.truncate(encoder.tokenizer.encode(text).ids)])
        outputs = session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})
        found = next(array for array in outputs if array.shape == (1, 384))
        np.testing.assert_allclose(encoder.encode([text]), found, atol=1e-5)


def test_gemma_3_writes_what_transformers_writes(weights):
    path = weights("gemma")
    files = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    tokenizer = transformers.AutoTokenizer.from_pretrained(**files)
    official = transformers.AutoModelForCausalLM.from_pretrained(**files, dtype=torch.float32).eval()
    decoder = Decoder.load(path)
    for text in ("The capital of France is", "Bees make honey, and", "naïve café 東京 🙂 e\u0301"):
        ids = tokenizer(text)["input_ids"]
        assert [*decoder.tokenizer.start_ids, *decoder.tokenizer.encode(text).ids] == ids
        with torch.inference_mode():
            theirs = official.generate(torch.tensor([ids]), max_new_tokens=20, do_sample=False)[0, len(ids) :]
        ours = [step.token_id for step in decoder.generate(ids, max_new_tokens=20)]
        assert ours == theirs.tolist()[: len(ours)]
