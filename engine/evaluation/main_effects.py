"""The effect of one setting on average over a grid: the mean over all configurations, value by value."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from engine.errors import InputError
from engine.evaluation.bootstrap import Interval, means, resampled
from engine.layers.tracing import Array


@dataclass(frozen=True)
class MainEffect:
    """A value of a setting, and the metric on average over all configurations with it."""

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
            found.interval(n),
            None if n == first else found.difference_interval(n, first),
        )
        for n, (value, rows) in enumerate(zip(distinct, members, strict=True))
    ]
