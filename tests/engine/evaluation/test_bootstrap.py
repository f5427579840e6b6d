from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, bootstrap

from engine.errors import InputError
from engine.evaluation import bootstrap as intervals


def test_the_interval_of_a_mean_is_that_of_scipy():
    values = np.random.default_rng(3).exponential(size=200)
    ours = intervals.mean_interval(values, n_resamples=20_000)
    theirs = bootstrap(
        (values,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(9)
    ).confidence_interval
    assert ours.estimate == pytest.approx(values.mean())
    # The end of 20,000 resamples scatters by 0.02 of the mean's standard error, and there are two seeds.
    tolerance = 0.1 * values.std() / np.sqrt(len(values))
    assert ours.low == pytest.approx(theirs.low, abs=tolerance)
    assert ours.high == pytest.approx(theirs.high, abs=tolerance)


@pytest.mark.parametrize(("n_right", "n"), [(19, 19), (0, 19), (1, 1), (31, 41), (1700, 2093)])
def test_the_interval_of_a_share_is_exact_as_scipys(n_right, n):
    ours = intervals.level_interval(np.repeat([1.0, 0.0], [n_right, n - n_right]))
    theirs = binomtest(n_right, n).proportion_ci(method="exact")
    assert astuple(ours) == pytest.approx((n_right / n, theirs.low, theirs.high), abs=1e-9)


@given(st.integers(1, 40), st.integers(1, 30), st.integers(0, 2**32))
def test_every_resample_has_as_many_items_as_there_are(n_items, n_resamples, seed):
    counts = np.concatenate(list(intervals.draws(n_items, n_resamples, seed)))
    assert counts.shape == (n_resamples, n_items)
    assert (counts >= 0).all()
    assert (counts.sum(axis=1) == n_items).all()


def test_resamples_without_the_statistic_are_left_out():
    found = intervals.percentile_interval(1.0, np.array([np.nan, 2.0, 2.0, np.nan]))
    assert (found.low, found.high) == (2.0, 2.0)
    assert np.isnan(intervals.percentile_interval(np.nan, np.full(3, np.nan)).low)


def test_nothing_to_resample_is_an_error():
    with pytest.raises(InputError, match="of 0 items"):
        intervals.mean_interval(np.array([]))
    with pytest.raises(InputError, match="0 resamples"):
        intervals.mean_interval(np.ones(3), n_resamples=0)


def test_an_effect_is_the_mean_of_all_configurations_with_a_value_and_its_difference_is_paired():
    values = np.random.default_rng(0).random((6, 50))
    small, large = intervals.main_effects(values, [64, 128, 64, 128, 64, 128], 64)
    assert (small.value, large.value, small.n_configurations, large.n_configurations) == (64, 128, 3, 3)
    of_small, of_large = values[::2].mean(axis=0), values[1::2].mean(axis=0)
    assert astuple(small.mean) == pytest.approx(astuple(intervals.mean_interval(of_small)))
    assert astuple(large.difference) == pytest.approx(astuple(intervals.mean_interval(of_large - of_small)))
    assert small.difference is None
    [sure] = intervals.main_effects(np.ones((2, 19)), [64, 64], 64)  # no resample holds a failure
    assert (round(sure.mean.low, 2), sure.mean.high) == (0.82, 1)


def test_a_reference_without_a_configuration_is_refused():
    refusal = r"no configuration has the value 5 to compare with: choose of \[1, 2\]"
    with pytest.raises(InputError, match=refusal):
        intervals.main_effects(np.zeros((2, 3)), [1, 2], 5)
