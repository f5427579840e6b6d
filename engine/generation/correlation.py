"""Pearson and Spearman correlation."""

from dataclasses import dataclass

import numpy as np

from ..layers.tracing import Array

MIN_PAIRS = 4  # of values: fewer say nothing


@dataclass(frozen=True)
class PairCorrelation:
    """Correlation of two arrays of values, and of their ranks, each from -1 to 1."""

    pearson: float
    spearman: float


def correlation(first: Array, second: Array) -> PairCorrelation | None:
    """Correlate two arrays of the same shape, or return None for fewer than `MIN_PAIRS` or no variation."""
    from scipy.stats import rankdata  # slow to import

    x, y = first.ravel(), second.ravel()
    if x.size < MIN_PAIRS or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    pearson, spearman = (np.corrcoef(*pair)[0, 1] for pair in ((x, y), (rankdata(x), rankdata(y))))
    return PairCorrelation(float(pearson), float(spearman))
