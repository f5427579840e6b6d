import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from engine.retrieval.ranking import best_first, min_ranks, top

# Few values, so that many are equal, or any.
SCORE = st.sampled_from([-np.inf, -2.0, -0.0, 0.0, 0.5, np.inf]) | st.floats(-9, 9, width=32)


@st.composite
def matrices(draw, score=SCORE):
    n_questions, n_chunks = draw(st.integers(0, 3)), draw(st.integers(0, 12))
    row = st.lists(score, min_size=n_chunks, max_size=n_chunks)
    rows = draw(st.lists(row, min_size=n_questions, max_size=n_questions))
    return np.array(rows, np.float32).reshape(n_questions, n_chunks)


@given(matrices())
def test_a_rank_is_one_more_than_the_number_of_those_that_are_higher(scores):
    expected = [[1 + sum(other > one for other in row) for one in row] for row in scores]
    assert min_ranks(scores).tolist() == expected
    for row, found in zip(scores, expected, strict=True):
        assert min_ranks(row).tolist() == min_ranks(row, row).tolist() == found
        assert rankdata(-row, method="min").tolist() == found


@given(matrices(), matrices())
def test_scores_are_ranked_among_others(scores, others):
    found = min_ranks(scores.ravel(), others.ravel())
    assert found.tolist() == [1 + int((others > one).sum()) for one in scores.ravel()]


@given(matrices(), st.integers(0, 14))
def test_the_best_of_some_scores_are_the_first_of_all_in_order(scores, k):
    for row, order in zip(scores, best_first(scores), strict=True):
        assert top(row, k).tolist() == [place for place in order.tolist() if row[place] > -np.inf][:k]


def test_what_is_no_number_comes_last():
    scores = np.array([np.nan, -np.inf, 2.0, np.nan, 2.0])
    assert min_ranks(scores).tolist() == min_ranks(scores, scores).tolist() == [4, 3, 1, 4, 1]
