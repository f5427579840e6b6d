import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from engine.errors import InputError
from engine.layers.norm import l2_normalize
from engine.retrieval import maxsim
from engine.retrieval.maxsim import best_matches
from engine.retrieval.rerank import MaxSim

QUESTIONS = ["How do cats sleep?", "Which rates did the bank raise?", ""]
CHUNKS = [
    "A feline rests curled up.",
    "The bank raised its interest rates by half a point in March, the third time in a row.",
    "",
    "Knead the dough for ten minutes. " * 20,
    "sleep",
]


def vectors(n_tokens):
    return arrays(np.float32, st.tuples(st.just(n_tokens), st.just(4)), elements=st.floats(-1, 1, width=32))


@given(st.integers(1, 6).flatmap(vectors), st.integers(1, 6).flatmap(vectors))
def test_maxsim_is_the_mean_of_each_tokens_largest_cosine(question, chunk):
    question, chunk = l2_normalize(question), l2_normalize(chunk)
    products = [[sum(a * b for a, b in zip(q, k, strict=True)) for k in chunk] for q in question]
    expected = sum(max(row) for row in products) / len(products)
    best, cosines = best_matches(question, chunk)
    assert cosines.mean() == pytest.approx(expected, abs=1e-5)
    for row, token, cosine in zip(products, best, cosines, strict=True):
        assert cosine == pytest.approx(max(row), abs=1e-5)
        assert row[token] == pytest.approx(max(row), abs=1e-5)


@pytest.mark.parametrize("batch_tokens", [1, 1024])
def test_scores_are_those_of_every_pair_however_chunks_are_packed(
    encoder, official, monkeypatch, batch_tokens
):
    monkeypatch.setattr(maxsim, "BATCH_TOKENS", batch_tokens)
    scores = MaxSim(QUESTIONS, CHUNKS, encoder, max_tokens=32).scores(range(len(CHUNKS)))
    texts = [*QUESTIONS, *CHUNKS]
    official_limit, official.max_seq_length = official.max_seq_length, 32
    try:
        tokens = official.encode(texts, output_value="token_embeddings", batch_size=1)
    finally:
        official.max_seq_length = official_limit
    unit = [l2_normalize(each.cpu().numpy().astype(np.float64)) for each in tokens]
    questions, chunks = unit[: len(QUESTIONS)], unit[len(QUESTIONS) :]
    expected = [[(q @ k.T).max(axis=1).mean() for k in chunks] for q in questions]
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-5)


def test_vectors_that_cannot_be_compared_are_refused():
    with pytest.raises(InputError, match="each text needs one or more"):
        best_matches(np.ones((0, 3)), np.ones((2, 3)))
    with pytest.raises(InputError, match="embed both texts with one model"):
        best_matches(np.ones((2, 3)), np.ones((2, 4)))


def test_a_limit_out_of_range_is_refused(encoder):
    with pytest.raises(InputError, match="max_tokens is 2"):
        MaxSim(QUESTIONS, CHUNKS, encoder, max_tokens=2).scores([0])
