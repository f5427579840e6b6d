"""How far a metric could be off because these items were measured and not others: the percentile bootstrap.

The items (questions, pairs of sentences) are drawn again with replacement, as many as there are, and the
metric is taken of every such resample; the middle 95 % of what comes out is its interval (Efron and
Tibshirani 1993, chapter 13). All that is compared is taken of the same resamples, so that what makes an
item easy or hard for all drops out of a difference.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from engine.errors import InputError
from engine.layers.tracing import Array

# How often each item was drawn, (n_resamples, n_items), to statistics of it, (n_resamples, n_statistics).
Statistics = Callable[[Array], Array]

N_RESAMPLES = 2000
CONFIDENCE = 0.95
BLOCK = 2**20  # counts held at a time


@dataclass(frozen=True)
class Interval:
    """A statistic of the items as they are, and the ends of its interval."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class Resampled:
    """Statistics of the items, ``estimates (n_statistics,)``, and of resamples of them.

    ``replicates`` are ``(n_resamples, n_statistics)``, NaN where a resample leaves a statistic undefined.
    """

    estimates: Array
    replicates: Array

    def interval(self, number: int, confidence: float = CONFIDENCE) -> Interval:
        """Return one statistic with its interval."""
        return percentile_interval(self.estimates[number], self.replicates[:, number], confidence)

    def difference_interval(self, first: int, second: int, confidence: float = CONFIDENCE) -> Interval:
        """Return the first statistic minus the second, with the interval of that difference."""
        difference = self.estimates[first] - self.estimates[second]
        replicates = self.replicates[:, first] - self.replicates[:, second]
        return percentile_interval(difference, replicates, confidence)


def resampled(
    statistics: Statistics, n_items: int, n_resamples: int = N_RESAMPLES, seed: int = 0
) -> Resampled:
    """Take statistics of items and of resamples of them.

    Parameters
    ----------
    statistics
        A function from how often each item was drawn, int64 ``(n_resamples, n_items)``, to the statistics,
        ``(n_resamples, n_statistics)``. The items as they are have been drawn once each.
    n_items
        How many items there are.
    n_resamples
        How often they are drawn again.
    seed
        The same seed draws the same items.

    Raises
    ------
    InputError
        There is no item, or no resample is asked for.
    """
    if n_items < 1 or n_resamples < 1:
        raise InputError(f"{n_resamples} resamples of {n_items} items: give at least one of each")
    estimates = statistics(np.ones((1, n_items), np.int64))[0]
    return Resampled(
        estimates,
        np.concatenate([statistics(counts) for counts in draws(n_items, n_resamples, seed)]),
    )


def draws(n_items: int, n_resamples: int, seed: int) -> Iterator[Array]:
    """Draw ``n_items`` items again and again; yield how often each came, blocks of ``(n, n_items)``."""
    generator = np.random.default_rng(seed)
    size = max(1, BLOCK // n_items)
    for start in range(0, n_resamples, size):
        n = min(size, n_resamples - start)
        drawn = generator.integers(n_items, size=(n, n_items)) + n_items * np.arange(n)[:, None]
        yield np.bincount(drawn.ravel(), minlength=n * n_items).reshape(n, n_items)


def percentile_interval(estimate: float, replicates: Array, confidence: float = CONFIDENCE) -> Interval:
    """Cut as much off either end of the replicates ``(n_resamples,)`` as the confidence leaves."""
    if not 0 < confidence < 1:
        raise InputError(f"a confidence of {confidence} is not between 0 and 1: give 0.95 for 95 %")
    defined = replicates[~np.isnan(replicates)]
    outside = (1 - confidence) / 2
    low, high = np.quantile(defined, [outside, 1 - outside]) if len(defined) else (np.nan, np.nan)
    return Interval(float(estimate), float(low), float(high))


def means(values: Array) -> Statistics:
    """Make the means of columns a statistic: ``values`` are ``(n_items, n_statistics)``."""
    return lambda counts: counts @ values / len(values)


def mean_interval(
    values: Array, confidence: float = CONFIDENCE, n_resamples: int = N_RESAMPLES, seed: int = 0
) -> Interval:
    """Return the mean of a metric over its items, ``(n_items,)``, with its interval; the rest as above.

    Of two systems' values on the same items, ``mean_interval(first - second)`` is the difference's.
    """
    columns = np.asarray(values, np.float64)[:, None]
    return resampled(means(columns), len(columns), n_resamples, seed).interval(0, confidence)
