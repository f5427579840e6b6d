"""The best chunks of a search are reordered by a cross-encoder."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import InputError
from engine.retrieval import retrievers
from engine.retrieval.rerank import cross_rerank

TOWNS = ("Ardal", "Bogen", "Cadiz", "Delft", "Enger", "Fauske")


@given(st.integers(1, 8), st.integers(0, 100), st.sampled_from((0.0, 3.0)))
def test_only_the_best_are_reordered(depth, seed, weight):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(2, 6)).astype(np.float32)
    wanted = rng.permutation(6)
    texts = [str(number) for number in range(6)]
    seen = []
    last = SimpleNamespace(name="words", score=lambda question, texts: wanted[[int(text) for text in texts]])
    found = cross_rerank(scores, ["a", "b"], texts, last, depth, lambda *counts: seen.append(counts), weight)
    assert seen == [(min(depth, 6), 2 * min(depth, 6)), (2 * min(depth, 6),) * 2]
    for before, after in zip(scores, found, strict=True):
        first = np.argsort(-before)
        best = sorted(first[:depth], key=lambda chunk: -wanted[chunk] - weight * before[chunk])
        expected = [*best, *first[depth:]]
        assert np.argsort(-after).tolist() == expected


def test_the_retriever_needs_a_reranker(encoder):
    assert "cross-encoder" not in retrievers.usable_retrievers(encoder)
    texts = retrievers.SearchTexts(("a",), ("b",), encoder)
    inputs = retrievers.SearchInputs(texts, *np.ones((2, 1, 1), np.float32))
    with pytest.raises(InputError, match="needs a cross-encoder"):
        retrievers.retriever_scores("cross-encoder", inputs)


def test_the_reader_reorders_the_best_without_a_reranker(encoder, reader):
    texts = (*(f"Of the tower of {town} nothing is said here." for town in TOWNS), "It was finished in 1891.")
    question = "When was the tower finished?"
    vectors = encoder.encode([question, *texts])
    searched = retrievers.SearchTexts((question,), texts, encoder)
    inputs = retrievers.SearchInputs(searched, vectors[:1], vectors[1:])
    assert {"reader", "weighted"} <= set(retrievers.usable_retrievers(encoder))
    [found] = retrievers.retriever_scores("reader", inputs)
    assert found.argmax() == len(TOWNS)
    [first] = retrievers.weighted(inputs)
    both = reader.score(question, texts) + retrievers.FIRST_STAGE_WEIGHT * first
    assert np.argsort(-found).tolist() == np.argsort(-both).tolist()
