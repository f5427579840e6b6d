"""What the compiled steps of a decoder have in common: numbers at an address, and shares of a work."""

from numba import carray

from engine.layers.atomics import numbers_at
from engine.layers.jit import njit
from engine.layers.tracing import Array

FAST = {"reassoc", "contract", "nsz", "arcp"}  # as in `kernels`


@njit(inline="always")
def numbers(address: int, n: int) -> Array:
    """Return the float32 numbers at an address."""
    return carray(numbers_at(address), (n,))


@njit(inline="always")
def part_of(n: int, share: int, n_shares: int) -> tuple[int, int]:
    """Where a share of ``n`` things begins and ends."""
    return share * n // n_shares, (share + 1) * n // n_shares
