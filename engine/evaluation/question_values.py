"""Values of several metrics for every question in little memory, as a sweep has them for each row.

Most values repeat: a question without a hit has 0 in every metric, and ranks are small. So each distinct
number is stored once, and its index in one or two bytes for each occurrence; nothing is rounded.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.layers.tracing import Array


@dataclass(frozen=True, eq=False)  # equal if the values are equal, like any mapping
class QuestionValues(Mapping[str, tuple[float, ...]]):
    """A mapping from metrics to their values ``(n_questions,)``, which keep every bit."""

    names: tuple[str, ...]  # the metrics' names
    distinct: Array = field(repr=False)  # the distinct values, float64 ``(n_distinct,)``
    # index of each value in these, ``(n_metrics, n_questions)`` of the smallest unsigned type
    places: Array = field(repr=False)

    @classmethod
    def of(cls, names: Sequence[str], values: Array) -> "QuestionValues":
        """Compress the values ``(n_questions, n_metrics)`` of metrics."""
        columns = np.asarray(values, np.float64)
        bits = columns.T.ravel().view(np.int64)  # -0.0 and 0.0 differ in their bits
        distinct, places = np.unique(bits, return_inverse=True)
        smallest = np.min_scalar_type(max(len(distinct) - 1, 0))
        return cls(tuple(names), distinct.view(np.float64), places.astype(smallest).reshape(columns.T.shape))

    def __getitem__(self, name: str) -> tuple[float, ...]:
        """Return a metric's values; raise `KeyError` for an unknown name."""
        if name not in self.names:
            raise KeyError(name)
        return tuple(self.distinct[self.places[self.names.index(name)]].tolist())

    def __iter__(self) -> Iterator[str]:
        """Iterate over the metrics' names."""
        return iter(self.names)

    def __len__(self) -> int:
        """Return the number of metrics."""
        return len(self.names)
