"""SIMD code of products with packed matrices (see `simd`, `simd_panels`).

The type of a matrix and the number of rows are constants of the compiled code, passed as literals.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from ..weights.quantized import UNIT
from .gemm import FEATURES, LANES, LONG, WIDE, WIDE_REGISTERS, loop
from .jit import instructions
from .panel_layout import KINDS, LAYOUTS, PanelLayout
from .simd import AHEAD, FAR_AHEAD, FAR_CACHE, FIRST_CACHE, INTEGER, INTEGERS, N_VECTORS, SINGLE, VECTOR, Code
from .simd_panels import GROUP, GROUPS, codes, numbers, scale_and_offset, unsigned_numbers

# Whether the processor has an instruction for the dot product of four 8-bit codes.
DOT_PRODUCTS = WIDE_REGISTERS and FEATURES.get("avx512vnni", False)

# Arguments: code, addresses of the block, of the unit, and of the rows of x, and the sums; returns new sums.
Body = Callable[[Code, Any, Any, list[Any], list[Any]], list[Any]]


def generate_product(layout: PanelLayout, x_bytes: int, n_rows: int, body: Body) -> Callable[..., Any]:
    """Return a generator of ``y = panel x + start``: `WIDE` numbers of y for each row of x.

    Each iteration runs ``body`` on a unit and advances ``x_bytes`` in every row.
    """
    ahead, cache = (FAR_AHEAD, FAR_CACHE) if layout.planes else (AHEAD, FIRST_CACHE)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, x_stride, panel, y, y_stride, start, n_units = arguments[-7:]
        code = Code(builder)

        def iteration(i: Any, sums: list[Any]) -> list[Any]:
            block, unit = unit_addresses(builder, layout, panel, i)
            first_x = builder.add(x, builder.mul(i, LONG(x_bytes)))
            x_here = code.row_addresses(first_x, x_stride, n_rows)
            later = builder.add(panel, builder.add(builder.mul(i, LONG(layout.mean_bytes)), LONG(ahead)))
            code.prefetch(later, layout.mean_bytes, cache)
            return body(code, block, unit, x_here, sums)

        first_sums = [code.load(start, 4 * vector * LANES, VECTOR) for vector in range(N_VECTORS)] * n_rows
        code.write_rows(loop(builder, n_units, first_sums, iteration), y, y_stride)
        return context.get_dummy_value()

    return generate


def unit_addresses(builder: Any, layout: PanelLayout, panel: Any, i: Any) -> tuple[Any, Any]:
    """Addresses of the i-th unit of a panel: of the block that it belongs to, and its own."""
    block = builder.mul(builder.udiv(i, LONG(layout.n_units)), LONG(layout.block_bytes * WIDE))
    unit = builder.mul(builder.urem(i, LONG(layout.n_units)), LONG(layout.unit_bytes * WIDE))
    block = builder.add(panel, block)
    return block, builder.add(block, builder.add(unit, LONG(2 * layout.n_halves * WIDE)))


@intrinsic(prefer_literal=True)
def row_product(typing_context: Any, kind, n_rows, x, x_stride, panel, y, y_stride, start, n_units):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Multiply a panel of a type (its place in `KINDS`) by ``n_rows`` rows of float32.

    A row's result is the same, to the last bit, however many rows are multiplied at once.
    """
    name = KINDS[kind.literal_value]
    layout, rows = LAYOUTS[name], range(n_rows.literal_value)

    def of_columns(code: Code, block: Any, unit: Any, x_here: list[Any], sums: list[Any]) -> list[Any]:
        numbers_of_x = [code.spread(code.load(own_x, 0, SINGLE), VECTOR) for own_x in x_here]
        columns = [column for *_, column in numbers(code, name, layout, block, unit)]
        return [
            code.multiply_add(columns[vector], numbers_of_x[row], sums[row * N_VECTORS + vector])
            for row in rows
            for vector in range(N_VECTORS)
        ]

    def of_units(code: Code, block: Any, unit: Any, x_here: list[Any], sums: list[Any]) -> list[Any]:
        # Two sums in turn, one for each half of the columns: an addition waits for the one before it.
        unscaled = [[[VECTOR([0.0] * LANES)] * N_VECTORS for _ in rows] for _ in range(2)]
        last, numbers_of_x = None, []
        for column, half, vector, weights in numbers(code, name, layout, block, unit):
            if column != last:
                numbers_of_x = [code.spread(code.load(own_x, 4 * column, SINGLE), VECTOR) for own_x in x_here]
                last = column
            for row in rows:
                own = unscaled[half][row]
                own[vector] = code.multiply_add(weights, numbers_of_x[row], own[vector])
        for sub in range(layout.n_sub):
            products = unscaled[sub]
            if layout.n_sub == 1:
                products = [
                    [code.builder.fadd(unscaled[0][row][i], unscaled[1][row][i]) for i in range(N_VECTORS)]
                    for row in rows
                ]
            x_sums = [sum_of_x(code, layout, own_x, sub) for own_x in x_here] if layout.has_offset else []
            sums = add_sub_block(code, layout, block, unit, sub, products, x_sums, sums)
        return sums

    body = of_columns if layout.n_columns == 1 else of_units
    generate = generate_product(layout, 4 * layout.n_columns, n_rows.literal_value, body)
    return types.void(kind, n_rows, *[types.intp] * 7), generate


