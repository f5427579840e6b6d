"""Whether one system is better than another, or happened to be on these questions.

The paired randomisation test (Fisher 1935; Smucker, Allan and Carterette 2007 find it the best founded of
those used in information retrieval): were the two systems alike, then which of them got which value of a
question would be a coin's toss. So toss: exchange the two values of every question at random, again and
again, and count how often the means differ at least as much as they do.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from engine.errors import InputError
from engine.evaluation.bootstrap import mean_interval, means, resampled
from engine.layers.tracing import Array

N_TOSSES = 9999
BLOCK = 2**20  # signs, or sums of several systems, held at a time
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

    The interval is the bootstrap's over questions, the p-value that of `randomisation_test`; for many systems
    and one baseline there is `compare_all`.

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
    """Compare many systems with one; their p-values are corrected for there being so many.

    Parameters
    ----------
    baseline, others
        Values of a measure for the same questions: ``(n_questions,)`` and ``(n_systems, n_questions)``.

    Returns
    -------
    list of Comparison
        Differences and intervals as `compare` has them, with the p-values of `corrected_p_values`.
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


def corrected_p_values(differences: Array) -> Array:
    """Step-down max-T of Westfall and Young (1993): p-values corrected for several systems.

    A system's value is how often the largest difference of all systems that differ no more than it does is
    as large as its own, when the same questions are exchanged for all of them. Differences are in units of
    their own root sum of squares, which no exchange changes, so that no noisy system drowns the others.
    Where those below 0.05 are called differences, the chance to call even one that is none is at most 5 %;
    unlike with a factor for every system, any number of them can be told apart.

    Parameters
    ----------
    differences
        From the baseline: ``(n_questions, n_systems)``.

    Returns
    -------
    Array
        ``(n_systems,)``; one that is the same as the baseline has 1.
    """
    n_questions, n_systems = differences.shape
    size = np.sqrt(np.square(differences).sum(axis=0))
    scaled = differences / np.where(size > 0, size, 1)
    order = np.argsort(np.abs(scaled.sum(axis=0)), kind="stable")  # the least first
    scaled = scaled[:, order]
    sums = scaled.sum(axis=0)
    observed = np.abs(sums) - ROUNDING * np.abs(scaled).sum(axis=0)
    is_exact = 2**n_questions <= N_TOSSES
    swaps = all_swaps(n_questions) if is_exact else random_swaps(n_questions, N_TOSSES, 0, n_systems)
    as_large = np.zeros(n_systems)
    for block in swaps:
        drawn = np.abs(sums - 2 * block @ scaled)  # (n_swaps, n_systems)
        as_large += (np.maximum.accumulate(drawn, axis=1) >= observed).sum(axis=0)
    p = as_large / 2**n_questions if is_exact else (as_large + 1) / (N_TOSSES + 1)
    corrected = np.empty(n_systems)
    corrected[order] = np.maximum.accumulate(p[::-1])[::-1]  # none more certain than one that differs more
    return corrected


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


def random_swaps(n: int, n_tosses: int, seed: int, n_systems: int = 1) -> Iterator[Array]:
    """Yield ``n_tosses`` random ways to exchange the values of ``n`` questions, in blocks ``(n_rows, n)``.

    The more systems, the smaller the blocks.
    """
    generator = np.random.default_rng(seed)
    size = max(1, BLOCK // max(n, n_systems))
    for start in range(0, n_tosses, size):
        rows = min(size, n_tosses - start)
        yield generator.integers(2, size=(rows, n), dtype=np.int8).astype(np.float64)
