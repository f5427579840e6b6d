import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from engine.generation.correlation import correlation


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=4, max_size=30))
def test_correlations_are_those_of_scipy(pairs):
    x, y = np.array(pairs, float).T
    found = correlation(x, y)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert found is None
        return
    assert found.pearson == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-9)
    assert found.spearman == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-9)


def test_too_few_pairs_are_not_correlated():
    assert correlation(np.arange(3.0), np.arange(3.0)) is None
    assert correlation(np.eye(2), np.eye(2)).pearson == pytest.approx(1)
