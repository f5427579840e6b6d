"""How an operation's work is split into tasks, and how compiled code reads float32 arrays by address."""

from numba import carray

from engine.kernels.atomics import float32_pointer
from engine.kernels.jit import njit
from engine.layers.tracing import Array


@njit(inline="always")
def floats_at(address: int, n: int) -> Array:
    """Return the ``n`` float32 numbers at an address as an array."""
    return carray(float32_pointer(address), (n,))


@njit(inline="always")
def split_range(n: int, task: int, n_tasks: int) -> tuple[int, int]:
    """First and last + 1 of the ``n`` items that belong to a task."""
    return task * n // n_tasks, (task + 1) * n // n_tasks