def sum_of_x(code: Code, layout: PanelLayout, x: Any, sub: int) -> Any:
    """The sum of the float32 numbers of x that a sub-block meets."""
    n_columns = UNIT // layout.n_sub
    return code.sum_of(code.vectors(code.builder.add(x, LONG(4 * n_columns * sub)), n_columns))


def add_sub_block(
    code: Code,
    layout: PanelLayout,
    block: Any,
    unit: Any,
    sub: int,
    products: list[list[Any]],
    x_sums: list[Any],
    sums: list[Any],
) -> list[Any]:
    """``scale * (number . x) + offset * sum(x) + sums``.

    ``products`` are those of numbers and x, for each row and vector; ``x_sums`` is a number for each row.
    """
    scales = [scale_and_offset(code, layout, block, unit, sub, vector) for vector in range(N_VECTORS)]
    results = []
    for row, of_row in enumerate(products):
        x_sum = code.spread(x_sums[row], VECTOR) if layout.has_offset else None
        for vector, (scale, offset) in enumerate(scales):
            result = code.multiply_add(of_row[vector], scale, sums[row * N_VECTORS + vector])
            results.append(result if x_sum is None else code.multiply_add(offset, x_sum, result))
    return results


# Offsets in a unit of fixed-point numbers: upper bytes (0), lower bytes, scale, sums of the float32 numbers,
# and sums of the integers; each of all numbers, of the first half, and of the second.
FIXED_LOW, FIXED_SCALE, FIXED_SUMS, FIXED_WHOLES = UNIT, 2 * UNIT, 2 * UNIT + 4, 2 * UNIT + 16
FIXED_BYTES = FIXED_WHOLES + 12
FIXED_ONE = 127 * 256  # the largest number of a unit


@instructions(types.void(types.intp, types.intp))
def fixed_point(builder: Any, numbers: Any, unit: Any) -> None:
    """Write `UNIT` float32 as fixed-point numbers, the largest as `FIXED_ONE`.

    Each is off by at most half a step, ``max |x| / FIXED_ONE / 2``: 16 bits of a unit's largest number.
    """
    code = Code(builder)
    parts = code.vectors(numbers, UNIT)
    scale = builder.fdiv(code.largest_absolute(parts), SINGLE(FIXED_ONE))
    of_scale = builder.fdiv(SINGLE(1.0), scale)
    # Units whose numbers are all 0, or too small to divide by, become 0.
    of_scale = builder.select(builder.fcmp_ordered("<", of_scale, SINGLE(np.inf)), of_scale, SINGLE(0.0))
    integers = [code.nearest(builder.fmul(part, code.spread(of_scale, VECTOR))) for part in parts]
    for place, whole in zip(range(0, UNIT, LANES), integers, strict=True):
        upper, lower = code.two_bytes(whole)
        code.store(upper, unit, place)
        code.store(lower, unit, FIXED_LOW + place)
    code.store(scale, unit, FIXED_SCALE)
    half = len(parts) // 2
    for n, own in enumerate((slice(None), slice(half), slice(half, None))):
        code.store(code.sum_of(parts[own]), unit, FIXED_SUMS + 4 * n)
        code.store(code.sum_of_integers(integers[own]), unit, FIXED_WHOLES + 4 * n)


