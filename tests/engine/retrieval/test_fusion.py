import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from engine.retrieval.fusion import min_max, reciprocal_rank_fusion, weighted_fusion
from engine.retrieval.ranking import best_first, min_ranks, ordered_scores, top

# Few values, so that many are equal.
SCORE = st.sampled_from([-np.inf, -2.0, 0.0, 0.5, 3.0])
FOUND = st.sampled_from([-2.0, 0.0, 0.5, 3.0])


def matrix(n_questions, n_chunks, score):
    row = st.lists(score, min_size=n_chunks, max_size=n_chunks)
    rows = st.lists(row, min_size=n_questions, max_size=n_questions)
    return rows.map(lambda rows: np.array(rows, np.float32).reshape(n_questions, n_chunks))


@st.composite
def rankings(draw, score=SCORE):
    n_questions, n_chunks = draw(st.integers(1, 3)), draw(st.integers(1, 8))
    n_rankings = draw(st.integers(1, 3))
    return [draw(matrix(n_questions, n_chunks, score)) for _ in range(n_rankings)]


def brute_rrf(rows, constant):
    """Of one question, chunk by chunk."""
    return [
        sum(
            1 / (constant + 1 + sum(other > row[chunk] for other in row))
            for row in rows
            if row[chunk] > -np.inf
        )
        for chunk in range(len(rows[0]))
    ]


@given(rankings(), st.sampled_from([0, 1, 60]))
def test_reciprocal_rank_fusion_is_its_definition(scores, constant):
    fused = reciprocal_rank_fusion(scores, constant)
    assert fused.dtype == np.float32
    expected = [brute_rrf(rows, constant) for rows in zip(*scores, strict=True)]
    np.testing.assert_allclose(fused, expected, rtol=1e-6)


@given(rankings(FOUND), st.data())
def test_no_chunk_falls_because_one_ranking_likes_it_better(scores, data):
    chunk = data.draw(st.integers(0, scores[0].shape[1] - 1))
    better = [one.copy() for one in scores]
    better[0][:, chunk] += data.draw(st.sampled_from([0.25, 1.0, 9.0]))
    for fuse in (reciprocal_rank_fusion, lambda parts: weighted_fusion(parts[0], parts[-1], 0.5)):
        before, after = (min_ranks(fuse(parts).round(5))[:, chunk] for parts in (scores, better))
        assert (after <= before).all()


@given(rankings(FOUND))
def test_min_max_takes_the_lowest_to_0_and_the_best_to_1(scores):
    for row, scaled in zip(scores[0], min_max(scores[0]), strict=True):
        if row.max() == row.min():
            assert not scaled.any()
        else:
            np.testing.assert_allclose(scaled, (row - row.min()) / (row.max() - row.min()), atol=1e-12)


def test_min_max_takes_what_is_not_found_for_the_lowest():
    scores = np.array([[-np.inf, 1, 3], [-np.inf] * 3, [-3e38, 0, 3e38]], np.float32)
    np.testing.assert_allclose(min_max(scores), [[0, 0, 1], [0, 0, 0], [0, 0.5, 1]])


@given(rankings(FOUND))
def test_a_weight_of_1_keeps_the_order(scores):
    fused = weighted_fusion(scores[0], scores[-1], 1.0)
    np.testing.assert_array_equal(best_first(fused), best_first(scores[0]))


@given(rankings())
def test_ordered_scores_are_in_the_order_they_were_made_of(scores):
    order = best_first(scores[0])
    again = ordered_scores(order, scores[0])
    np.testing.assert_array_equal(best_first(again), order)
    np.testing.assert_array_equal(np.isneginf(again), np.isneginf(scores[0]))


def test_weighted_fusion_by_hand():
    dense, bm25 = np.array([[0.2, 0.4, 0.6]]), np.array([[8.0, 0.0, 4.0]])
    fused = weighted_fusion(dense, bm25, 0.75)
    np.testing.assert_allclose(fused, [[0.25, 0.375, 0.875]], rtol=1e-6)
    assert fused.dtype == np.float32


# Any value, too.
ANY_SCORE = st.sampled_from([-np.inf, -2.0, -0.0, 0.0, 0.5, np.inf]) | st.floats(-9, 9, width=32)
MATRICES = st.tuples(st.integers(0, 3), st.integers(0, 12)).flatmap(lambda size: matrix(*size, ANY_SCORE))


@given(MATRICES)
def test_a_rank_is_one_more_than_the_number_of_those_that_are_higher(scores):
    expected = [[1 + sum(other > one for other in row) for one in row] for row in scores]
    assert min_ranks(scores).tolist() == expected
    for row, found in zip(scores, expected, strict=True):
        assert min_ranks(row).tolist() == min_ranks(row, row).tolist() == found
        assert rankdata(-row, method="min").tolist() == found


@given(MATRICES, MATRICES)
def test_scores_are_ranked_among_others(scores, others):
    found = min_ranks(scores.ravel(), others.ravel())
    assert found.tolist() == [1 + int((others > one).sum()) for one in scores.ravel()]


@given(MATRICES, st.integers(0, 14))
def test_the_best_of_some_scores_are_the_first_of_all_in_order(scores, k):
    for row, order in zip(scores, best_first(scores), strict=True):
        assert top(row, k).tolist() == [place for place in order.tolist() if row[place] > -np.inf][:k]


def test_what_is_no_number_comes_last():
    scores = np.array([np.nan, -np.inf, 2.0, np.nan, 2.0])
    assert min_ranks(scores).tolist() == min_ranks(scores, scores).tolist() == [4, 3, 1, 4, 1]
