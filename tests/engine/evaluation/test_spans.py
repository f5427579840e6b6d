from pathlib import PurePath

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.documents.document import Chunk
from engine.errors import InputError
from engine.evaluation.questions import Question, Reference, relevance
from engine.evaluation.spans import best_chunks, span_metrics

SPAN = st.tuples(st.integers(0, 30), st.integers(1, 12)).map(lambda span: (span[0], sum(span)))
CHUNK = st.builds(lambda name, span: chunk(*span, name), st.sampled_from(["a.md", "b.md"]), SPAN)
PASSAGES = st.lists(SPAN.map(lambda span: Reference("x" * (span[1] - span[0]), *span)), max_size=4).map(tuple)
QUESTION = st.builds(Question, st.just("Who?"), st.just("a"), PASSAGES)


def chunk(start, end, document="a.md"):
    return Chunk(document, start, end, "x" * (end - start), 1)


def positions(spans):
    """Every character of some spans, of each of them: a list with repetition."""
    return [place for start, end in spans for place in range(start, end)]


def by_characters(chunks, asked):
    """Recall, precision and IoU by sets of character positions."""
    passages = [(reference.start, reference.end) for reference in asked.references]
    own = [chunk for chunk in chunks if PurePath(chunk.document).stem == "a"]
    found = set(positions((chunk.start, chunk.end) for chunk in own))
    matched = len(found & set(positions(passages)))
    read = sum(len(chunk.text) for chunk in chunks)
    missed = [place for place in positions(passages) if place not in found]
    wholes = (len(positions(passages)), read, read + len(missed))
    return tuple(matched / whole if whole else 0 for whole in wholes)


@given(st.lists(CHUNK, max_size=6), QUESTION)
def test_the_metrics_are_those_of_sets_of_characters(chunks, asked):
    [relevant] = relevance([asked], chunks)
    answering = [chunk for chunk, is_relevant in zip(chunks, relevant, strict=True) if is_relevant]
    found = span_metrics(answering, sum(chunk.end - chunk.start for chunk in chunks), asked)
    assert (found.recall, found.precision, found.iou) == pytest.approx(by_characters(chunks, asked))


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


@pytest.mark.parametrize("k", [0, -1])
def test_k_is_at_least_1(k):
    with pytest.raises(InputError, match=f"k is {k}: retrieve 1"):
        best_chunks(np.zeros((1, 1)), k)
