"""bfloat16: the upper half of a float32, with its range and 8 bits of its fraction."""

from dataclasses import dataclass

import numpy as np

from engine.layers.tracing import Array

HALF_BITS = 16
QUIET_NAN = np.uint16(0x7FC0)


def to_bfloat16(x: Array) -> Array:
    """Round float32 to the nearest bfloat16, halves to even: their bits, uint16, in the same shape."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    even = (bits >> np.uint32(HALF_BITS)) & np.uint32(1)
    upper = ((bits + np.uint32(0x7FFF) + even) >> np.uint32(HALF_BITS)).astype(np.uint16)
    return np.where(np.isnan(x), QUIET_NAN, upper)


def from_bfloat16(bits: Array) -> Array:
    """Return the float32 of a bfloat16's bits."""
    return (bits.astype(np.uint32) << np.uint32(HALF_BITS)).view(np.float32)


@dataclass(frozen=True)
class Bfloat16Matrix:
    """A matrix ``(d_out, d_in)`` in bfloat16; rows and ``T`` are read as float32.

    Attributes
    ----------
    bits
        uint16 ``(d_out, d_in)``.
    """

    bits: Array

    dtype = np.dtype(np.float32)  # of the rows it returns

    @classmethod
    def of(cls, weight: Array) -> "Bfloat16Matrix":
        """Round a float32 matrix."""
        return cls(to_bfloat16(weight))

    @property
    def shape(self) -> tuple[int, ...]:
        """``(d_out, d_in)``."""
        return self.bits.shape

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self.bits.nbytes

    def __getitem__(self, rows: Array) -> Array:
        """Return rows by their numbers: ``(n,) -> (n, d_in)``."""
        return from_bfloat16(self.bits[rows])

    @property
    def T(self) -> Array:
        """The transposed matrix, ``(d_in, d_out)``."""
        return from_bfloat16(self.bits).T


def bfloat16_linear(x: Array, weight: Bfloat16Matrix) -> Array:
    """``x W^T`` of x rounded to bfloat16, summed in float32: ``(n_tokens, d_in) -> (n_tokens, d_out)``."""
    product: Array = from_bfloat16(to_bfloat16(x)) @ weight.T
    return product
