"""Whether one system is better than another, or happened to be on these questions.

The paired randomisation test (Fisher 1935; Smucker, Allan and Carterette 2007 find it the best founded of
those used in information retrieval): were the two systems alike, then which of them got which value of a
question would be a coin's toss. So toss: exchange the two values of every question at random, again and
again, and count how often the means differ at least as much as they do.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from engine.errors import InputError
from engine.evaluation.bootstrap import mean_interval, means, resampled
from engine.layers.tracing import Array

N_TOSSES = 9999
BLOCK = 2**20  # signs held at a time
SYSTEMS = 500  # compared at a time
# Sums of the same numbers in another order differ by rounding, and count as equal.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Comparison:
    """A system's mean less the baseline's, the ends of its 95 % interval, and the randomisation test's p."""

    difference: float
    low: float
    high: float
    p_value: float


def compare(baseline: Array, other: Array, seed: int = 0) -> Comparison:
    """Compare two systems by their values of a metric on the same questions, both ``(n_questions,)``.

    The interval is the bootstrap's over questions, the p-value that of `randomisation_test`; where many
    systems are compared with one baseline, `holm` corrects their p-values.

    Raises
    ------
    InputError
        The systems have values of different numbers of questions or of none, or one is not finite.
    """
    differences = paired_differences(baseline, other)
    interval = mean_interval(differences, seed=seed)
    p_value = randomisation_test(baseline, other, seed=seed)
    return Comparison(interval.estimate, interval.low, interval.high, p_value)


def compare_all(baseline: Array, others: Array) -> list[Comparison]:
    """Compare many systems with one, as `compare` does, with the same resamples and tosses for all.

    Parameters
    ----------
    baseline, others
        Values of a measure for the same questions: ``(n_questions,)`` and ``(n_systems, n_questions)``.
    """
    found = []
    for start in range(0, len(others), SYSTEMS):
        differences = (others[start : start + SYSTEMS] - baseline).T  # (n_questions, n_block)
        intervals = resampled(means(differences), len(differences))
        for number, p_value in enumerate(p_values(differences)):
            one = intervals.interval(number)
            found.append(Comparison(one.estimate, one.low, one.high, float(p_value)))
    return found


def p_values(differences: Array) -> Array:
    """Return the randomisation test's p-value of each column of ``(n_questions, n_systems)``.

    Where so few questions differ that every exchange can be tried, it is the exact one.
    """
    n_questions, n_systems = differences.shape
    sums = differences.sum(axis=0)
    observed = np.abs(sums) - ROUNDING * np.abs(differences).sum(axis=0)
    as_large = np.ones(n_systems)
    for swaps in random_swaps(n_questions, N_TOSSES, seed=0):
        as_large += (np.abs(sums - 2 * swaps @ differences) >= observed).sum(axis=0)
    found = as_large / (N_TOSSES + 1)
    for number in np.flatnonzero(2.0 ** (differences != 0).sum(axis=0) <= N_TOSSES):
        found[number] = randomisation_test(np.zeros(n_questions), differences[:, number])
    return found


def randomisation_test(baseline: Array, other: Array, n_tosses: int = N_TOSSES, seed: int = 0) -> float:
    """How probable a difference of means as large as this, in either direction, is between equal systems.

    Parameters
    ----------
    baseline, other
        The systems' values of the same questions, ``(n_questions,)``.
    n_tosses
        How often all questions' values are exchanged at random. Where there are no more ways to exchange
        them than that (to 13 questions on which the systems differ), each is tried once and the p-value
        is exact; else the values as they are count as one toss more, so that it is never 0.
    seed
        The same seed gives the same tosses.

    Raises
    ------
    InputError
        As `compare` says, or no toss is asked for.
    """
    if n_tosses < 1:
        raise InputError(f"{n_tosses} tosses: make at least 1, better {N_TOSSES}")
    differences = paired_differences(baseline, other)
    differences = differences[differences != 0]  # an exchange of equal values changes nothing
    observed = abs(differences.sum()) - ROUNDING * np.abs(differences).sum()
    is_exact = 2 ** len(differences) <= n_tosses
    swaps = all_swaps(len(differences)) if is_exact else random_swaps(len(differences), n_tosses, seed)
    as_large = sum(
        int((np.abs(differences.sum() - 2 * (block @ differences)) >= observed).sum()) for block in swaps
    )
    return as_large / 2 ** len(differences) if is_exact else (as_large + 1) / (n_tosses + 1)


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
    """Yield every way to exchange the values of ``n`` questions or not: 0 and 1, one block ``(2**n, n)``."""
    yield (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(np.float64)


def random_swaps(n: int, n_tosses: int, seed: int) -> Iterator[Array]:
    """Yield ``n_tosses`` random ways to exchange the values of ``n`` questions, in blocks ``(n_rows, n)``."""
    generator = np.random.default_rng(seed)
    size = max(1, BLOCK // n)
    for start in range(0, n_tosses, size):
        rows = min(size, n_tosses - start)
        yield generator.integers(2, size=(rows, n), dtype=np.int8).astype(np.float64)


def holm(p_values: ArrayLike) -> Array:
    """Correct the p-values of several comparisons, ``(n,)``, for there being several (Holm 1979).

    Where those below 0.05 after the correction are called differences, the chance to call even one that is
    none is at most 5 %, however the comparisons depend on each other. The smallest is multiplied by ``n``,
    the next by ``n - 1``, and so on; none becomes smaller than one before it, or larger than 1.

    Raises
    ------
    InputError
        One is no probability.
    """
    p = np.asarray(p_values, np.float64)
    if not ((p >= 0) & (p <= 1)).all():
        raise InputError("p-values lie from 0 to 1: one of these does not")
    order = np.argsort(p, kind="stable")
    scaled = p[order] * np.arange(len(p), 0, -1)
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1)
    return corrected
