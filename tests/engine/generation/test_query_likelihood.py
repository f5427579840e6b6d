"""The score of a passage is the mean log-probability of the question after it, as by transformers."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine import Decoder
from engine.errors import ContextLengthError, InputError
from engine.generation.query_likelihood import BEFORE, REQUEST, QueryLikelihood
from engine.retrieval.rerank import cross_rerank
from tests.engine.models.test_decoder_folders import save_model, tokenizer  # noqa: F401

PASSAGES = ["the cat sat on the mat", "", "a feline rests on 12 rugs <end> café 東京 🙂", "mat " * 200]
QUESTION = " where was the cat? "


@pytest.fixture(scope="module")
def official(tokenizer, tmp_path_factory):  # noqa: F811
    folder = tmp_path_factory.mktemp("decoder")
    return folder, save_model(folder, tokenizer, max_position_embeddings=512)


@pytest.fixture(scope="module")
def likelihood(official):
    return QueryLikelihood(Decoder.load(official[0], compiled=False), max_tokens=128)


def expected(likelihood, model, question, passage):
    ids, start = likelihood.read(question, passage)
    with torch.no_grad():
        log = model(torch.tensor([ids])).logits[0].log_softmax(dim=-1)  # (n_tokens, vocab_size)
    return float(log[torch.arange(start - 1, len(ids) - 1), ids[start:]].mean())


def test_scores_equal_transformers(likelihood, official):
    done = []
    scores = likelihood.score(QUESTION, PASSAGES, lambda *numbers: done.append(numbers))
    assert done == [(number, 4) for number in (1, 2, 3, 4)]
    assert scores.tolist() == pytest.approx(
        [expected(likelihood, official[1], QUESTION, passage) for passage in PASSAGES], abs=1e-3
    )


def test_the_bundled_decoder_prefers_the_passage_that_the_question_is_about(decoder):
    passages = ["Whales sing to each other over many miles.", "The ferry to the island leaves at seven."]
    scores = QueryLikelihood(decoder).score("When does the ferry leave?", passages)
    assert scores[1] > scores[0] + 0.5


@given(passage=st.text(max_size=60), question=st.text("abc the?", min_size=1).filter(str.strip))
def test_prompt_and_question_are_the_texts(likelihood, passage, question):
    ids, start = likelihood.read(question, passage)
    decode = likelihood.decoder.tokenizer.decode
    assert decode(ids[start:]) == f" {question.strip()}"
    if len(ids) < likelihood.max_tokens:
        assert decode(ids[:start]) == f"{BEFORE}{passage}{REQUEST}"


def test_chunks_are_reordered_by_it(likelihood):
    first = np.array([[4, 3, 2, 1]], np.float32)
    scores = cross_rerank(first, [QUESTION], PASSAGES, likelihood, depth=3)
    best = likelihood.score(QUESTION, PASSAGES[:3])
    assert np.argsort(-scores[0]).tolist() == [*np.argsort(-best, kind="stable").tolist(), 3]


def test_what_cannot_be_scored_is_one_line(likelihood, official):
    with pytest.raises(InputError, match="the question is empty"):
        likelihood.score("  ", PASSAGES)
    with pytest.raises(InputError):
        likelihood.score(QUESTION, "one")
    whole = QueryLikelihood(likelihood.decoder, max_tokens=600)
    with pytest.raises(ContextLengthError, match="exceed the 512 positions"):
        whole.score(QUESTION, ["mat " * 600])
