"""The quantised types of GGUF files, described as data.

A row of a matrix is cut into *blocks* of 32 or 256 columns, and those into *sub-blocks* of 32 or 16. Each
column has a code of a few bits. Its number is

    w = d * scale * number[code] - dmin * min

with float16 ``d`` and ``dmin`` for a block, and small integers ``scale`` and ``min`` for a sub-block. Types
without sub-blocks have ``w = d * number[code]``, and those with an ``m`` have ``w = d * code + m``. Numbers
are either linear, ``number[code] = code - zero``, or a codebook.

The bits of a code may lie in two *planes*, such as 4 low bits here and 2 high bits there. A plane consists
of *runs* of bytes: with n bytes in a run and b bits, column c of a run has the bits from ``b * (c // n)`` on
of byte ``c % n``.

The structs are those of ggml-common.h in llama.cpp.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from ..layers.tracing import Array

UNIT = 32  # columns that matrices in memory have together: the bits of their codes lie side by side
HALVES = ("d", "dmin", "m")  # fields of float16
Scales = Literal["none", "bytes", "nibbles", "exponents"]


class Plane(NamedTuple):
    """Some bits of every code: the field of a block that holds them, and bytes of a run."""

    field: str
    bits: int
    run: int


@dataclass(frozen=True)
class QuantizedType:
    """A type of quantised numbers."""

    n_columns: int  # of a block
    fields: Mapping[str, int]  # bytes of each part of a block, in the order of the file
    planes: tuple[Plane, ...]  # the bits of the codes, lowest first
    numbers: tuple[int, ...]  # the number of each code
    sub_block: int = UNIT  # columns of a sub-block
    # how memory holds those of sub-blocks: as signed "bytes", first the scales of a unit and then its mins;
    # as "nibbles" of one byte, scale and min; or as "exponents", powers of 2 in place of d
    scales: Scales = "none"
    # from the fields of many blocks, each ``(..., bytes)``, to the bytes that memory holds for their units,
    # ``(..., n_units, n_scale_bytes)``
    read_scales: Callable[[Mapping[str, Array]], Array] | None = None

    @property
    def n_bytes(self) -> int:
        """Bytes of a block in the file."""
        return sum(self.fields.values())

    @property
    def halves(self) -> tuple[str, ...]:
        """The fields that are float16, ``d`` first."""
        return tuple(name for name in HALVES if name in self.fields)

    @property
    def n_scale_bytes(self) -> int:
        """Bytes in memory for the scales and mins of a unit."""
        parts = {"none": 0, "bytes": 1 + ("dmin" in self.fields), "nibbles": 1, "exponents": 1}
        return parts[self.scales] * UNIT // self.sub_block

    @property
    def held_bytes(self) -> int:
        """Bytes of a block in memory."""
        of_codes = sum(plane.bits for plane in self.planes) * UNIT // 8
        n_units = self.n_columns // UNIT
        return 2 * len(self.halves) + n_units * (self.n_scale_bytes + of_codes)

    def split(self, rows: Array) -> dict[str, Array]:
        """Split rows of a file, ``(n, bytes)``, into the fields of their blocks, ``(n, n_blocks, bytes)``."""
        ends = np.cumsum(list(self.fields.values()))
        parts = np.split(rows.reshape(len(rows), -1, self.n_bytes), ends[:-1], axis=-1)
        return dict(zip(self.fields, parts, strict=True))


def in_units(words: Array, bits: int, run: int) -> Array:
    """Turn the runs of a plane into a run for each unit.

    ``words`` are the plane's bytes as words of 32 bits, ``(..., n_words, n_rows)``; a code has ``bits`` in
    the plane, a run ``run`` bytes, a multiple of 4. Returns the words of each unit's run,
    ``(..., n_units, bits, n_rows)``.
    """
    shifts, mask = range(0, 8, bits), np.uint32((2**bits - 1) * 0x01010101)
    runs = words.reshape(*words.shape[:-2], -1, run // 4, words.shape[-1])
    codes = np.stack([runs >> np.uint32(shift) & mask for shift in shifts], axis=-3)
    codes = codes.reshape(*words.shape[:-2], -1, len(shifts), bits, words.shape[-1])
    units = np.zeros_like(codes[..., 0, :, :])
    for place, shift in enumerate(shifts):
        units |= codes[..., place, :, :] << np.uint32(shift)
    return units


def from_bit_rows(plane: Array) -> Array:
    """Turn bits in the order of columns, ``(..., 4)`` bytes for a unit, into a run of a unit.

    Column c has bit ``c % 8`` of byte ``c // 8``; in the run, bit ``c // 4`` of byte ``c % 4``.
    """
    bits = np.unpackbits(plane, axis=-1, bitorder="little").reshape(*plane.shape[:-1], 8, 4)
    return np.packbits(bits.swapaxes(-1, -2), axis=-1, bitorder="little")[..., 0]


def as_they_are(fields: Mapping[str, Array]) -> Array:
    """Scales that are bytes in the file: two for each unit of a block of 256 columns."""
    return fields["scales"].reshape(*fields["scales"].shape[:-1], -1, 2)


def exponents(fields: Mapping[str, Array]) -> Array:
    """Exponents of a block of one unit."""
    return fields["e"][..., None]


def scales_and_mins(fields: Mapping[str, Array]) -> Array:
    """Eight scales and mins of 6 bits in 12 bytes, as Q4_K and Q5_K have them.

    Bytes 0 to 3 begin with the scales 0 to 3, bytes 4 to 7 with those mins; bytes 8 to 11 have the low 4 bits
    of the scales and mins 4 to 7, whose high 2 bits end the bytes before.
    """
    scale, minimum, low = np.split(fields["scales"], 3, axis=-1)
    scales = np.concatenate([scale & 63, low & 15 | scale >> 6 << 4], axis=-1)
    mins = np.concatenate([minimum & 63, low >> 4 | minimum >> 6 << 4], axis=-1)
    return np.stack([scales, mins], axis=-1)


def signed_scales(fields: Mapping[str, Array]) -> Array:
    """Sixteen scales of 6 bits in 12 bytes, less 32, as Q3_K has them: the low 4 bits, then the high 2."""
    low, high = np.split(fields["scales"], [8], axis=-1)
    low = np.concatenate([low & 15, low >> 4], axis=-1)
    high = np.concatenate([high >> shift & 3 for shift in (0, 2, 4, 6)], axis=-1)
    scales = (low | high << 4) - np.uint8(32)
    return scales.reshape(*scales.shape[:-1], -1, 2)


def split_scales(fields: Mapping[str, Array]) -> Array:
    """Eight scales of 6 bits, less 32, in two fields, as IQ4_XS has them: the low 4 bits, and the high 2."""
    low, high = fields["scales_l"], fields["scales_h"]
    low = np.stack([low & 15, low >> 4], axis=-1)  # (..., 4, 2)
    high = np.stack([high >> shift & 3 for shift in (0, 2, 4, 6)], axis=-1)  # (..., 2, 4)
    scales: Array = low.reshape(*low.shape[:-2], 8, 1) | high.reshape(*high.shape[:-2], 8, 1) << 4
    return scales - np.uint8(32)


IQ4_NUMBERS = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
MXFP4_NUMBERS = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)


def linear(bits: int, zero: int = 0) -> tuple[int, ...]:
    """``code - zero`` for every code."""
    return tuple(code - zero for code in range(2**bits))


QUANTIZED = {
    "Q4_0": QuantizedType(32, {"d": 2, "qs": 16}, (Plane("qs", 4, 16),), linear(4, zero=8)),
    "Q4_1": QuantizedType(32, {"d": 2, "m": 2, "qs": 16}, (Plane("qs", 4, 16),), linear(4)),
    "Q5_0": QuantizedType(
        32, {"d": 2, "qh": 4, "qs": 16}, (Plane("qs", 4, 16), Plane("qh", 1, 1)), linear(5, zero=16)
    ),
    "Q5_1": QuantizedType(
        32, {"d": 2, "m": 2, "qh": 4, "qs": 16}, (Plane("qs", 4, 16), Plane("qh", 1, 1)), linear(5)
    ),
    "Q8_0": QuantizedType(32, {"d": 2, "qs": 32}, (Plane("qs", 8, 32),), linear(8, zero=128)),
    "Q2_K": QuantizedType(
        256,
        {"scales": 16, "qs": 64, "d": 2, "dmin": 2},
        (Plane("qs", 2, 32),),
        linear(2),
        16,
        "nibbles",
        as_they_are,
    ),
    "Q3_K": QuantizedType(
        256,
        {"hmask": 32, "qs": 64, "scales": 12, "d": 2},
        (Plane("qs", 2, 32), Plane("hmask", 1, 32)),
        linear(3, zero=4),
        16,
        "bytes",
        signed_scales,
    ),
    "Q4_K": QuantizedType(
        256,
        {"d": 2, "dmin": 2, "scales": 12, "qs": 128},
        (Plane("qs", 4, 32),),
        linear(4),
        32,
        "bytes",
        scales_and_mins,
    ),
    "Q5_K": QuantizedType(
        256,
        {"d": 2, "dmin": 2, "scales": 12, "qh": 32, "qs": 128},
        (Plane("qs", 4, 32), Plane("qh", 1, 32)),
        linear(5),
        32,
        "bytes",
        scales_and_mins,
    ),
    "Q6_K": QuantizedType(
        256,
        {"ql": 128, "qh": 64, "scales": 16, "d": 2},
        (Plane("ql", 4, 64), Plane("qh", 2, 32)),
        linear(6, zero=32),
        16,
        "bytes",
        as_they_are,
    ),
    "IQ4_NL": QuantizedType(32, {"d": 2, "qs": 16}, (Plane("qs", 4, 16),), IQ4_NUMBERS),
    "IQ4_XS": QuantizedType(
        256,
        {"d": 2, "scales_h": 2, "scales_l": 4, "qs": 128},
        (Plane("qs", 4, 16),),
        IQ4_NUMBERS,
        32,
        "bytes",
        split_scales,
    ),
    "MXFP4": QuantizedType(
        32, {"e": 1, "qs": 16}, (Plane("qs", 4, 16),), MXFP4_NUMBERS, 32, "exponents", exponents
    ),
}
