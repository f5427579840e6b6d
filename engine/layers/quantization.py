"""Vectors in 8 bits: a whole number from -127 to 127 for each component, and a scale for all of them."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from .tracing import Array

LARGEST_CODE = 127
BLOCK = 128  # components that are rotated together
SMALLEST_SCALE = np.finfo(np.float32).tiny  # below it numbers lose digits: the vector counts as zeros


def quantize(x: Array) -> tuple[Array, Array]:
    """``codes = round(x / scale)``, halves to even, and ``scale = max |x| / 127`` of each vector.

    ``(..., d)`` to the codes, int8 ``(..., d)``, and the scales, float32 ``(...)``. If a component is not
    finite, the whole vector is not.
    """
    x = x.astype(np.float32, copy=False)
    scales = np.abs(x).max(axis=-1) / np.float32(LARGEST_CODE)
    with np.errstate(invalid="ignore"):  # of infinity and NaN, which the scale keeps
        codes = np.rint(x / np.where(scales >= SMALLEST_SCALE, scales, 1)[..., None]).astype(np.int8)
    return codes, scales


def dequantize(codes: Array, scales: Array) -> Array:
    """``codes * scale``: int8 ``(..., d)`` and float32 ``(...)`` to float32 ``(..., d)``."""
    return codes * scales[..., None]


@cache
def hadamard(n: int) -> Array:
    """The orthogonal, symmetric Hadamard matrix of a power of two, ``(n, n)``: entries are +-1/sqrt(n)."""
    matrix = np.ones((1, 1), np.float32)
    while len(matrix) < n:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix / np.sqrt(np.float32(n))


def rotate(x: Array) -> Array:
    """``x H`` in each block of `BLOCK` components, ``(..., d)`` to the same; twice gives ``x`` again.

    A large component, which would leave few codes to the others, is spread over its block. Products of
    rotated vectors are those of the vectors, since ``(x H) (w H)^T = x w^T`` (Ashkboos et al. 2024, QuaRot).
    """
    blocks = x.reshape(*x.shape[:-1], -1, BLOCK)
    return (blocks @ hadamard(BLOCK)).reshape(x.shape)


@dataclass(frozen=True)
class StoredMatrix:
    """A matrix ``(d_out, d_in)`` stored with quantized rows; rows and ``T`` are read as float32."""

    codes: Array  # int8 ``(d_out, d_in)``
    scales: Array  # of each row, float32 ``(d_out,)``

    dtype = np.dtype(np.float32)  # of the rows it returns

    @property
    def shape(self) -> tuple[int, ...]:
        """``(d_out, d_in)``."""
        return self.codes.shape

    @property
    def nbytes(self) -> int:
        """Bytes of codes and scales."""
        return self.codes.nbytes + self.scales.nbytes

    def __getitem__(self, rows: Array | slice) -> Array:
        """Return rows by their numbers: ``(n,) -> (n, d_in)``."""
        return dequantize(self.codes[rows], self.scales[rows])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return the whole matrix."""
        return self[:].astype(dtype or self.dtype, copy=False)

    @property
    def T(self) -> Array:
        """The transposed matrix, ``(d_in, d_out)``."""
        return self[:].T


class Int8Matrix(StoredMatrix):
    """A matrix whose rows were rotated before they were quantized, multiplied in 8 bits."""

    @classmethod
    def of(cls, weight: Array) -> "Int8Matrix":
        """Round a float32 matrix."""
        return cls(*quantize(rotate(weight)))

    def __getitem__(self, rows: Array | slice) -> Array:
        """Return rows by their numbers: ``(n,) -> (n, d_in)``."""
        return rotate(super().__getitem__(rows))


def int8_linear(x: Array, weight: Int8Matrix) -> Array:
    """``x W^T`` with the rows of x rotated and quantized, too: ``(n_tokens, d_in) -> (n_tokens, d_out)``.

    ``y = (codes_x codes_W^T) * scale_x * scale_W``, a product of whole numbers. LLM.int8 (Dettmers et al.
    2022) leaves columns with large components in float16; here the rotation spreads them.
    """
    codes, scales = quantize(rotate(x))
    sums = codes.astype(np.float32) @ weight.codes.T.astype(np.float32)  # exact but for sums over 2^24
    return sums * scales[:, None] * weight.scales