@intrinsic(prefer_literal=True)
def fixed_product(typing_context: Any, kind, n_rows, x, x_stride, panel, y, y_stride, start, n_units):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Multiply a panel of codes (its type's place in `KINDS`) by ``n_rows`` rows of fixed-point units."""
    layout, rows = LAYOUTS[KINDS[kind.literal_value]], range(n_rows.literal_value)
    nothing = INTEGERS([0] * LANES)

    def body(code: Code, block: Any, unit: Any, x_here: list[Any], sums: list[Any]) -> list[Any]:
        for sub in range(layout.n_sub):
            upper, lower = ([[nothing] * N_VECTORS for _ in rows] for _ in range(2))
            for group in groups_of(layout, sub):
                words = [
                    unsigned_numbers(code, layout, codes(code, layout, unit, group, vector))
                    for vector in range(N_VECTORS)
                ]
                for own_x, high, low in zip(x_here, upper, lower, strict=True):
                    for first, sums_of_row in ((0, high), (FIXED_LOW, low)):
                        numbers_of_x = code.spread(code.load(own_x, first + GROUP * group, INTEGER), INTEGERS)
                        for vector, word in enumerate(words):
                            sums_of_row[vector] = code.add_dots(sums_of_row[vector], word, numbers_of_x)
            products, x_sums, place = [], [], 0 if layout.n_sub == 1 else 4 * (1 + sub)
            for row, own_x in enumerate(x_here):
                x_scale = code.load(own_x, FIXED_SCALE, SINGLE)
                whole = code.load(own_x, FIXED_WHOLES + place, INTEGER)
                zero = code.spread(code.builder.mul(whole, INTEGER(layout.zero)), INTEGERS)
                products.append(
                    [
                        fixed_to_float(code, upper[row][vector], lower[row][vector], zero, x_scale)
                        for vector in range(N_VECTORS)
                    ]
                )
                x_sums.append(code.load(own_x, FIXED_SUMS + place, SINGLE))
            sums = add_sub_block(code, layout, block, unit, sub, products, x_sums, sums)
        return sums

    generate = generate_product(layout, FIXED_BYTES, n_rows.literal_value, body)
    return types.void(kind, n_rows, *[types.intp] * 7), generate


def groups_of(layout: PanelLayout, sub: int) -> Sequence[int]:
    """Groups of columns of a sub-block; in a whole unit, those that share a word follow one another."""
    half = GROUPS // 2
    if layout.n_sub == 2:
        return range(sub * half, (sub + 1) * half)
    return [group + first for group in range(half) for first in (0, half)]


def fixed_to_float(code: Code, upper: Any, lower: Any, zero: Any, x_scale: Any) -> Any:
    """``x_scale * (256 * upper + lower - zero)`` of integers, as float32."""
    high = code.builder.shl(upper, INTEGERS([8] * LANES))
    whole = code.builder.sub(code.builder.add(high, lower), zero)
    return code.builder.fmul(code.builder.sitofp(whole, VECTOR), code.spread(x_scale, VECTOR))


@intrinsic(prefer_literal=True)
def unpack_panel(typing_context: Any, kind, panel, columns, n_units):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Write a panel of a type (its place in `KINDS`) as float32, ``(d_in, WIDE)``."""
    name = KINDS[kind.literal_value]
    layout = LAYOUTS[name]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, panel, columns, n_units = arguments
        code = Code(builder)

        def body(i: Any, nothing: list[Any]) -> list[Any]:
            block, unit = unit_addresses(builder, layout, panel, i)
            there = builder.add(columns, builder.mul(i, LONG(4 * WIDE * layout.n_columns)))
            scales = [
                [scale_and_offset(code, layout, block, unit, sub, vector) for vector in range(N_VECTORS)]
                for sub in range(layout.n_sub)
            ]
            for column, half, vector, values in numbers(code, name, layout, block, unit):
                scale, offset = scales[half if layout.n_sub == 2 else 0][vector]
                if scale is not None:
                    values = builder.fmul(values, scale)
                if offset is not None:
                    values = builder.fadd(values, offset)
                code.store(values, there, 4 * (column * WIDE + vector * LANES))
            return nothing

        loop(builder, n_units, [], body)
        return context.get_dummy_value()

    return types.void(kind, *[types.intp] * 3), generate
