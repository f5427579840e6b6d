"""How a forward pass names what it makes, at no cost when nobody looks."""

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
Tracer = Callable[[str, Array], None]


def no_trace(name: str, value: Array) -> None:
    """Keep nothing: the tracer of a forward pass that nobody inspects."""


def scoped(trace: Tracer, prefix: str) -> Tracer:
    """Return a tracer that puts ``prefix.`` before every name."""
    if trace is no_trace:
        return no_trace
    return lambda name, value: trace(f"{prefix}.{name}", value)
