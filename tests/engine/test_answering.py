from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from engine.documents.document import Document
from engine.documents.splitters import split_by_tokens
from engine.errors import ContextLengthError, InputError
from engine.generation.answering import NOTHING_FOUND, ask, retrieve
from engine.retrieval.index import build_index

DOCUMENTS = {
    "tower.md": "The Vardholm tower was finished in 1891 by forty masons.",
    "bread.md": "Knead the dough for ten minutes, then let it rest overnight.",
    "bees.md": "The keeper of the lighthouse kept bees and sold the honey.",
}
QUESTION = "When was the Vardholm tower finished?"


@pytest.fixture(scope="module")
def index(encoder):
    chunks = [
        chunk
        for name, text in DOCUMENTS.items()
        for chunk in split_by_tokens(Document(name, text), encoder.tokenizer)
    ]
    return build_index(chunks, encoder)


@pytest.fixture(scope="module")
def silent(decoder):
    """A decoder that must not be asked."""

    def refuse(*arguments, **settings):
        raise AssertionError("the decoder was asked")

    return SimpleNamespace(max_tokens=decoder.max_tokens, name="silent", generate=refuse)


def test_an_answer_lists_the_passages_it_was_given(index, encoder, decoder):
    pieces = []
    answer = ask(
        QUESTION, index, encoder, decoder, k=2, threshold=-1, max_new_tokens=32, on_text=pieces.append
    )
    assert "1891" in answer.text
    assert "".join(pieces).strip() == answer.text
    assert len(answer.sources) == 2
    first = answer.sources[0]
    assert DOCUMENTS["tower.md"][first.start : first.end] == first.text
    assert first.document == "tower.md"
    vectors = encoder.encode([QUESTION, first.text])
    assert first.score == pytest.approx(float(vectors[0] @ vectors[1]), abs=1e-5)


def test_every_stage_is_timed_and_every_token_counted(index, encoder, decoder):
    answer = ask(QUESTION, index, encoder, decoder, max_new_tokens=8)
    timings = answer.timings
    stages = (timings.tokenize_s, timings.encode_s, timings.search_s, timings.prompt_s, timings.generate_s)
    assert min(stages) > 0
    assert timings.prompt_tokens == len(answer.prompt.ids)
    assert 1 <= timings.answer_tokens <= 8
    assert timings.prompt_tokens_per_s > 0


@pytest.mark.parametrize(
    ("question", "threshold"), [("Who won the chess championship?", 0.3), (QUESTION, 1.0)]
)
def test_where_nothing_is_relevant_the_decoder_is_not_asked(index, encoder, silent, question, threshold):
    pieces = []
    answer = ask(question, index, encoder, silent, threshold=threshold, on_text=pieces.append)
    assert answer.text == NOTHING_FOUND == "".join(pieces)
    assert answer.sources == ()
    assert answer.prompt is None
    assert len(answer.hits) == 3
    assert answer.timings.prompt_tokens == 0


def test_only_passages_above_the_threshold_are_given(index, encoder, decoder):
    scores = [hit.score for hit in retrieve(QUESTION, index, encoder, 3, -1).hits]
    answer = ask(QUESTION, index, encoder, decoder, threshold=(scores[0] + scores[1]) / 2, max_new_tokens=4)
    assert len(answer.sources) == 1
    assert len(answer.hits) == 3


def test_the_question_is_embedded_as_the_index_was(encoder):
    chunks = split_by_tokens(Document("d.md", DOCUMENTS["tower.md"]), encoder.tokenizer)
    index = build_index(chunks, encoder, pooling="cls")
    [hit] = retrieve(QUESTION, index, encoder, 1, -1).hits
    vectors = encoder.encode([QUESTION, hit.chunk.text], pooling="cls")
    np.testing.assert_allclose(hit.score, vectors[0] @ vectors[1], atol=1e-5)


def test_an_index_of_another_model_is_refused(index, encoder, silent):
    with pytest.raises(InputError, match="vectors of other"):
        ask(QUESTION, replace(index, model="other"), encoder, silent)


def test_budgets_beyond_the_context_are_refused(index, encoder, silent):
    with pytest.raises(ContextLengthError, match="exceed the 8192 positions"):
        ask(QUESTION, index, encoder, silent, max_prompt_tokens=8000, max_new_tokens=500)


def test_a_blank_question_is_refused(index, encoder, silent):
    with pytest.raises(InputError, match="question is empty"):
        ask("  ", index, encoder, silent)
