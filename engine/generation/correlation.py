"""How far two measures of the same things agree, in proportion and in rank."""

from dataclasses import dataclass

import numpy as np

from engine.layers.tracing import Array

MIN_PAIRS = 4  # a correlation of fewer says nothing


@dataclass(frozen=True)
class Correlation:
    """How two measures of the same pairs agree, each from -1 to 1; of values and of their ranks."""

    pearson: float
    spearman: float


def correlation(first: Array, second: Array) -> Correlation | None:
    """Correlate two arrays of the same shape, or return None for fewer than `MIN_PAIRS` or no variation."""
    x, y = first.ravel(), second.ravel()
    if x.size < MIN_PAIRS or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    return Correlation(pearson(x, y), pearson(ranks(x), ranks(y)))


def pearson(x: Array, y: Array) -> float:
    """Cosine of two vectors around their means."""
    x, y = x - x.mean(), y - y.mean()
    return float(x @ y / np.sqrt((x @ x) * (y @ y)))


def ranks(x: Array) -> Array:
    """Rank of each value, from 1; equal ones share the mean of theirs: ``(n,) -> (n,)``."""
    smaller = (x[:, None] > x).sum(axis=1)
    equal = (x[:, None] == x).sum(axis=1)
    return smaller + (equal + 1) / 2
