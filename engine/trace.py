"""The arrays of a traced forward pass, by dotted names."""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from math import prod
from pathlib import Path
from typing import BinaryIO

import numpy as np

from .errors import InputError
from .layers.tracing import Array, Shapes

# A trace grows with the square of a text's length; this is enough for 512 tokens of an encoder.
MAX_TRACE_BYTES = 256 * 1024**2


class Trace(Mapping[str, Array]):
    """The named arrays of one forward pass, in the order they were made.

    Calling it records a copy, so later in-place changes do not affect it. Only names that match one of
    the patterns ``keep`` are recorded, such as ``layers.*.attention.weights``.
    """

    def __init__(self, keep: Sequence[str] = ("*",)) -> None:
        self._keep = tuple(keep)
        self._arrays: dict[str, Array] = {}

    def __call__(self, name: str, value: Array) -> Array:
        """Record one array under its name."""
        if matches(name, self._keep):
            self._arrays[name] = np.array(value)
        return value

    def __getitem__(self, name: str) -> Array:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def save(self, file: str | Path | BinaryIO) -> None:
        """Write every array to an .npz file under its dotted name."""
        np.savez(file, **self._arrays)  # type: ignore[arg-type]


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Whether a name matches one of the patterns, in which ``*`` matches dots too."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def trace_bytes(shapes: Shapes, keep: Sequence[str], dtype: np.dtype) -> int:
    """Bytes of the arrays of these shapes whose names match ``keep``."""
    return sum(prod(shape) * dtype.itemsize for name, shape in shapes.items() if matches(name, keep))


def check_trace(shapes: Shapes, keep: Sequence[str], dtype: np.dtype, max_bytes: int) -> None:
    """Raise `InputError` if a trace would exceed ``max_bytes``, or a pattern matches nothing."""
    if isinstance(keep, str):
        raise InputError(f"keep takes a list of patterns: pass [{keep!r}]")
    for pattern in keep:
        if not any(fnmatchcase(name, pattern) for name in [*shapes, "tokens", "ids"]):
            raise InputError(
                f"no array of the trace is called {pattern!r}: names are like {next(iter(shapes))}"
            )
    size = trace_bytes(shapes, keep, dtype)
    if size > max_bytes:
        largest = max((name for name in shapes if matches(name, keep)), key=lambda name: prod(shapes[name]))
        raise InputError(
            f"the trace would hold {size / 1e6:,.0f} MB, more than {max_bytes / 1e6:,.0f}: keep fewer arrays "
            f"(the largest are like {largest}), give a shorter text, or raise max_bytes"
        )
