"""What a traced forward pass leaves behind: dotted names to arrays."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from engine.layers.tracing import Array


class Trace(Mapping[str, Array]):
    """The named arrays of one forward pass, in the order they were made.

    Calling it records a copy, so later in-place work cannot change what was seen.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, Array] = {}

    def __call__(self, name: str, value: Array) -> Array:
        """Record one array under its name."""
        self._arrays[name] = np.array(value)
        return value

    def __getitem__(self, name: str) -> Array:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def save(self, path: str | Path) -> None:
        """Write every array to an .npz file under its dotted name."""
        np.savez(path, **self._arrays)  # type: ignore[arg-type]
