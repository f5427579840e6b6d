"""Significance of the difference between systems: the paired randomisation test, corrected for many systems.

Under the null hypothesis that two systems are equal, their two values of a question are exchangeable (Fisher
1935; Smucker, Allan and Carterette 2007 recommend the test for information retrieval). The p-value is the
share of random exchanges, question by question, after which the means differ at least as much as observed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from statistics import NormalDist

import numpy as np

from ..errors import InputError
from ..layers.tracing import Array
from .bootstrap import means, resampled

N_TOSSES = 9999
BLOCK = 2**20  # signs, or sums of several systems, in memory at a time
SYSTEMS = 500  # compared at a time
LEVEL = 0.05  # of corrected p-values
POWER = 0.8  # probability of finding a difference
# Relative difference up to which sums of the same numbers in another order count as equal.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Comparison:
    """A system's mean minus the baseline's, its 95 % interval, and the p-value of the randomisation test."""

    difference: float
    low: float
    high: float
    p_value: float


def compare(baseline: Array, other: Array) -> Comparison:
    """Compare two systems by their values of a metric on the same questions, both ``(n_questions,)``."""
    return compare_all(baseline, np.asarray(other)[None])[0]


def compare_all(baseline: Array, others: Array) -> list[Comparison]:
    """Compare many systems with one; the p-values are corrected for the number of systems.

    Values of a metric on the same questions, ``(n_questions,)`` and ``(n_systems, n_questions)``.
    Intervals are from the bootstrap over questions, p-values those of `corrected_p_values`.
    """
    if not len(others):
        return []
    differences = np.array([paired_differences(baseline, other) for other in others]).T
    found = []
    for start in range(0, len(others), SYSTEMS):
        block = differences[:, start : start + SYSTEMS]  # (n_questions, n_block)
        intervals = resampled(means(block), len(block))
        found += [intervals.interval(number) for number in range(block.shape[1])]
    return [
        Comparison(one.estimate, one.low, one.high, float(p))
        for one, p in zip(found, corrected_p_values(differences), strict=True)
    ]


def held_out(values: Array, seed: int = 0) -> Comparison:
    """Compare the best system with the first on questions that had no part in the choice of the best.

    Questions are divided in halves at random; on each half, the system counts that is best on the other. So
    the difference is what to expect of new questions, where that of the best on all is too large. Values of
    all systems are ``(n_systems, n_questions)``, greater ones better.
    """
    order = np.random.default_rng(seed).permutation(values.shape[1])
    halves = np.array_split(order, 2)
    chosen = values[0].copy()  # (n_questions,)
    for own, other in (halves, halves[::-1]):
        chosen[own] = values[np.argmax(values[:, other].mean(axis=1)), own]
    return compare(values[0], chosen)


def corrected_p_values(differences: Array) -> Array:
    """Step-down max-T of Westfall and Young (1993): p-values corrected for several systems, ``(n_systems,)``.

    The p-value of a system is the share of exchanges, the same for all systems, after which the largest
    difference among all systems that differ no more than this one is at least as large as its own; it is 1
    for a system equal to the baseline. Differences ``(n_questions, n_systems)`` are scaled by their root
    sum of squares, which no exchange changes, so that noisy systems do not dominate. With a threshold of
    0.05 the probability of even one false difference is at most 5 %. Unlike Bonferroni's factor, the
    correction still allows differences to be found among any number of systems. Of no more possible
    exchanges than `N_TOSSES` each is used once; else the observed values count as one more.
    """
    differences = differences[differences.any(axis=1)]  # an exchange of equal values changes nothing
    n_questions, n_systems = differences.shape
    size = np.sqrt(np.square(differences).sum(axis=0))
    scaled = differences / np.where(size > 0, size, 1)
    order = np.argsort(np.abs(scaled.sum(axis=0)), kind="stable")  # the least first
    scaled = scaled[:, order]
    sums = scaled.sum(axis=0)
    observed = np.abs(sums) - ROUNDING * np.abs(scaled).sum(axis=0)
    is_exact = 2**n_questions <= N_TOSSES
    swaps = all_swaps(n_questions) if is_exact else random_swaps(n_questions, n_systems)
    as_large = np.zeros(n_systems)
    for block in swaps:
        drawn = np.abs(sums - 2 * block @ scaled)  # (n_swaps, n_systems)
        as_large += (np.maximum.accumulate(drawn, axis=1) >= observed).sum(axis=0)
    p = as_large / 2**n_questions if is_exact else (as_large + 1) / (N_TOSSES + 1)
    corrected = np.empty(n_systems)
    corrected[order] = np.maximum.accumulate(p[::-1])[::-1]  # at least that of systems that differ more
    return corrected


def paired_differences(baseline: Array, other: Array) -> Array:
    """Return ``other - baseline`` in float64; raise `InputError` for values that cannot be compared."""
    before, after = np.asarray(baseline, np.float64), np.asarray(other, np.float64)
    if before.ndim != 1 or before.shape != after.shape or not len(before):
        raise InputError(
            f"values of shapes {before.shape} and {after.shape} cannot be paired: give one of each system "
            "for each of the same questions"
        )
    if not (np.isfinite(before).all() and np.isfinite(after).all()):
        raise InputError("a value to compare is not finite (NaN or infinity): leave its question out")
    return after - before


def all_swaps(n: int) -> Iterator[Array]:
    """Yield all exchanges of ``n`` questions as one block ``(2**n, n)``: 1 for exchanged, else 0."""
    yield (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(np.float64)


def random_swaps(n: int, n_systems: int) -> Iterator[Array]:
    """Yield `N_TOSSES` random exchanges of ``n`` questions in blocks ``(n_rows, n)``."""
    generator, size = np.random.default_rng(0), max(1, BLOCK // max(n, n_systems))
    for start in range(0, N_TOSSES, size):
        yield generator.integers(2, size=(min(size, N_TOSSES - start), n), dtype=np.int8).astype(np.float64)


def critical_value(differences: Array) -> float:
    """Return the size that the largest of several differences exceeds by chance with probability `LEVEL`.

    Differences ``(n_questions, n_systems)`` are summed over questions, scaled as in `corrected_p_values`.
    Their sums after random exchanges tend to a normal distribution with the correlations of the systems,
    from which they are drawn here: the value is that for many questions, and few do not make it coarse.
    """
    size = np.sqrt(np.square(differences).sum(axis=0))
    scaled = differences / np.where(size > 0, size, 1)  # (n_questions, n_systems)
    generator = np.random.default_rng(0)
    n_rows = max(1, BLOCK // max(scaled.shape))
    largest = [
        np.abs(generator.standard_normal((min(n_rows, N_TOSSES - start), len(scaled))) @ scaled).max(axis=1)
        for start in range(0, N_TOSSES, n_rows)
    ]
    return float(np.quantile(np.concatenate(largest), 1 - LEVEL))


def questions_needed(differences: Array, critical: float) -> int | None:
    """Return how many questions would show a difference, if it is as large on all of them as on these.

    The randomisation test rejects where the mean of the ``differences`` ``(n_questions,)`` over the root
    mean square, g, is above ``critical / √n``, with the `critical_value` of all systems compared, 1.96 for
    one alone. By the delta method g has the variance ``τ² / n``, with τ the standard deviation of ``x - g
    x² / 2`` for differences x in root mean squares, so that it rejects with probability `POWER` for ``n =
    ((critical + z τ) / g)²``, where z is the normal quantile of `POWER`. None where the mean difference is
    0.
    """
    if not differences.sum():
        return None
    scaled = differences / np.sqrt(np.square(differences).mean())  # (n_questions,)
    gain = scaled.mean()
    spread = np.std(scaled - gain * np.square(scaled) / 2)
    return ceil(((critical + NormalDist().inv_cdf(POWER) * spread) / gain) ** 2)
