"""SIMD code of attention to keys and values in float16 (see `simd`)."""

from collections.abc import Callable
from typing import Any

from numba import types

from .gemm import LANES, LONG, WIDE_REGISTERS, loop
from .jit import instructions
from .simd import HALVES, HEAD, PARTS, QUAD, SINGLE, VECTOR, Code

# Heads that a key, once converted, is multiplied with: as many as there are registers for their sums.
HEADS_TOGETHER = 3 if WIDE_REGISTERS else 1


def cached_head(code: Code, address: Any) -> list[Any]:
    """Load `HEAD` numbers of float16 as float32."""
    return [code.builder.fpext(code.load(address, 2 * part, HALVES), VECTOR) for part in PARTS]


def make_dots(n_together: int, n_rows: int = 1) -> Callable[..., None]:
    """Return a function that adds ``query . key`` to the scores of keys, for a `cached_head` of them.

    An iteration takes ``n_together`` keys, 1 or `LANES`, for ``n_rows`` queries and rows of scores. Its
    arguments are ``query, query_stride, keys, stride, scores, scores_stride, n_iterations``.
    """

    @instructions(types.void(*[types.intp] * 7))
    def dots(builder: Any, *arguments: Any) -> None:
        query, query_stride, keys, stride, scores, scores_stride, n_iterations = arguments
        code = Code(builder)
        queries = [code.vectors(row, HEAD) for row in code.row_addresses(query, query_stride, n_rows)]
        rows = code.row_addresses(scores, scores_stride, n_rows)

        def products(key: Any) -> list[Any]:
            numbers = cached_head(code, key)
            totals = [builder.fmul(own[0], numbers[0]) for own in queries]
            for place in range(1, len(PARTS)):
                totals = [
                    code.multiply_add(own[place], numbers[place], total)
                    for own, total in zip(queries, totals, strict=True)
                ]
            return totals

        def partial_sums(key: Any, n: int) -> list[Any]:
            """For each row, the products with ``n`` keys, partly summed so that they share a vector."""
            if n == 1:
                return products(key)
            other = builder.add(key, builder.mul(stride, LONG(n // 2)))
            pairs = zip(partial_sums(key, n // 2), partial_sums(other, n // 2), strict=True)
            return [code.add_neighbours(a, b, within_quads=n <= QUAD) for a, b in pairs]

        def body(i: Any, nothing: list[Any]) -> list[Any]:
            key = builder.add(keys, builder.mul(i, builder.mul(stride, LONG(n_together))))
            kind = SINGLE if n_together == 1 else VECTOR
            for row, total in zip(rows, partial_sums(key, n_together), strict=True):
                score = builder.add(row, builder.mul(i, LONG(4 * n_together)))
                new = code.sum(total) if n_together == 1 else total
                code.store(builder.fadd(code.load(score, 0, kind), new), score, 0)
            return nothing

        loop(builder, n_iterations, [], body)

    return dots


def make_weighted_sum(n_rows: int = 1) -> Callable[..., None]:
    """Return a function that writes the sum of values times their weights, for a `cached_head` of them.

    For ``n_rows`` rows of weights and totals; its arguments are ``weights, weights_stride, values, stride,
    total, total_stride, n``, where ``n`` is the number of keys.
    """

    @instructions(types.void(*[types.intp] * 7))
    def weighted_sum(builder: Any, *arguments: Any) -> None:
        weights, weights_stride, values, stride, total, total_stride, n = arguments
        code = Code(builder)
        rows = code.row_addresses(weights, weights_stride, n_rows)

        def body(i: Any, sums: list[Any]) -> list[Any]:
            numbers = cached_head(code, builder.add(values, builder.mul(i, stride)))
            places = [builder.add(row, builder.mul(i, LONG(4))) for row in rows]
            own = [code.spread(code.load(place, 0, SINGLE), VECTOR) for place in places]
            products = [(weight, number) for weight in own for number in numbers]
            return [code.multiply_add(*product, s) for product, s in zip(products, sums, strict=True)]

        sums = loop(builder, n, [VECTOR([0.0] * LANES)] * (n_rows * len(PARTS)), body)
        for row, place in enumerate(code.row_addresses(total, total_stride, n_rows)):
            for part, own in zip(PARTS, sums[row * len(PARTS) :], strict=False):
                code.store(own, place, 4 * part)

    return weighted_sum


@instructions(types.void(*[types.intp] * 2))
def narrow(builder: Any, numbers: Any, halves: Any) -> None:
    """Write `HEAD` float32 as float16."""
    code = Code(builder)
    for part, vector in zip(PARTS, code.vectors(numbers, HEAD), strict=True):
        code.store(builder.fptrunc(vector, HALVES), halves, 2 * part)


@instructions(types.void(*[types.intp] * 2))
def widen(builder: Any, halves: Any, numbers: Any) -> None:
    """Write `HEAD` float16 as float32."""
    code = Code(builder)
    for part, vector in zip(PARTS, cached_head(code, halves), strict=True):
        code.store(vector, numbers, 4 * part)
