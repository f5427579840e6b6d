from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.documents.document import Chunk, Document
from engine.documents.splitters import split
from engine.errors import InputError
from engine.evaluation.questions import Question, Reference
from engine.evaluation.sentence_check import (
    DEPTHS,
    MOST_WORDS,
    WORDINGS,
    containment,
    own_chunks,
    paraphrase,
    sentence_questions,
)


def chunk(start, end, document="a.md"):
    return Chunk(document, start, end, "x" * (end - start), 1)


def question(start, end, corpus_id="a"):
    return Question("Who?", corpus_id, (Reference("x" * (end - start), start, end),))


@pytest.mark.parametrize("n", [1, 2, 30, 31])
def test_every_sentence_is_asked_for_word_by_word_and_reworded(bundled, n):
    texts = {document.name.removesuffix(".md"): document.text for document in bundled}
    probes = sentence_questions(bundled, n)
    assert [probe.wording for probe in probes] == list(WORDINGS) * n
    for verbatim, reworded in zip(probes[::2], probes[1::2], strict=True):
        (reference,) = verbatim.question.references
        text = texts[verbatim.question.corpus_id]
        assert verbatim.question.text == reference.content == text[reference.start : reference.end]
        assert text.count(reference.content) == 1
        assert 6 <= len(reference.content.split()) <= 2 * MOST_WORDS
        third = int(3 * (reference.start + reference.end) / 2 / len(text))
        assert verbatim.depth == reworded.depth == DEPTHS[third]
        assert reworded.question == Question(
            paraphrase(verbatim.question.text), verbatim.question.corpus_id, (reference,)
        )
        assert reworded.question.text != verbatim.question.text


def test_thirds_and_documents_get_equal_shares(bundled):
    probes = sentence_questions(bundled, 24)
    drawn = Counter((probe.depth, probe.question.corpus_id) for probe in probes[::2])
    assert set(drawn.values()) == {2}
    assert len(drawn) == 3 * len(bundled)


def test_the_seed_decides(bundled):
    assert sentence_questions(bundled, 9, seed=1) == sentence_questions(bundled, 9, seed=1)
    assert sentence_questions(bundled, 9, seed=1) != sentence_questions(bundled, 9, seed=2)


def test_no_sentence_is_drawn_twice_and_few_are_all_drawn():
    head = "The first of all sentences is here."
    tail = "The last of all sentences is there."
    twice = "The one that stands here twice is left out."
    document = Document("a/b.txt", f"{head} {twice} {twice} {tail}")
    probes = sentence_questions([document, Document("empty.md", "")], 100)
    assert [(probe.question.text, probe.depth) for probe in probes[::2]] == [(head, "head"), (tail, "tail")]
    assert {probe.question.corpus_id for probe in probes} == {"b"}


@pytest.mark.parametrize(
    "text", ["", "The cat is a pet.", "No rule changes one word here.", "a the " * 30 + "."]
)
def test_documents_without_fitting_sentences_are_told(text):
    with pytest.raises(InputError, match="no document has a sentence of 6 to 40 words"):
        sentence_questions([Document("a.md", text)], 3)


def test_at_least_one_sentence_is_asked_for(bundled):
    with pytest.raises(InputError, match="0 sentences: test with 1 or more"):
        sentence_questions(bundled, 0)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("As it is late, we use the car.", "we employ car, As it late."),  # all three rules
        ("We came, saw it, and left again!", "We came, saw it, and left again!"),  # "We came" is too short
        ("Who is not here?", "Who not here?"),  # "not" stays
        ("It's the man's hat, isn't it", "It's man's hat, isn't it"),
        ("A Large dog", "big dog"),
        ("There there", "There there"),
        ("...", "..."),
        ("", ""),
    ],
)
def test_the_rules_of_paraphrases(sentence, expected):
    assert paraphrase(sentence) == expected


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 9)), min_size=1, max_size=8), st.integers(0, 20))
def test_own_chunks_hold_most_of_a_sentence(spans, start):
    chunks = [chunk(first, first + n) for first, n in spans]
    held = [len(set(range(c.start, c.end)) & set(range(start, start + 5))) for c in chunks]
    own = own_chunks([question(start, start + 5), question(start, start + 5, "b")], chunks)
    assert own[0].tolist() == [n > 0 and n == max(held) for n in held]
    assert not own[1].any()


def test_containment_by_hand():
    own = np.array([[True, False], [True, False], [False, True], [False, False]])
    scores = np.array([[2, 1], [1, 2], [1, 2], [1, 2]], np.float32)
    groups = ["head", "head", "tail", "middle"]
    assert containment(scores, own, groups, 1) == {"head": 0.5, "tail": 1.0, "middle": 0.0}
    assert containment(scores, own, groups, 2) == {"head": 1.0, "tail": 1.0, "middle": 0.0}


def test_the_encoder_passes_and_noise_does_not(encoder, bundled):
    documents = [document for document in bundled if document.name == "inside_the_pipeline.md"]
    chunks = split(documents[0], encoder.tokenizer)
    probes = sentence_questions(documents, 24)
    own = own_chunks([probe.question for probe in probes], chunks)
    assert own.any(axis=1).all()
    vectors = encoder.encode([chunk.text for chunk in chunks], "mean")
    scores = encoder.encode([probe.question.text for probe in probes], "mean") @ vectors.T
    wordings = [probe.wording for probe in probes]
    assert min(containment(scores, own, wordings, 3).values()) >= 0.75
    noise = np.random.default_rng(0).random(scores.shape)
    assert max(containment(noise, own, wordings, 3).values()) < 0.5
