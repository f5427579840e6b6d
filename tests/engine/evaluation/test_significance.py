from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, permutation_test

from engine.errors import InputError
from engine.evaluation import significance


def by_scipy(baseline, other, n_tosses=np.inf):
    """The p-value of scipy's test of paired samples."""
    return permutation_test(
        (other, baseline),
        lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=n_tosses,
        rng=1,
    ).pvalue


@given(st.integers(0, 2**32), st.integers(2, 9), st.sampled_from([1, 3, 2**20]))
def test_few_questions_have_the_exact_p_value_of_scipy(seed, n, n_levels):
    baseline, other = np.random.default_rng(seed).integers(0, n_levels + 1, (2, n)) / n_levels
    found = significance.compare(baseline, other).p_value
    assert found == pytest.approx(by_scipy(baseline, other), abs=1e-12)


@pytest.mark.parametrize("gain", [0, 0.03, 0.06])
def test_many_questions_have_the_p_value_of_scipy_but_for_chance(gain):
    random = np.random.default_rng(3)
    baseline = random.random(200)
    other = np.clip(baseline + gain + 0.3 * random.standard_normal(200), 0, 1)
    expected = by_scipy(baseline, other, 9999)
    noise = np.sqrt(expected * (1 - expected) / 9999) + 1 / 9999
    assert significance.compare(baseline, other).p_value == pytest.approx(expected, abs=6 * noise)


def test_p_is_never_0_where_tosses_are_random():
    assert significance.compare(np.zeros(500), np.ones(500)).p_value == 1 / 10_000


@pytest.mark.parametrize(
    ("baseline", "other", "message"),
    [
        ([1.0], [1.0, 2.0], r"shapes \(1,\) and \(2,\) cannot be paired"),
        ([], [], "cannot be paired"),
        ([[1.0]], [[1.0]], "cannot be paired"),
        ([1.0, np.nan], [1.0, 1.0], "not finite"),
        ([1.0, 1.0], [1.0, np.inf], "not finite"),
    ],
)
def test_what_cannot_be_paired_is_said(baseline, other, message):
    with pytest.raises(InputError, match=message):
        significance.compare(np.array(baseline), np.array(other))


def stepped_down(differences):
    """Westfall and Young's definition, word for word: every exchange, and for every system a maximum."""
    n_questions, n_systems = differences.shape
    signs = np.array(list(product([1, -1], repeat=n_questions)))
    size = np.sqrt((differences**2).sum(axis=0))
    # The first are the differences as found.
    drawn = np.abs(signs @ differences) / np.where(size > 0, size, 1)
    order = np.argsort(-drawn[0], kind="stable")
    found, before = np.empty(n_systems), 0.0
    for place, system in enumerate(order):
        largest = drawn[:, order[place:]].max(axis=1)
        before = found[system] = max(before, (largest >= drawn[0, system] - 1e-9).mean())
    return found


@given(st.integers(0, 2**32), st.integers(1, 7), st.integers(1, 6))
def test_few_questions_have_the_exact_corrected_p_values(seed, n_questions, n_systems):
    levels = np.random.default_rng(seed).integers(-4, 5, (n_questions, n_systems)) / 4
    np.testing.assert_allclose(significance.corrected_p_values(levels), stepped_down(levels), atol=1e-12)


@pytest.mark.parametrize("n_questions", [9, 60])
def test_intervals_of_many_are_those_of_one_by_one(n_questions):
    generator = np.random.default_rng(1)
    baseline, *others = generator.choice([0.0, 0.25, 0.5, 1.0], (6, n_questions))
    others[0] = baseline.copy()
    for found, other in zip(significance.compare_all(baseline, np.array(others)), others, strict=True):
        alone = significance.compare(baseline, other)
        interval = found.difference, found.low, found.high
        assert interval == pytest.approx((alone.difference, alone.low, alone.high), abs=1e-12)
        assert found.p_value >= alone.p_value - 0.02


def test_one_difference_has_the_critical_value_of_the_normal_and_many_that_of_sidak():
    random = np.random.default_rng(0)
    alone = random.standard_normal((60, 1))
    assert significance.critical_value(alone) == pytest.approx(1.96, abs=0.05)
    same = np.repeat(alone, 20, axis=1)
    assert significance.critical_value(same) == pytest.approx(1.96, abs=0.05)
    many = np.linalg.qr(random.standard_normal((60, 20)))[0]  # uncorrelated
    sidak = norm.ppf(1 - (1 - 0.95 ** (1 / 20)) / 2)
    assert significance.critical_value(many) == pytest.approx(sidak, abs=0.06)
    assert significance.critical_value(np.zeros((5, 2))) == 0


def test_as_many_questions_are_needed_as_cohens_tables_say():
    """Cohen 1988, and exactly by the noncentral t: for d = 0.5, at 0.05 on two sides and power 0.8, 34."""
    normal = norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    assert significance.questions_needed(normal + 0.5, 1.96) == pytest.approx(34, abs=1)
    assert significance.questions_needed(normal + 0.2, 1.96) == pytest.approx(199, abs=3)
    assert significance.questions_needed(-normal - 0.2, 1.96) == pytest.approx(199, abs=3)
    assert significance.questions_needed(np.array([1.0, -1.0, 0.0]), 1.96) is None


def test_the_gain_on_held_out_questions_is_that_of_a_better_system_and_none_of_the_luckiest_of_many():
    rng = np.random.default_rng(0)
    noise = rng.random((20, 40))  # 20 equal systems
    assert noise.mean(axis=1).max() - noise[0].mean() > 0.05  # the luckiest on all questions
    lucky = np.mean([significance.held_out(rng.random((20, 40)), seed=seed).difference for seed in range(40)])
    assert abs(lucky) < 0.02
    better = np.vstack([noise, noise[0] + 0.5])
    assert significance.held_out(better).difference == pytest.approx(0.5)
