"""Confidence intervals of metrics by the percentile bootstrap (Efron and Tibshirani 1993, chapter 13).

Shares, whose items are 0 or 1, have exact intervals: no resample of 19 successes in 19 holds a failure.

All items (questions, pairs of sentences) are resampled with replacement, and the metric is computed on every
resample; its interval holds the middle 95 % of these values. Systems are compared on the same resamples, so
that the difficulty of an item, the same for all, cancels in a difference.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from ..layers.tracing import Array

# From how often each item is drawn, (n_resamples, n_items), to statistics, (n_resamples, n_statistics).
Statistics = Callable[[Array], Array]

N_RESAMPLES = 2000
CONFIDENCE = 0.95
BLOCK = 2**20  # counts in memory at a time


@dataclass(frozen=True)
class Interval:
    """A statistic of the original items, and the ends of its interval."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class Resampled:
    """Statistics of the original items, and of their resamples."""

    estimates: Array  # ``(n_statistics,)``
    replicates: Array  # ``(n_resamples, n_statistics)``, NaN where a statistic of a resample is undefined

    def interval(self, number: int) -> Interval:
        """Return one statistic with its interval."""
        return percentile_interval(self.estimates[number], self.replicates[:, number])

    def difference_interval(self, first: int, second: int) -> Interval:
        """Return the first statistic minus the second, with the interval of the difference."""
        difference = self.estimates[first] - self.estimates[second]
        replicates = self.replicates[:, first] - self.replicates[:, second]
        return percentile_interval(difference, replicates)


def resampled(statistics: Statistics, n_items: int, n_resamples: int = N_RESAMPLES) -> Resampled:
    """Compute statistics of items and of their resamples, the same for every number of items.

    ``statistics`` goes from how often each item is drawn, int64 ``(n_resamples, n_items)``, to the
    statistics, ``(n_resamples, n_statistics)``. In the original items each is drawn once.
    """
    if n_items < 1 or n_resamples < 1:
        raise InputError(f"{n_resamples} resamples of {n_items} items: give at least one of each")
    estimates = statistics(np.ones((1, n_items), np.int64))[0]
    replicates = [statistics(counts) for counts in draws(n_items, n_resamples, seed=0)]
    return Resampled(estimates, np.concatenate(replicates))


def draws(n_items: int, n_resamples: int, seed: int) -> Iterator[Array]:
    """Draw resamples of ``n_items`` items; yield how often each item is drawn, in blocks ``(n, n_items)``."""
    generator = np.random.default_rng(seed)
    size = max(1, BLOCK // n_items)
    for start in range(0, n_resamples, size):
        n = min(size, n_resamples - start)
        drawn = generator.integers(n_items, size=(n, n_items)) + n_items * np.arange(n)[:, None]
        yield np.bincount(drawn.ravel(), minlength=n * n_items).reshape(n, n_items)


def percentile_interval(estimate: float, replicates: Array) -> Interval:
    """Return the interval between two quantiles of the replicates ``(n_resamples,)``."""
    defined, outside = replicates[~np.isnan(replicates)], (1 - CONFIDENCE) / 2
    low, high = np.quantile(defined, [outside, 1 - outside]) if len(defined) else (np.nan, np.nan)
    return Interval(float(estimate), float(low), float(high))


def means(values: Array) -> Statistics:
    """Return the means of columns as `Statistics`: ``values`` are ``(n_items, n_statistics)``."""
    return lambda counts: counts @ values / len(values)


def mean_interval(values: Array, n_resamples: int = N_RESAMPLES) -> Interval:
    """Return the mean of values ``(n_items,)``, such as differences of two systems, with its interval."""
    columns = np.asarray(values, np.float64)[:, None]
    return resampled(means(columns), len(columns), n_resamples).interval(0)


def level_interval(values: Array) -> Interval:
    """Return the mean of values ``(n_items,)`` with its interval: exact where each is 0 or 1."""
    if np.isin(values, (0, 1)).all():
        return share_interval(int(np.sum(values)), len(values))
    return mean_interval(values)


def share_interval(n_successes: int, n_items: int) -> Interval:
    """Return a share of items with its exact interval (Clopper and Pearson 1934)."""
    from scipy.special import betaincinv  # slow to import

    outside, n_failures = (1 - CONFIDENCE) / 2, n_items - n_successes
    low = float(betaincinv(n_successes, n_failures + 1, outside)) if n_successes else 0.0
    high = float(betaincinv(n_successes + 1, n_failures, 1 - outside)) if n_failures else 1.0
    return Interval(n_successes / n_items, low, high)


@dataclass(frozen=True)
class MainEffect:
    """A value of a setting, and the metric on average over all configurations of a grid with it."""

    value: Hashable  # the value
    n_configurations: int  # how many configurations have it
    # of the metric over these configurations and all questions, with its 95 % interval over the questions
    mean: Interval
    # that mean minus that of the reference value, with an interval from the same resamples; None for the
    # reference itself
    difference: Interval | None


def main_effects(values: Array, levels: Sequence[Hashable], reference: Hashable) -> list[MainEffect]:
    """Return the effect of each value of a setting, in the order of their first configurations.

    ``values`` are a metric of every configuration and question, ``(n_configurations, n_questions)``, and
    ``levels`` the setting's value in each, which are compared with the ``reference``.
    """
    distinct = list(dict.fromkeys(levels))
    if reference not in distinct:
        raise InputError(
            f"no configuration has the value {reference!r} to compare with: choose of {distinct}"
        )
    members = [np.array([level == value for level in levels]) for value in distinct]
    columns = np.stack([values[rows].mean(axis=0) for rows in members], axis=1)  # (n_questions, n_levels)
    found, first = resampled(means(columns), len(columns)), distinct.index(reference)
    return [
        MainEffect(
            value,
            int(rows.sum()),
            level_interval(columns[:, n]),
            None if n == first else found.difference_interval(n, first),
        )
        for n, (value, rows) in enumerate(zip(distinct, members, strict=True))
    ]
