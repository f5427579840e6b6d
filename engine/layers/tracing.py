"""Tracing: a forward pass names its intermediate arrays, at no cost without a tracer.

A tracer is called with a name and an array and returns the array to continue with: usually the same, or
another one to see its effect.
"""

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
Tracer = Callable[[str, Array], Array]
Shapes = dict[str, tuple[int, ...]]  # of the arrays of a forward pass, by name


def no_trace(name: str, value: Array) -> Array:
    """Return the array and record nothing."""
    return value


def scoped(trace: Tracer, prefix: str) -> Tracer:
    """Return a tracer that puts ``prefix.`` before every name."""
    if trace is no_trace:
        return no_trace
    return lambda name, value: trace(f"{prefix}.{name}", value)
