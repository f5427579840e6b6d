"""Code for vector registers, which numba has no type for: functions of addresses, written for LLVM.

A step of a decoder multiplies one vector by every weight of the model, so what limits it is how fast
weights come from memory: the fewer bits they are held in, the better, as long as unpacking them keeps
pace. Codes become float32 in registers, where they are multiplied with the vector's own float32; keys
and values, held as float16, do so too.

A matrix is cut into *panels* of `WIDE` rows, as in `products`. Within one, what the rows have in the same
place stands side by side: an instruction works on one column of many rows, and no sum has to be gathered
from the lanes of a register.
"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic

from engine.layers.products import FEATURES, LANES, WIDE, WIDE_REGISTERS

if not (FEATURES.get("f16c") or FEATURES.get("neon")):
    raise ImportError("this processor cannot turn 16-bit numbers into 32-bit ones")

Kind = Literal["q4", "q8", "f16", "bf16", "f32"]
BLOCK = 32  # columns that share a scale in GGUF's Q4_0, Q4_1 and Q8_0
# Where the columns of a 4-bit block lie: the nibbles of its four 32-bit words, lowest bits first.
NIBBLE_COLUMNS = np.array([[4 * word + n // 2 + 16 * (n % 2) for n in range(8)] for word in range(4)])

N_VECTORS = WIDE // LANES
BYTES, SHORT, INTEGER, LONG = ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.IntType(64)
AHEAD = 8192  # bytes by which a row product asks for its weights before it needs them
HALF, SINGLE, POINTER = ir.HalfType(), ir.FloatType(), ir.PointerType()
VECTOR, INTEGERS = ir.VectorType(SINGLE, LANES), ir.VectorType(INTEGER, LANES)
HALVES = ir.VectorType(HALF, LANES)
QUAD = 4  # numbers of 128 bits
HEAD = 64  # numbers of a key or value that are worked on at once
PARTS = range(0, HEAD, LANES)

# Whether four products of codes of 8 bits, and their sum, are one instruction.
DOT_PRODUCTS = WIDE_REGISTERS and FEATURES.get("avx512vnni", False)

# Columns that one turn of the loop goes through, and their bytes in a panel.
COLUMNS = {"q4": BLOCK, "q8": BLOCK, "f16": 1, "bf16": 1, "f32": 1}
TURN_BYTES = {"q4": 20 * WIDE, "q8": 34 * WIDE, "f16": 2 * WIDE, "bf16": 2 * WIDE, "f32": 4 * WIDE}


class Code:
    """The instructions needed here, appended to a function under construction."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def load(self, address: Any, offset: int, kind: ir.Type) -> Any:
        """Load a value of a type from an address and a number of bytes."""
        place = self.builder.inttoptr(self.builder.add(address, LONG(offset)), POINTER)
        return self.builder.load(place, typ=kind, align=1)

    def store(self, value: Any, address: Any, offset: int) -> None:
        """Store a value at an address and a number of bytes."""
        place = self.builder.inttoptr(self.builder.add(address, LONG(offset)), POINTER)
        self.builder.store(value, place, align=1)

    def prefetch(self, address: Any, n_bytes: int) -> None:
        """Ask for memory that is going to be needed."""
        function = self.function("llvm.prefetch.p0", ir.VoidType(), [POINTER, INTEGER, INTEGER, INTEGER])
        for offset in range(0, n_bytes, 64):
            place = self.builder.inttoptr(self.builder.add(address, LONG(offset)), POINTER)
            self.builder.call(function, [place, INTEGER(0), INTEGER(3), INTEGER(1)])

    def spread(self, number: Any, kind: ir.VectorType) -> Any:
        """Return a vector with the same number in all lanes."""
        lane = self.builder.insert_element(kind(ir.Undefined), number, INTEGER(0))
        return self.builder.shuffle_vector(
            lane, kind(ir.Undefined), ir.VectorType(INTEGER, LANES)([0] * LANES)
        )

    def multiply_add(self, x: Any, y: Any, z: Any) -> Any:
        """``x * y + z`` of vectors, rounded once."""
        name = f"llvm.fma.v{LANES}f32"
        return self.builder.call(self.function(name, VECTOR, [VECTOR] * 3), [x, y, z])

    def sum(self, x: Any) -> Any:
        """The sum of a vector's lanes."""
        reduce = self.function(f"llvm.vector.reduce.fadd.v{LANES}f32", SINGLE, [SINGLE, VECTOR])
        return self.builder.call(reduce, [SINGLE(0.0), x], fastmath=("reassoc",))

    def add_neighbours(self, a: Any, b: Any, within_quads: bool) -> Any:
        """Add up neighbours in two vectors, of numbers within each `QUAD`, or of whole quads: one vector.

        Quads are what a processor shuffles within at least cost.
        """
        if within_quads:
            even = [quad + place for quad in range(0, LANES, QUAD) for place in (0, 2, LANES, LANES + 2)]
            odd = [place + 1 for place in even]
        else:
            quads = range(0, 2 * LANES, 2 * QUAD)
            even = [quad + place for quad in quads for place in range(QUAD)]
            odd = [place + QUAD for place in even]
        return self.builder.fadd(*(self.builder.shuffle_vector(a, b, INTEGERS(mask)) for mask in (even, odd)))

    def head(self, address: Any) -> list[Any]:
        """Load `HEAD` numbers."""
        return [self.load(address, 4 * part, VECTOR) for part in PARTS]

    def half_head(self, address: Any) -> list[Any]:
        """Load `HEAD` float16 as float32."""
        return [self.builder.fpext(self.load(address, 2 * part, HALVES), VECTOR) for part in PARTS]

    def block(self, address: Any) -> list[Any]:
        """Load `BLOCK` numbers."""
        return [self.load(address, 4 * first, VECTOR) for first in range(0, BLOCK, LANES)]

    def sum_of(self, vectors: list[Any]) -> Any:
        """The sum of all numbers in some vectors."""
        total = vectors[0]
        for x in vectors[1:]:
            total = self.builder.fadd(total, x)
        return self.sum(total)

    def largest_size(self, vectors: list[Any]) -> Any:
        """The largest number of some vectors, whatever its sign: without it, bits compare as numbers do."""
        without_sign = INTEGERS([0x7FFFFFFF] * LANES)
        sizes = [self.builder.and_(self.builder.bitcast(x, INTEGERS), without_sign) for x in vectors]
        largest = sizes[0]
        for size in sizes[1:]:
            largest = self.builder.select(self.builder.icmp_signed(">", size, largest), size, largest)
        reduce = self.function(f"llvm.vector.reduce.smax.v{LANES}i32", INTEGER, [INTEGERS])
        return self.builder.bitcast(self.builder.call(reduce, [largest]), SINGLE)

    def two_bytes(self, x: Any) -> tuple[Any, Any]:
        """The nearest integers as ``256 * upper + lower``, both signed bytes."""
        floor = self.function(f"llvm.floor.v{LANES}f32", VECTOR, [VECTOR])
        nearest = self.builder.call(floor, [self.builder.fadd(x, VECTOR([0.5] * LANES))])
        whole, byte = self.builder.fptosi(nearest, INTEGERS), ir.VectorType(BYTES, LANES)
        carry = self.builder.add(whole, INTEGERS([128] * LANES))
        upper = self.builder.ashr(carry, INTEGERS([8] * LANES))
        return self.builder.trunc(upper, byte), self.builder.trunc(whole, byte)

    def function(self, name: str, result: ir.Type, arguments: list[ir.Type]) -> Any:
        """Declare one of LLVM's own functions."""
        return get_or_insert_function(self.builder.module, ir.FunctionType(result, arguments), name)

    def low_nibbles(self, words: Any) -> Any:
        """The lowest 4 bits of each word as float32."""
        if not WIDE_REGISTERS:
            codes = self.builder.and_(words, INTEGERS([15] * LANES))
            return self.builder.sitofp(codes, VECTOR)
        # A look-up among 16 numbers uses the lowest 4 bits of each index, and nothing else of it.
        look_up = self.function("llvm.x86.avx512.permvar.sf.512", VECTOR, [VECTOR, INTEGERS])
        return self.builder.call(look_up, [VECTOR([float(code) for code in range(16)]), words])

    def add_dots(self, sums: Any, codes: Any, numbers: Any) -> Any:
        """Add to each lane the products of its four unsigned codes of 8 bits and four signed numbers."""
        add = self.function("llvm.x86.avx512.vpdpbusd.512", INTEGERS, [INTEGERS] * 3)
        return self.builder.call(add, [sums, codes, numbers])

    def halves(self, words: Any) -> tuple[Any, Any]:
        """The two float16 in each 32-bit word as float32: the lower and the upper."""
        shorts = ir.VectorType(SHORT, LANES)
        upper = self.builder.lshr(words, INTEGERS([16] * LANES))
        lower, upper = (
            self.builder.fpext(
                self.builder.bitcast(self.builder.trunc(part, shorts), ir.VectorType(HALF, LANES)), VECTOR
            )
            for part in (words, upper)
        )
        return lower, upper

    def places(self, address: Any, stride: Any, n_rows: int) -> list[Any]:
        """Return where some rows begin that are ``stride`` bytes apart."""
        found = [address]
        for _ in range(n_rows - 1):
            found.append(self.builder.add(found[-1], stride))
        return found

    def starts(self, start: Any, n_rows: int) -> list[Any]:
        """Return the `WIDE` numbers that sums begin with, once for each row."""
        return [self.load(start, 4 * vector * LANES, VECTOR) for vector in range(N_VECTORS)] * n_rows

    def write_rows(self, totals: list[Any], y: Any, stride: Any) -> None:
        """Store `WIDE` numbers for each row."""
        for row, place in enumerate(self.places(y, stride, len(totals) // N_VECTORS)):
            for vector in range(N_VECTORS):
                self.store(totals[row * N_VECTORS + vector], place, 4 * vector * LANES)

    def column(self, kind: Kind, panel: Any, column: int, vector: int) -> Any:
        """Unscaled numbers of ``q8`` or of a floating-point kind: one column, `LANES` rows."""
        first = column * WIDE + vector * LANES
        if kind == "q8":
            codes = self.load(panel, 2 * WIDE + first, ir.VectorType(BYTES, LANES))
            return self.builder.sitofp(self.builder.sext(codes, INTEGERS), VECTOR)
        if kind == "f16":
            return self.builder.fpext(self.load(panel, 2 * first, ir.VectorType(HALF, LANES)), VECTOR)
        if kind == "bf16":
            bits = self.builder.zext(self.load(panel, 2 * first, ir.VectorType(SHORT, LANES)), INTEGERS)
            return self.builder.bitcast(self.builder.shl(bits, INTEGERS([16] * LANES)), VECTOR)
        return self.load(panel, 4 * first, VECTOR)

    def codes(self, kind: Kind, panel: Any) -> Any:
        """Yield (column, vector, unscaled numbers) of all columns of a turn."""
        if kind != "q4":
            for column in range(COLUMNS[kind]):
                for vector in range(N_VECTORS):
                    yield column, vector, self.column(kind, panel, column, vector)
            return
        for word in range(4):
            words = [
                self.load(panel, 4 * ((1 + word) * WIDE + vector * LANES), INTEGERS)
                for vector in range(N_VECTORS)
            ]
            for nibble, column in enumerate(NIBBLE_COLUMNS[word]):
                shift = INTEGERS([4 * nibble] * LANES)
                for vector in range(N_VECTORS):
                    yield int(column), vector, self.low_nibbles(self.builder.lshr(words[vector], shift))

    def scales(self, kind: Kind, panel: Any, vector: int) -> tuple[Any, Any]:
        """Scale and offset of `LANES` rows for a turn, None where there is none."""
        if kind == "q4":
            return self.halves(self.load(panel, 4 * vector * LANES, INTEGERS))
        if kind == "q8":
            scale = self.load(panel, 2 * vector * LANES, ir.VectorType(HALF, LANES))
            return self.builder.fpext(scale, VECTOR), None
        return None, None


def loop(
    builder: Any, n_turns: Any, start: list[Any], body: Callable[[Any, list[Any]], list[Any]]
) -> list[Any]:
    """Go ``n_turns`` (at least one) times through a body that turns values into the next ones."""
    before = builder.block
    turn, after = builder.append_basic_block("turn"), builder.append_basic_block("after")
    builder.branch(turn)
    builder.position_at_end(turn)
    i = builder.phi(LONG)
    values = [builder.phi(value.type) for value in start]
    results = body(i, values)
    next_i = builder.add(i, LONG(1))
    builder.cbranch(builder.icmp_signed("<", next_i, n_turns), turn, after)
    i.add_incoming(LONG(0), before)
    i.add_incoming(next_i, turn)
    for value, first, result in zip(values, start, results, strict=True):
        value.add_incoming(first, before)
        value.add_incoming(result, turn)
    builder.position_at_end(after)
    return results


@intrinsic
def prefetch(typing_context: Any, address):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Ask for the `AHEAD` bytes at an address, which are going to be needed."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        Code(builder).prefetch(arguments[0], AHEAD)
        return context.get_dummy_value()

    return types.void(types.intp), generate


TOGETHER = 3  # rows that some products take at once: weights are unpacked once for all of them


def make_row_product(kind: Kind, n_rows: int = 1) -> Callable[..., None]:
    """Return a function of addresses, ``y = panel x + start``: `WIDE` numbers of y for some rows of x each.

    Its arguments are ``x, x_stride, panel, y, y_stride, start, n_turns``. A row's numbers are the same, to
    the last bit, however many are taken at once.
    """
    rows = range(n_rows)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, x_stride, panel, y, y_stride, start, n_turns = arguments
        code = Code(builder)

        def body(i: Any, sums: list[Any]) -> list[Any]:
            here = builder.add(panel, builder.mul(i, LONG(TURN_BYTES[kind])))
            first_x = builder.add(x, builder.mul(i, LONG(4 * COLUMNS[kind])))
            x_here = code.places(first_x, x_stride, n_rows)
            code.prefetch(builder.add(here, LONG(AHEAD)), TURN_BYTES[kind])
            if COLUMNS[kind] == 1:
                numbers = [code.spread(code.load(own_x, 0, SINGLE), VECTOR) for own_x in x_here]
                columns = [code.column(kind, here, 0, vector) for vector in range(N_VECTORS)]
                return [
                    code.multiply_add(columns[vector], numbers[row], sums[row * N_VECTORS + vector])
                    for row in rows
                    for vector in range(N_VECTORS)
                ]
            # Every other column has sums of its own: a sum has to wait for the one before it.
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
                    total = builder.fadd(unscaled[0][row][vector], unscaled[1][row][vector])
                    result = code.multiply_add(total, scale, sums[row * N_VECTORS + vector])
                    results.append(result if offset is None else code.multiply_add(offset, sum_of_x, result))
            return results

        code.write_rows(loop(builder, n_turns, code.starts(start, n_rows), body), y, y_stride)
        return context.get_dummy_value()

    @intrinsic
    def row_product(typing_context: Any, x, x_stride, panel, y, y_stride, start, n_turns):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return types.void(*[types.intp] * 7), generate

    return row_product


# A block of fixed-point numbers, as `fixed_point_product` reads them: the upper and the lower byte of each,
# what 1 stands for, and the sum of the block.
FIXED_LOW, FIXED_SCALE, FIXED_SUM, FIXED_BYTES = BLOCK, 2 * BLOCK, 2 * BLOCK + 4, 2 * BLOCK + 8


@intrinsic
def fixed_point(typing_context: Any, numbers, block):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Write `BLOCK` float32 as fixed-point numbers, the largest as 127 * 256."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        numbers, block = arguments
        code = Code(builder)
        parts = code.block(numbers)
        scale = builder.fdiv(code.largest_size(parts), SINGLE(127 * 256))
        of_scale = builder.fdiv(SINGLE(1.0), scale)
        # Of numbers that are all 0, or too small to divide by, nothing is left.
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
    """Return what `make_row_product` does for a ``q4`` panel, with x in fixed-point blocks."""
    rows = range(n_rows)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, x_stride, panel, y, y_stride, start, n_turns = arguments
        code = Code(builder)
        low_nibbles, nothing = INTEGERS([0x0F0F0F0F] * LANES), INTEGERS([0] * LANES)

        def body(i: Any, sums: list[Any]) -> list[Any]:
            here = builder.add(panel, builder.mul(i, LONG(TURN_BYTES["q4"])))
            x_here = code.places(builder.add(x, builder.mul(i, LONG(FIXED_BYTES))), x_stride, n_rows)
            code.prefetch(builder.add(here, LONG(AHEAD)), TURN_BYTES["q4"])
            upper, lower = ([[nothing] * N_VECTORS for _ in rows] for _ in range(2))
            for word in range(4):
                # The low nibbles of a word are four columns in turn, the high ones those 16 further on.
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
                    shifted = builder.lshr(words, INTEGERS([4] * LANES))
                    for half, nibbles in enumerate((words, shifted)):
                        codes = builder.and_(nibbles, low_nibbles)
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
                    high = builder.shl(upper[row][vector], INTEGERS([8] * LANES))
                    whole = builder.add(high, lower[row][vector])
                    products = builder.fmul(builder.sitofp(whole, VECTOR), x_scale)
                    result = code.multiply_add(products, scale, sums[row * N_VECTORS + vector])
                    results.append(code.multiply_add(offset, x_sum, result))
            return results

        code.write_rows(loop(builder, n_turns, code.starts(start, n_rows), body), y, y_stride)
        return context.get_dummy_value()

    @intrinsic
    def fixed_point_product(typing_context: Any, x, x_stride, panel, y, y_stride, start, n_turns):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return types.void(*[types.intp] * 7), generate

    return fixed_point_product


def make_unpack(kind: Kind) -> Callable[..., None]:
    """Return a function of addresses that writes a panel as float32, ``(d_in, WIDE)``.

    Its arguments are ``panel, columns, n_turns``.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        panel, columns, n_turns = arguments
        code = Code(builder)

        def body(i: Any, nothing: list[Any]) -> list[Any]:
            here = builder.add(panel, builder.mul(i, LONG(TURN_BYTES[kind])))
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

        loop(builder, n_turns, [], body)
        return context.get_dummy_value()

    @intrinsic
    def unpack(typing_context: Any, panel, columns, n_turns):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return types.void(*[types.intp] * 3), generate

    return unpack


# Heads whose queries meet a key once it is unpacked, where there are registers for their sums.
HEADS_TOGETHER = 3 if WIDE_REGISTERS else 1


def make_dots(n_together: int, n_rows: int = 1) -> Callable[..., None]:
    """Return a function that adds ``query . key`` of `HEAD` numbers to the scores of float16 keys.

    Keys are taken one by one, or `LANES` of them together, for some rows of queries and scores. Its
    arguments are ``query, query_stride, keys, stride, scores, scores_stride, n_turns``.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        query, query_stride, keys, stride, scores, scores_stride, n_turns = arguments
        code = Code(builder)
        queries = [code.head(row) for row in code.places(query, query_stride, n_rows)]
        rows = code.places(scores, scores_stride, n_rows)

        def products(key: Any) -> list[Any]:
            halves = code.half_head(key)
            totals = [builder.fmul(own[0], halves[0]) for own in queries]
            for place in range(1, len(PARTS)):
                totals = [
                    code.multiply_add(own[place], halves[place], total)
                    for own, total in zip(queries, totals, strict=True)
                ]
            return totals

        def gathered(key: Any, n: int) -> list[Any]:
            """Of each row the products with ``n`` keys, added up so far that they share a vector."""
            if n == 1:
                return products(key)
            other = builder.add(key, builder.mul(stride, LONG(n // 2)))
            pairs = zip(gathered(key, n // 2), gathered(other, n // 2), strict=True)
            return [code.add_neighbours(a, b, within_quads=n <= QUAD) for a, b in pairs]

        def body(i: Any, nothing: list[Any]) -> list[Any]:
            key = builder.add(keys, builder.mul(i, builder.mul(stride, LONG(n_together))))
            kind = SINGLE if n_together == 1 else VECTOR
            for row, total in zip(rows, gathered(key, n_together), strict=True):
                score = builder.add(row, builder.mul(i, LONG(4 * n_together)))
                new = code.sum(total) if n_together == 1 else total
                code.store(builder.fadd(code.load(score, 0, kind), new), score, 0)
            return nothing

        loop(builder, n_turns, [], body)
        return context.get_dummy_value()

    @intrinsic
    def dots(typing_context: Any, query, query_stride, keys, stride, scores, scores_stride, n_turns):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return types.void(*[types.intp] * 7), generate

    return dots


def make_weighted_sum(n_rows: int = 1) -> Callable[..., None]:
    """Return a function that writes the sum of `HEAD` numbers of each float16 value times its weight.

    For some rows of weights and totals; its arguments are ``weights, weights_stride, values, stride,
    total, total_stride, n``, the number of keys.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        weights, weights_stride, values, stride, total, total_stride, n = arguments
        code = Code(builder)
        rows = code.places(weights, weights_stride, n_rows)

        def body(i: Any, sums: list[Any]) -> list[Any]:
            halves = code.half_head(builder.add(values, builder.mul(i, stride)))
            places = [builder.add(row, builder.mul(i, LONG(4))) for row in rows]
            own = [code.spread(code.load(place, 0, SINGLE), VECTOR) for place in places]
            products = [(weight, half) for weight in own for half in halves]
            return [code.multiply_add(*product, s) for product, s in zip(products, sums, strict=True)]

        sums = loop(builder, n, [VECTOR([0.0] * LANES)] * (n_rows * len(PARTS)), body)
        for row, place in enumerate(code.places(total, total_stride, n_rows)):
            for part, own in zip(PARTS, sums[row * len(PARTS) :], strict=False):
                code.store(own, place, 4 * part)
        return context.get_dummy_value()

    @intrinsic
    def weighted_sum(typing_context: Any, weights, weights_stride, values, stride, total, total_stride, n):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return types.void(*[types.intp] * 7), generate

    return weighted_sum


@intrinsic
def narrow(typing_context: Any, numbers, halves):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Write `HEAD` float32 as float16."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        code = Code(builder)
        for part, numbers in zip(PARTS, code.head(arguments[0]), strict=True):
            code.store(builder.fptrunc(numbers, HALVES), arguments[1], 2 * part)
        return context.get_dummy_value()

    return types.void(*[types.intp] * 2), generate


@intrinsic
def widen(typing_context: Any, halves, numbers):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Write `HEAD` float16 as float32."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        code = Code(builder)
        for part, numbers in zip(PARTS, code.half_head(arguments[0]), strict=True):
            code.store(numbers, arguments[1], 4 * part)
        return context.get_dummy_value()

    return types.void(*[types.intp] * 2), generate
