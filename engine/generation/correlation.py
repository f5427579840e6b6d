"""Pearson and Spearman correlation."""

from dataclasses import dataclass

import numpy as np

from engine.layers.tracing import Array
from engine.retrieval.ranking import mid_ranks

MIN_PAIRS = 4  # of values: fewer say nothing


@dataclass(frozen=True)
class PairCorrelation:
    """PairCorrelation of two arrays of values, and of their ranks, each from -1 to 1."""

    pearson: float
    spearman: float


def correlation(first: Array, second: Array) -> PairCorrelation | None:
    """Correlate two arrays of the same shape, or return None for fewer than `MIN_PAIRS` or no variation."""
    x, y = first.ravel(), second.ravel()
    if x.size < MIN_PAIRS or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    return PairCorrelation(pearson(x, y), pearson(mid_ranks(x), mid_ranks(y)))


def pearson(x: Array, y: Array) -> float:
    """Cosine of two vectors after subtracting their means."""
    x, y = x - x.mean(), y - y.mean()
    return float(x @ y / np.sqrt((x @ x) * (y @ y)))
