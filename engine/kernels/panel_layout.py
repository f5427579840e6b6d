"""How panels of packed matrices lie in memory, for each type of number.

A panel has `WIDE` rows of a matrix. Their numbers of the same kind lie side by side, so that an instruction
works on one column of many rows and no sum is reduced over a register's lanes. Quantised types keep the bits
of their file (`engine.weights.quantized`).
"""

from dataclasses import dataclass

from ..weights.quantized import QUANTIZED, UNIT, QuantizedType, Scales
from .gemm import WIDE


@dataclass(frozen=True)
class PanelLayout:
    """Blocks of a panel: float16 ``d`` and ``dmin`` or ``m``, then units of columns: scales, then codes."""

    n_columns: int  # of a unit
    unit_bytes: int  # of a unit; bytes are those of one row
    n_units: int = 1  # units of a block
    n_halves: int = 0  # float16 numbers that a block begins with
    scales: Scales = "none"  # of a unit, as in `QuantizedType`
    n_scale_bytes: int = 0
    n_sub: int = 1  # sub-blocks of a unit
    # bits of each plane of codes, lowest first: words of 32 bits with the bits of four consecutive columns or
    # more (codes of 8 bits, and numbers that are not quantised, column by column)
    planes: tuple[int, ...] = ()
    numbers: tuple[int, ...] = ()  # the number of each code

    @property
    def block_bytes(self) -> int:
        """Bytes of a block of one row."""
        return 2 * self.n_halves + self.n_units * self.unit_bytes

    @property
    def mean_bytes(self) -> int:
        """Bytes of a panel for each unit: its own, and its share of what the block begins with."""
        return self.block_bytes * WIDE // self.n_units

    @property
    def by_column(self) -> bool:
        """Whether numbers, or codes of 8 bits, lie column by column, not in words of several columns."""
        return self.planes in ((), (8,))

    @property
    def has_offset(self) -> bool:
        """Whether numbers have an offset: ``m``, or a min of each sub-block."""
        return self.n_halves == 2

    @property
    def zero(self) -> int:
        """What is added to numbers to make them unsigned."""
        return -min(self.numbers)

    @property
    def is_linear(self) -> bool:
        """Whether numbers are ``code - zero``."""
        return all(number == code - self.zero for code, number in enumerate(self.numbers))


def layout_of(own: QuantizedType) -> PanelLayout:
    """Layout of a quantised type."""
    n_units = own.n_columns // UNIT
    return PanelLayout(
        n_columns=UNIT,
        unit_bytes=(own.held_bytes - 2 * len(own.halves)) // n_units,
        n_units=n_units,
        n_halves=len(own.halves),
        scales=own.scales,
        n_scale_bytes=own.n_scale_bytes,
        n_sub=UNIT // own.sub_block,
        planes=tuple(plane.bits for plane in own.planes),
        numbers=own.numbers,
    )


LAYOUTS = {
    **{kind: layout_of(own) for kind, own in QUANTIZED.items()},
    **{kind: PanelLayout(1, n_bytes) for kind, n_bytes in {"F16": 2, "BF16": 2, "F32": 4}.items()},
}
KINDS = tuple(LAYOUTS)  # compiled code knows a type by its place here
