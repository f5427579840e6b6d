from pathlib import PurePath

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.documents.document import Chunk
from engine.documents.loaders import BUNDLED_CORPUS, load_corpus
from engine.errors import InputError
from engine.evaluation.questions import Question, Reference, load_questions
from engine.evaluation.spans import best_chunks, precision_omega, span_metrics, span_metrics_at

SPAN = st.tuples(st.integers(0, 30), st.integers(1, 12)).map(lambda span: (span[0], sum(span)))
CHUNK = st.builds(lambda name, span: chunk(*span, name), st.sampled_from(["a.md", "b.md"]), SPAN)
QUESTION = st.lists(SPAN, max_size=4).map(lambda spans: question(*spans))


def chunk(start, end, document="a.md"):
    return Chunk(document, start, end, "x" * (end - start), 1)


def question(*spans):
    return Question("Who?", "a", tuple(Reference("x" * (end - start), start, end) for start, end in spans))


def positions(spans):
    """Every character of some spans, of each of them: a list with repetition."""
    return [place for start, end in spans for place in range(start, end)]


def own(chunks):
    return [(chunk.start, chunk.end) for chunk in chunks if PurePath(chunk.document).stem == "a"]


def by_characters(chunks, asked):
    """Recall, precision and IoU by sets of character positions."""
    passages = [(reference.start, reference.end) for reference in asked.references]
    found = set(positions(own(chunks)))
    matched = len(found & set(positions(passages)))
    read = sum(len(chunk.text) for chunk in chunks)
    missed = [place for place in positions(passages) if place not in found]
    wholes = (len(positions(passages)), read, read + len(missed))
    return tuple(matched / whole if whole else 0 for whole in wholes)


def omega_by_characters(chunks, asked):
    passages = [(reference.start, reference.end) for reference in asked.references]
    touching = [
        (start, end)
        for start, end in own(chunks)
        if any(max(start, since) <= min(end, to) for since, to in passages)
    ]
    answers, read = set(positions(passages)), set(positions(touching))
    return len(answers & read) / len(answers | read) if answers else 0


@given(st.lists(CHUNK, max_size=6), QUESTION)
def test_the_metrics_are_those_of_sets_of_characters(chunks, asked):
    found = span_metrics(chunks, asked)
    assert (found.recall, found.precision, found.iou) == pytest.approx(by_characters(chunks, asked))
    assert precision_omega(chunks, [asked])[0] == pytest.approx(omega_by_characters(chunks, asked))


def test_a_case_by_hand():
    """Passages of 10 and 20 characters; chunks of 20, 10 and 30, the last of another document."""
    asked = question((10, 20), (40, 60))
    chunks = [chunk(0, 20), chunk(15, 25), chunk(40, 70, "b.md")]
    found = span_metrics(chunks, asked)
    assert (found.recall, found.precision, found.iou) == (10 / 30, 10 / 60, 10 / 80)
    assert precision_omega(chunks, [asked]) == pytest.approx([10 / (25 + 20)])


def test_what_overlapping_chunks_repeat_is_found_once_and_read_twice():
    asked = question((0, 10))
    twice = span_metrics([chunk(0, 10), chunk(0, 10)], asked)
    assert (twice.recall, twice.precision, twice.iou) == (1, 0.5, 0.5)
    assert precision_omega([chunk(0, 10), chunk(0, 10)], [asked]) == [1]


def test_overlapping_passages_are_asked_for_twice():
    """As in chunking_evaluation: their characters are matched once and wanted for each passage."""
    found = span_metrics([chunk(0, 10)], question((0, 10), (5, 10)))
    assert (found.recall, found.precision, found.iou) == (10 / 15, 1, 1)


def test_a_chunk_that_only_touches_a_passage_counts_for_precision_omega():
    assert precision_omega([chunk(0, 10), chunk(10, 20)], [question((10, 20))]) == [0.5]
    assert precision_omega([chunk(10, 20), chunk(20, 30)], [question((10, 20))]) == [0.5]
    assert precision_omega([chunk(0, 9), chunk(10, 20)], [question((10, 20))]) == [1]


def test_nothing_retrieved_and_nothing_to_find_count_as_0():
    for chunks, asked in (([], question((0, 5))), ([chunk(0, 5)], question()), ([], question())):
        found = span_metrics(chunks, asked)
        assert (found.recall, found.precision, found.iou) == (0, 0, 0)
        assert precision_omega(chunks, [asked]) == [0]


@given(
    st.integers(0, 2**32), st.integers(1, 8), st.integers(0, 12), st.sampled_from([np.float32, np.float64])
)
def test_the_best_are_the_first_of_a_stable_sort_that_were_found(seed, k, n_chunks, dtype):
    random = np.random.default_rng(seed)
    scores = random.choice([-np.inf, np.nan, -1e9, 0, 0.5, 1], (3, n_chunks)).astype(dtype)
    for row, best in zip(scores, best_chunks(scores, k), strict=True):
        found = [i for i in range(n_chunks) if row[i] > -np.inf]
        expected = sorted(found, key=lambda i: -row[i])[:k]
        assert best.tolist() == expected


def test_scores_choose_what_is_retrieved():
    chunks = [chunk(0, 10), chunk(10, 20), chunk(20, 30), chunk(0, 30, "b.md")]
    asked = [question((0, 20)), question((25, 30))]
    scores = np.array([[1, 1, 0, -1], [-np.inf, -np.inf, 0, 1]], np.float32)
    found = span_metrics_at(scores, chunks, asked, 2)
    assert found["recall"].tolist() == [1, 1]
    assert found["precision"].tolist() == [1, 5 / 40]
    assert found["iou"].tolist() == [1, 5 / 40]
    at_1 = span_metrics_at(scores, chunks, asked, 1)
    assert at_1["recall"].tolist() == [0.5, 0]
    assert at_1["iou"].tolist() == [0.5, 0]
    assert span_metrics_at(scores[:0], chunks, [], 2)["recall"].shape == (0,)


@pytest.mark.parametrize("k", [0, -1])
def test_k_is_at_least_1(k):
    with pytest.raises(InputError, match=f"k is {k}: retrieve 1"):
        span_metrics_at(np.zeros((1, 1)), [chunk(0, 1)], [question((0, 1))], k)


def test_whole_documents_recall_everything_and_small_chunks_are_more_precise():
    documents = load_corpus(BUNDLED_CORPUS)
    questions = load_questions()
    every_size = {}
    for size in (300, 1200):
        chunks = [
            Chunk(document.name, start, min(start + size, len(document.text)), "", 1)
            for document in documents
            for start in range(0, len(document.text), size)
        ]
        everything = span_metrics_at(np.zeros((len(questions), len(chunks))), chunks, questions, len(chunks))
        # Of 1 where passages of a question overlap, as chunking_evaluation has it.
        overlap = [
            len(set(places)) / len(places)
            for places in (positions([(r.start, r.end) for r in one.references]) for one in questions)
        ]
        np.testing.assert_allclose(everything["recall"], overlap)
        every_size[size] = precision_omega(chunks, questions).mean()
    assert 0 < every_size[1200] < every_size[300] < 1
