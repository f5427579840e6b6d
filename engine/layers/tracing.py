"""How a forward pass names what it makes, at no cost when nobody looks.

A tracer is called with a name and an array and returns the array to go on with: the same one, as a
rule, or another where somebody wants to see what would follow from it.
"""

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
Tracer = Callable[[str, Array], Array]
Shapes = dict[str, tuple[int, ...]]  # of the arrays of a forward pass, by name


def no_trace(name: str, value: Array) -> Array:
    """Keep nothing: the tracer of a forward pass that nobody inspects."""
    return value


def scoped(trace: Tracer, prefix: str) -> Tracer:
    """Return a tracer that puts ``prefix.`` before every name."""
    if trace is no_trace:
        return no_trace
    return lambda name, value: trace(f"{prefix}.{name}", value)
