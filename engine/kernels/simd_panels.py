"""SIMD code that reads panels of matrices of any type (see `panel_layout`).

A number of a quantised type is ``w = scale * number[code] + offset``. The scale is ``d``, times that of the
sub-block if there is one; the offset is ``-dmin * min``, or ``m``, or none.
"""

from collections.abc import Iterator
from typing import Any

from llvmlite import ir

from .gemm import LANES, WIDE, WIDE_REGISTERS
from .panel_layout import PanelLayout
from .simd import BYTES, HALVES, INTEGERS, N_VECTORS, SHORT, VECTOR, Code

GROUP = 4  # columns whose codes lie in a word, a byte each
GROUPS = 8  # of a unit; the second half of them belongs to the second of two sub-blocks


def scale_and_offset(
    code: Code, layout: PanelLayout, block: Any, unit: Any, sub: int, vector: int
) -> tuple[Any, Any]:
    """Scale and offset of a sub-block for `LANES` rows; None where the type has none."""
    builder = code.builder
    first = vector * LANES

    def half(n: int) -> Any:
        return builder.fpext(code.load(block, 2 * (n * WIDE + first), HALVES), VECTOR)

    def byte(n: int) -> Any:
        return builder.sext(code.load(unit, n * WIDE + first, ir.VectorType(BYTES, LANES)), INTEGERS)

    if layout.scales == "exponents":
        return power_of_two(builder, byte(sub)), None
    if not layout.n_halves:
        return None, None
    d = half(0)
    if layout.scales == "none":
        return d, half(1) if layout.has_offset else None
    if layout.scales == "nibbles":
        scale = builder.and_(byte(sub), INTEGERS([15] * LANES))
        minimum = builder.and_(builder.lshr(byte(sub), INTEGERS([4] * LANES)), INTEGERS([15] * LANES))
    else:
        scale, minimum = byte(sub), byte(layout.n_sub + sub) if layout.has_offset else None
    scale = builder.fmul(d, builder.sitofp(scale, VECTOR))
    if minimum is None:
        return scale, None
    return scale, builder.fneg(builder.fmul(half(1), builder.sitofp(minimum, VECTOR)))


def power_of_two(builder: Any, exponent: Any) -> Any:
    """``2^(e - 128)`` of signed bytes that stand for 0 to 255, by its bits as float32."""
    e = builder.and_(exponent, INTEGERS([255] * LANES))
    normal = builder.shl(builder.sub(e, INTEGERS([1] * LANES)), INTEGERS([23] * LANES))
    subnormal = builder.shl(INTEGERS([1 << 21] * LANES), e)
    is_small = builder.icmp_unsigned("<", e, INTEGERS([2] * LANES))
    return builder.bitcast(builder.select(is_small, subnormal, normal), VECTOR)


def codes(code: Code, layout: PanelLayout, unit: Any, group: int, vector: int) -> Any:
    """Codes of four consecutive columns in the bytes of a word, for `LANES` rows."""
    builder, word, plane, place = code.builder, None, layout.n_scale_bytes * WIDE, 0
    for bits in layout.planes:
        # A plane has a word for each of its bits; see `engine.weights.quantized` for the order of columns.
        read = code.load(unit, plane + 4 * (group % bits * WIDE + vector * LANES), INTEGERS)
        shift = bits * (group // bits) - place
        if shift > 0:
            read = builder.lshr(read, INTEGERS([shift] * LANES))
        elif shift < 0:
            read = builder.shl(read, INTEGERS([-shift] * LANES))
        mask = ((1 << bits) - 1 << place) * 0x01010101
        read = builder.and_(read, INTEGERS([mask] * LANES))
        word = read if word is None else builder.or_(word, read)
        plane += 4 * bits * WIDE
        place += bits
    return word


def unsigned_numbers(code: Code, layout: PanelLayout, word: Any) -> Any:
    """The numbers of four codes, plus ``zero``, as unsigned bytes of a word."""
    if layout.is_linear:
        return word
    return code.look_up_bytes([number + layout.zero for number in layout.numbers], word)


def four_numbers(code: Code, layout: PanelLayout, word: Any) -> Iterator[Any]:
    """Yield the numbers of four codes as float32."""
    builder = code.builder
    if len(layout.numbers) == 16 and WIDE_REGISTERS:
        for place in range(GROUP):
            yield code.look_up(layout.numbers, builder.lshr(word, INTEGERS([8 * place] * LANES)))
        return
    if not layout.is_linear:
        word = code.look_up_bytes(layout.numbers, word)
    elif layout.zero:
        register = ir.VectorType(BYTES, 4 * LANES)
        signed = builder.sub(code.as_bytes(word), register([layout.zero] * 4 * LANES))
        word = builder.bitcast(signed, INTEGERS)
    for place in range(GROUP):
        upper = builder.shl(word, INTEGERS([8 * (GROUP - 1 - place)] * LANES))
        yield builder.sitofp(builder.ashr(upper, INTEGERS([24] * LANES)), VECTOR)


def column_numbers(code: Code, kind: str, layout: PanelLayout, block: Any, column: int, vector: int) -> Any:
    """Numbers of a column that lie side by side, as float32."""
    builder, first = code.builder, column * WIDE + vector * LANES
    if kind == "Q8_0":
        read = code.load(block, 2 * layout.n_halves * WIDE + first, ir.VectorType(BYTES, LANES))
        return builder.sitofp(builder.sext(read, INTEGERS), VECTOR)
    if kind == "F16":
        return builder.fpext(code.load(block, 2 * first, HALVES), VECTOR)
    if kind == "BF16":
        bits = builder.zext(code.load(block, 2 * first, ir.VectorType(SHORT, LANES)), INTEGERS)
        return builder.bitcast(builder.shl(bits, INTEGERS([16] * LANES)), VECTOR)
    return code.load(block, 4 * first, VECTOR)


def numbers(
    code: Code, kind: str, layout: PanelLayout, block: Any, unit: Any
) -> Iterator[tuple[int, int, int, Any]]:
    """Yield (column, half, vector, numbers) of all columns of a unit; neighbours are of different halves.

    The halves are columns 0 to 15 and the others where codes lie in words, and else every second column.
    """
    if layout.by_column:
        for column in range(layout.n_columns):
            for vector in range(N_VECTORS):
                yield column, column % 2, vector, column_numbers(code, kind, layout, block, column, vector)
        return
    for group in range(GROUPS // 2):
        words = [
            [codes(code, layout, unit, own, vector) for vector in range(N_VECTORS)]
            for own in (group, group + GROUPS // 2)
        ]
        found = [[list(four_numbers(code, layout, word)) for word in of_half] for of_half in words]
        for place in range(GROUP):
            for half in range(2):
                for vector in range(N_VECTORS):
                    column = GROUP * (group + GROUPS // 2 * half) + place
                    yield column, half, vector, found[half][vector][place]
