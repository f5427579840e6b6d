"""The effect of one setting on average over a grid: the mean of all cells with a value, value by value."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from engine.errors import InputError
from engine.evaluation.bootstrap import Interval, means, resampled
from engine.layers.tracing import Array


@dataclass(frozen=True)
class MainEffect:
    """A value of a setting, and the metric on average over all cells with it.

    Attributes
    ----------
    value
        The value.
    n_cells
        How many cells have it.
    mean
        Of the metric over these cells and all questions, with its 95 % interval over the questions.
    difference
        That mean minus that of the reference value, with an interval from the same resamples; None for the
        reference itself.
    """

    value: Hashable
    n_cells: int
    mean: Interval
    difference: Interval | None


def main_effects(values: Array, levels: Sequence[Hashable], reference: Hashable) -> list[MainEffect]:
    """Return the effect of each value of a setting, in the order of their first cells.

    Of a metric of every cell and question, ``(n_cells, n_questions)``, and the setting's value in each
    cell, ``(n_cells,)``; the others are compared with the ``reference``.
    """
    distinct = list(dict.fromkeys(levels))
    if reference not in distinct:
        raise InputError(f"no cell has the value {reference!r} to compare with: choose of {distinct}")
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
