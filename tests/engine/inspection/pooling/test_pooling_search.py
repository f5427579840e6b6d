import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from engine.errors import InputError
from engine.evaluation.metrics import hit_rate, reciprocal_rank
from engine.inspection.pooling.pooling_search import only_found_by, pooling_quality, rankings

NAMES = ("mean", "cls", "max", "idf")


def unit(generator, *shape):
    vectors = generator.normal(size=shape).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


@st.composite
def scores(draw):
    """Scores of one to four strategies for some chunks, with many ties among them."""
    n_strategies, n_chunks = draw(st.integers(1, 4)), draw(st.integers(1, 12))
    values = draw(arrays(np.float32, (n_strategies, n_chunks), elements=st.sampled_from([-1, 0, 0.5, 1])))
    return dict(zip(NAMES, values, strict=False))


def order_of(values):
    """The brute-force ranking: best first, of equal ones the first first."""
    return sorted(range(len(values)), key=lambda row: (-values[row], row))


def top(values, k):
    return set(order_of(values)[:k])


@given(scores(), st.integers(1, 15))
def test_ranks_and_scores_are_those_of_a_sort_whatever_the_ties(given_scores, k):
    compared = rankings(given_scores, k)
    listed = [row for values in given_scores.values() for row in order_of(values)[:k]]
    assert compared.rows.tolist() == list(dict.fromkeys(listed))  # by the first strategy that finds them
    for strategy, ranks, own in zip(compared.strategies, compared.ranks, compared.scores, strict=True):
        values = given_scores[strategy]
        assert ranks.tolist() == [order_of(values).index(row) + 1 for row in compared.rows]
        assert own.tolist() == [values[row] for row in compared.rows]


@given(scores(), st.integers(1, 15))
def test_only_found_by_is_in_its_own_first_k_and_in_no_others(given_scores, k):
    alone = only_found_by(rankings(given_scores, k))
    assert list(alone) == list(given_scores)
    for strategy, rows in alone.items():
        others = [top(values, k) for name, values in given_scores.items() if name != strategy]
        expected = top(given_scores[strategy], k).difference(*others)
        assert rows.tolist() == [row for row in order_of(given_scores[strategy]) if row in expected]


def test_what_cannot_be_ranked_is_refused():
    with pytest.raises(InputError, match="k is 0"):
        rankings({"mean": np.ones(3)}, 0)
    with pytest.raises(InputError, match="no strategy"):
        rankings({}, 1)
    with pytest.raises(InputError, match="no chunks"):
        rankings({"mean": np.empty(0)}, 1)
    with pytest.raises(InputError, match="no labelled question"):
        pooling_quality({"mean": np.empty((0, 4))}, {"mean": np.ones((2, 4))}, np.empty((0, 2), bool), 5)


def test_judging_gives_the_metrics_of_each_strategy():
    generator = np.random.default_rng(0)
    chunk_vectors = {name: unit(generator, 20, 8) for name in NAMES}
    question_vectors = {name: unit(generator, 9, 8) for name in reversed(NAMES)}
    relevant = generator.random((9, 20)) < 0.1
    judged = pooling_quality(question_vectors, chunk_vectors, relevant, 5)
    assert judged.strategies == tuple(reversed(NAMES))
    for name, ranks, hits in zip(judged.strategies, judged.reciprocal_ranks, judged.hits, strict=True):
        found = question_vectors[name] @ chunk_vectors[name].T
        np.testing.assert_array_equal(ranks, reciprocal_rank(found, relevant))
        np.testing.assert_array_equal(hits, hit_rate(found, relevant, 5))
