from dataclasses import replace

import numpy as np
import pytest

from engine import Encoder
from engine.documents.loaders import load_corpus
from engine.documents.splitters import Splitting, split
from engine.errors import InputError, ModelFileError
from engine.layers.linear import Linear
from engine.layers.quantization import BLOCK, Int8Matrix, hadamard, rotate
from engine.models.precision import chosen_precision
from engine.models.reranker import Head, Reranker
from engine.retrieval.embedding_model import embed_query, embedding_spec
from engine.retrieval.index import build_index
from engine.training.search.frozen_layers import run_frozen_layers
from tests.engine.models.test_encoder_families import save
from tests.model_files import edit_tensors


@pytest.fixture(scope="module")
def rounded(encoder):
    return encoder.with_precision("int8")


def test_rotated_twice_is_the_same_and_products_stay():
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 7, 3 * BLOCK)).astype(np.float32)
    np.testing.assert_allclose(rotate(rotate(x)), x, atol=1e-5)
    np.testing.assert_allclose(rotate(x) @ rotate(w).T, x @ w.T, atol=1e-4)
    np.testing.assert_allclose(hadamard(8) @ hadamard(8), np.eye(8), atol=1e-6)


def test_a_rounded_matrix_is_read_by_rows_and_transposed():
    weight = np.random.default_rng(0).normal(size=(5, BLOCK)).astype(np.float32)
    matrix = Int8Matrix.of(weight)
    assert matrix.shape == weight.shape
    assert matrix.nbytes == 5 * BLOCK + 5 * 4
    np.testing.assert_allclose(matrix.T.T, weight, atol=0.03)
    np.testing.assert_array_equal(matrix[np.array([3, 1])], matrix.T.T[[3, 1]])


def test_vectors_in_8_bits_are_close_to_those_in_float32(encoder, rounded):
    documents = load_corpus()
    texts = [document.text[start : start + 900] for document in documents for start in range(0, 9000, 4500)]
    cosines = (encoder.encode(texts) * rounded.encode(texts)).sum(axis=1)
    assert np.quantile(cosines, 0.01) > 0.999


def test_vectors_of_two_precisions_are_not_compared(encoder, rounded):
    spec, other = embedding_spec(encoder), embedding_spec(rounded)
    assert spec != other
    assert "all-MiniLM-L6-v2 in int8" in str(other)


def test_auto_is_the_faster_one_and_leaves_float64_as_it_is(encoder):
    assert encoder.with_precision("auto").precision == chosen_precision("auto")
    double = Encoder.load(dtype=np.float64)
    assert double.with_precision("auto") is double


@pytest.fixture(scope="module")
def reranker(encoder):
    """The encoder's layers with a random classifier behind the pooler."""
    score = Linear(np.random.default_rng(0).normal(size=(1, encoder.config.d_model)).astype(np.float32))
    head = Head(encoder.weights.pooler, np.tanh, None, score, "Identity")
    tokenizer, family = encoder.tokenizer, encoder.family
    return Reranker("cross", encoder.config, encoder.weights, head, family, tokenizer, 128, compiled=True)


def test_a_cross_encoder_in_8_bits_scores_nearly_the_same(reranker):
    [document] = [each for each in load_corpus() if each.name == "inside_the_pipeline.md"]
    passages = [document.text[start : start + 400] for start in range(0, 8000, 400)]
    rounded = reranker.with_precision("int8")
    exact, near = (each.score("What is a token?", passages) for each in (reranker, rounded))
    assert np.corrcoef(exact, near)[0, 1] > 0.99
    assert not np.array_equal(exact, near)
    traced = rounded.trace("What is a token?", passages[0], ["score"])["score"]
    np.testing.assert_allclose(traced, near[:1], atol=np.ptp(exact) / 10)


def test_a_cross_encoder_is_rounded_with_its_encoder(encoder, reranker):
    both = replace(encoder, reranker=reranker).with_precision("int8")
    assert (both.precision, both.reranker.precision) == ("int8", "int8")
    assert both.with_precision("int8") is both
    assert both.reranker.weights is reranker.with_precision("int8").weights
    with pytest.raises(InputError, match="cross is rounded to int8 already: load it as float32"):
        both.reranker.with_precision("float32")


@pytest.mark.parametrize(("number", "precision"), [(np.nan, "float32"), (-np.inf, "int8")])
def test_weights_that_are_no_numbers_are_refused(tmp_path, number, precision):
    save(tmp_path, "distilbert", dim=BLOCK, n_heads=2)
    edit_tensors(tmp_path, lambda of: of["transformer.layer.1.ffn.lin1.weight"][3, 4:5].fill(number))
    with pytest.raises(ModelFileError, match="weight' has numbers that are not finite"):
        Encoder.load(tmp_path, precision=precision)


def test_what_cannot_be_rounded_is_refused(encoder, rounded):
    with pytest.raises(InputError, match="'bfloat16' is not one of float32, int8, auto"):
        encoder.with_precision("bfloat16")
    with pytest.raises(InputError, match="rounded to int8 already: load it as float32"):
        rounded.with_precision("float32")
    with pytest.raises(InputError, match="weights are float64, which is not rounded to int8"):
        Encoder.load(dtype=np.float64, precision="int8")
    with pytest.raises(InputError, match="fine-tuning needs the weights in float32: choose that, not int8"):
        run_frozen_layers(rounded, ["a cat"], 1)


def test_an_index_reads_questions_in_the_precision_of_its_chunks(encoder, rounded):
    [document] = [each for each in load_corpus() if each.name == "inside_the_pipeline.md"]
    chunks = split(document, encoder.tokenizer, Splitting("fixed", 128, 0))[:5]
    index = build_index(chunks, rounded)
    assert index.encoder(encoder).weights is rounded.weights
    assert index.search(embed_query("What is a token?", index.encoder(encoder)), 1)
    assert build_index(chunks, encoder).encoder(encoder) is encoder
