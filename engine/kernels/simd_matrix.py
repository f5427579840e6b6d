"""SIMD code of products with packed matrices (see `simd`)."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from engine.kernels.gemm import FEATURES, LANES, WIDE, WIDE_REGISTERS
from engine.kernels.simd import (
    AHEAD,
    BLOCK,
    COLUMNS,
    INTEGER,
    INTEGERS,
    ITERATION_BYTES,
    LONG,
    N_VECTORS,
    SINGLE,
    VECTOR,
    Code,
    Kind,
    loop,
)

# Whether the processor has an instruction for the dot product of four 8-bit codes.
DOT_PRODUCTS = WIDE_REGISTERS and FEATURES.get("avx512vnni", False)
TOGETHER = 3  # rows multiplied at once by some products: weights are unpacked once for all of them

# Arguments: code, address of the weights, addresses in the rows of x, and the sums; returns the new sums.
Body = Callable[[Code, Any, list[Any], list[Any]], list[Any]]


def make_product(kind: Kind, x_bytes: int, n_rows: int, body: Body) -> Callable[..., None]:
    """Return a function of addresses, ``y = panel x + start``: `WIDE` numbers of y for each row of x.

    Its arguments are ``x, x_stride, panel, y, y_stride, start, n_iterations``. Each iteration runs
    ``body`` and advances ``x_bytes`` in every row.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, x_stride, panel, y, y_stride, start, n_iterations = arguments
        code = Code(builder)

        def iteration(i: Any, sums: list[Any]) -> list[Any]:
            here = builder.add(panel, builder.mul(i, LONG(ITERATION_BYTES[kind])))
            first_x = builder.add(x, builder.mul(i, LONG(x_bytes)))
            x_here = code.row_addresses(first_x, x_stride, n_rows)
            code.prefetch(builder.add(here, LONG(AHEAD)), ITERATION_BYTES[kind])
            return body(code, here, x_here, sums)

        code.write_rows(loop(builder, n_iterations, code.initial_sums(start, n_rows), iteration), y, y_stride)
        return context.get_dummy_value()

    @intrinsic
    def product(typing_context: Any, x, x_stride, panel, y, y_stride, start, n_iterations):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return types.void(*[types.intp] * 7), generate

    return product


def make_row_product(kind: Kind, n_rows: int = 1) -> Callable[..., None]:
    """Return a `make_product` of a panel and float32 x.

    A row's result is the same, to the last bit, however many rows are multiplied at once.
    """
    rows = range(n_rows)

    def body(code: Code, here: Any, x_here: list[Any], sums: list[Any]) -> list[Any]:
        if COLUMNS[kind] == 1:
            numbers = [code.spread(code.load(own_x, 0, SINGLE), VECTOR) for own_x in x_here]
            columns = [code.column(kind, here, 0, vector) for vector in range(N_VECTORS)]
            return [
                code.multiply_add(columns[vector], numbers[row], sums[row * N_VECTORS + vector])
                for row in rows
                for vector in range(N_VECTORS)
            ]
        # Two sums in turn, one for every other column: an addition waits for the one before it.
        unscaled = [[[VECTOR([0.0] * LANES)] * N_VECTORS for _ in rows] for _ in range(2)]
        last, numbers, chain = None, [], 0
        for column, vector, codes in code.codes(kind, here):
            if column != last:
                numbers = [code.spread(code.load(own_x, 4 * column, SINGLE), VECTOR) for own_x in x_here]
                last, chain = column, 1 - chain
            for row in rows:
                own = unscaled[chain][row]
                own[vector] = code.multiply_add(codes, numbers[row], own[vector])
        scales = [code.scales(kind, here, vector) for vector in range(N_VECTORS)]
        results = []
        for row in rows:
            sum_of_x = code.spread(code.sum_of(code.block(x_here[row])), VECTOR) if kind == "q4" else None
            for vector, (scale, offset) in enumerate(scales):
                total = code.builder.fadd(unscaled[0][row][vector], unscaled[1][row][vector])
                result = code.multiply_add(total, scale, sums[row * N_VECTORS + vector])
                results.append(result if offset is None else code.multiply_add(offset, sum_of_x, result))
        return results

    return make_product(kind, 4 * COLUMNS[kind], n_rows, body)


# Offsets in a block of fixed-point numbers: upper bytes (0), lower bytes, scale, and sum of the block.
FIXED_LOW, FIXED_SCALE, FIXED_SUM, FIXED_BYTES = BLOCK, 2 * BLOCK, 2 * BLOCK + 4, 2 * BLOCK + 8


