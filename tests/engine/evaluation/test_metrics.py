from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import InputError
from engine.evaluation import metrics

# Scores of four values, so that many are equal.
SCORE = st.sampled_from([-1.5, 0.0, 0.25, 3.0])


@st.composite
def searches(draw, scores=SCORE):
    """Scores and relevance of a few questions, and how many places are judged, often more than there are."""
    n_chunks = draw(st.integers(1, 12))
    rows = st.lists(scores, min_size=n_chunks, max_size=n_chunks)
    marks = st.lists(st.booleans(), min_size=n_chunks, max_size=n_chunks)
    pairs = draw(st.lists(st.tuples(rows, marks), min_size=1, max_size=4))
    found, relevant = zip(*pairs, strict=True)
    return np.array(found), np.array(relevant), draw(st.integers(1, 20))


@given(searches(SCORE | st.sampled_from([-np.inf, np.inf, np.nan])), st.booleans())
def test_the_first_relevant_chunk_is_counted_to_as_sorting_finds_it(search, is_cut):
    scores, relevant, k = search
    found = metrics.ranked(scores, relevant, k if is_cut else None)
    expected = (found / np.arange(1, found.shape[1] + 1)).max(axis=1, initial=0.0)
    assert metrics.reciprocal_rank(scores, relevant, k if is_cut else None).tolist() == expected.tolist()


@given(searches(SCORE | st.sampled_from([-np.inf, np.nan])), st.randoms())
def test_tokens_are_read_in_the_order_of_the_search_up_to_the_first_relevant_chunk(search, randoms):
    scores, relevant, _ = search
    n_tokens = np.array([randoms.randrange(1, 99) for _ in scores[0]])
    read = metrics.tokens_to_first(metrics.first_relevant(scores, relevant), n_tokens)
    for found, row, marks in zip(read, scores, relevant, strict=True):
        order = sorted(np.flatnonzero(row > -np.inf), key=lambda place: (-row[place], place))
        first = next((rank for rank, place in enumerate(order) if marks[place]), None)
        assert found == (np.inf if first is None else n_tokens[order[: first + 1]].sum())


def test_of_equal_scores_the_first_comes_first_and_nan_comes_last():
    relevant = np.array([[False, False, True]])
    assert metrics.reciprocal_rank(np.zeros((1, 3)), relevant) == pytest.approx([1 / 3])
    assert metrics.reciprocal_rank(np.array([[np.nan, np.nan, -9.0]]), relevant) == [1]


def test_a_search_in_nothing_finds_nothing():
    scores, relevant = np.empty((2, 0)), np.empty((2, 0), bool)
    for metric in (
        metrics.reciprocal_rank,
        metrics.hit_rate,
        metrics.precision,
        metrics.recall,
        metrics.ndcg,
    ):
        np.testing.assert_array_equal(metric(scores, relevant, 5), [0, 0])


@pytest.mark.parametrize("k", [0, -1])
def test_no_places_to_judge_are_refused(k):
    with pytest.raises(InputError, match=f"k is {k}: judge 1"):
        metrics.ranked(np.ones((1, 2)), np.ones((1, 2), bool), k)


def test_what_was_not_found_does_not_count():
    scores, relevant = np.array([[1.0, -np.inf, np.nan]]), np.array([[False, True, True]])
    assert metrics.hit_rate(scores, relevant, 3) == metrics.reciprocal_rank(scores, relevant) == 0


def test_the_table_gives_names_labels_and_values():
    scores, relevant = np.array([[0.1, 0.9, 0.5]]), np.array([[True, False, False]])
    found = replace(metrics.Retrieved.of(scores, relevant, 2), tokens_to_first=[1024.0, 1025.0, np.inf])
    assert metrics.METRICS["found_at_equal_reading"].function(found).tolist() == [1, 0, 0]
    assert metrics.METRICS["mrr"].function(found) == [0]
    assert metrics.METRICS["hit_rate@k"].function(metrics.Retrieved.of(scores, relevant, 3)) == [1]
    assert [metrics.at_depth(name, 10) for name in ("ndcg@k", "mrr")] == ["ndcg@10", "mrr@10"]
    for name, metric in metrics.METRICS.items():
        assert metric.at_k == name.endswith("@k") == metric.label.endswith("@k")
        assert metric.help.endswith(".")
    spans = [metric.help for metric in metrics.METRICS.values() if metric.unit == "characters"]
    assert all("token" not in help for help in spans)
