"""Values of several metrics for every question, kept in little memory for as many cells as a sweep has.

Most values come again and again: a question that was not found has 0 in every metric, a rank is a small
number. So each number is kept once, and its place in one or two bytes wherever it stands; nothing is rounded.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.layers.tracing import Array


@dataclass(frozen=True, eq=False)  # equal is what has equal values, as with every mapping
class QuestionValues(Mapping[str, tuple[float, ...]]):
    """The values of each metric, ``(n_questions,)``, which come out as they went in, bit by bit.

    Attributes
    ----------
    names
        The metrics' names.
    distinct
        The numbers among the values, float64 ``(n_distinct,)``.
    places
        Which of them each value is, ``(n_metrics, n_questions)`` of the smallest unsigned type.
    """

    names: tuple[str, ...]
    distinct: Array = field(repr=False)
    places: Array = field(repr=False)

    @classmethod
    def of(cls, names: Sequence[str], values: Array) -> "QuestionValues":
        """Keep the values ``(n_questions, n_metrics)`` of metrics."""
        columns = np.asarray(values, np.float64)
        bits = columns.T.ravel().view(np.int64)  # by which -0.0 and 0.0 are two numbers
        distinct, places = np.unique(bits, return_inverse=True)
        smallest = np.min_scalar_type(max(len(distinct) - 1, 0))
        return cls(tuple(names), distinct.view(np.float64), places.astype(smallest).reshape(columns.T.shape))

    def __getitem__(self, name: str) -> tuple[float, ...]:
        """Return a metric's values; raise `KeyError` where there is none of that name."""
        if name not in self.names:
            raise KeyError(name)
        return tuple(self.distinct[self.places[self.names.index(name)]].tolist())

    def __iter__(self) -> Iterator[str]:
        """Go through the metrics' names."""
        return iter(self.names)

    def __len__(self) -> int:
        """How many metrics there are."""
        return len(self.names)