@intrinsic
def fixed_point(typing_context: Any, numbers, block):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Write `BLOCK` float32 as fixed-point numbers, the largest as 127 * 256."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        numbers, block = arguments
        code = Code(builder)
        parts = code.block(numbers)
        scale = builder.fdiv(code.largest_absolute(parts), SINGLE(127 * 256))
        of_scale = builder.fdiv(SINGLE(1.0), scale)
        # Blocks whose numbers are all 0, or too small to divide by, become 0.
        of_scale = builder.select(builder.fcmp_ordered("<", of_scale, SINGLE(np.inf)), of_scale, SINGLE(0.0))
        for place, part in zip(range(0, BLOCK, LANES), parts, strict=True):
            upper, lower = code.two_bytes(builder.fmul(part, code.spread(of_scale, VECTOR)))
            code.store(upper, block, place)
            code.store(lower, block, FIXED_LOW + place)
        code.store(scale, block, FIXED_SCALE)
        code.store(code.sum_of(parts), block, FIXED_SUM)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp), generate


def make_fixed_point_product(n_rows: int = 1) -> Callable[..., None]:
    """Return a `make_product` of a ``q4`` panel and x in fixed-point blocks."""
    rows = range(n_rows)
    low_nibbles, nothing = INTEGERS([0x0F0F0F0F] * LANES), INTEGERS([0] * LANES)

    def body(code: Code, here: Any, x_here: list[Any], sums: list[Any]) -> list[Any]:
        upper, lower = ([[nothing] * N_VECTORS for _ in rows] for _ in range(2))
        for word in range(4):
            # The low nibbles of a word are four consecutive columns, the high ones the columns 16 later.
            columns = (4 * word, 4 * word + BLOCK // 2)
            high_bytes, low_bytes = (
                [
                    [code.spread(code.load(own_x, first + column, INTEGER), INTEGERS) for own_x in x_here]
                    for column in columns
                ]
                for first in (0, FIXED_LOW)
            )
            for vector in range(N_VECTORS):
                words = code.load(here, 4 * ((1 + word) * WIDE + vector * LANES), INTEGERS)
                shifted = code.builder.lshr(words, INTEGERS([4] * LANES))
                for half, nibbles in enumerate((words, shifted)):
                    codes = code.builder.and_(nibbles, low_nibbles)
                    for row in rows:
                        high, low = high_bytes[half][row], low_bytes[half][row]
                        upper[row][vector] = code.add_dots(upper[row][vector], codes, high)
                        lower[row][vector] = code.add_dots(lower[row][vector], codes, low)
        scales = [code.scales("q4", here, vector) for vector in range(N_VECTORS)]
        results = []
        for row, own_x in enumerate(x_here):
            x_scale, x_sum = (
                code.spread(code.load(own_x, place, SINGLE), VECTOR) for place in (FIXED_SCALE, FIXED_SUM)
            )
            for vector, (scale, offset) in enumerate(scales):
                high = code.builder.shl(upper[row][vector], INTEGERS([8] * LANES))
                whole = code.builder.add(high, lower[row][vector])
                products = code.builder.fmul(code.builder.sitofp(whole, VECTOR), x_scale)
                result = code.multiply_add(products, scale, sums[row * N_VECTORS + vector])
                results.append(code.multiply_add(offset, x_sum, result))
        return results

    return make_product("q4", FIXED_BYTES, n_rows, body)


def make_unpack(kind: Kind) -> Callable[..., None]:
    """Return a function of addresses that writes a panel as float32, ``(d_in, WIDE)``.

    Its arguments are ``panel, columns, n_iterations``.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        panel, columns, n_iterations = arguments
        code = Code(builder)

        def body(i: Any, nothing: list[Any]) -> list[Any]:
            here = builder.add(panel, builder.mul(i, LONG(ITERATION_BYTES[kind])))
            there = builder.add(columns, builder.mul(i, LONG(4 * WIDE * COLUMNS[kind])))
            scales = [code.scales(kind, here, vector) for vector in range(N_VECTORS)]
            for column, vector, values in code.codes(kind, here):
                scale, offset = scales[vector]
                if scale is not None:
                    values = builder.fmul(values, scale)
                if offset is not None:
                    values = builder.fadd(values, offset)
                code.store(values, there, 4 * (column * WIDE + vector * LANES))
            return nothing

        loop(builder, n_iterations, [], body)
        return context.get_dummy_value()

    @intrinsic
    def unpack(typing_context: Any, panel, columns, n_iterations):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return types.void(*[types.intp] * 3), generate

    return unpack
