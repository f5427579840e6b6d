"""SIMD code, written for LLVM since numba has no vector types: functions of addresses.

Decoding a token multiplies one vector by every weight of the model, so the speed is limited by memory
bandwidth: quantized weights are faster, as long as unpacking them keeps pace. Quantized weights, and keys
and values in float16, become float32 in registers.

A matrix is stored in *panels* of `WIDE` rows, as in `gemm`. In a panel, numbers of the same column lie side
by side: an instruction works on one column of many rows, and no sum is reduced over a register's lanes.
"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic

from engine.kernels.gemm import FEATURES, LANES, WIDE, WIDE_REGISTERS

if not (FEATURES.get("f16c") or FEATURES.get("neon")):
    raise ImportError("this processor has no instruction from float16 to float32")

Kind = Literal["q4", "q8", "f16", "bf16", "f32"]
BLOCK = 32  # columns that share a scale in GGUF's Q4_0, Q4_1 and Q8_0
# Column of each nibble in the four 32-bit words of a 4-bit block, lowest bits first.
NIBBLE_COLUMNS = np.array([[4 * word + n // 2 + 16 * (n % 2) for n in range(8)] for word in range(4)])

N_VECTORS = WIDE // LANES
BYTES, SHORT, INTEGER, LONG = ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.IntType(64)
AHEAD = 8192  # bytes by which a row product prefetches its weights
HALF, SINGLE, POINTER = ir.HalfType(), ir.FloatType(), ir.PointerType()
VECTOR, INTEGERS = ir.VectorType(SINGLE, LANES), ir.VectorType(INTEGER, LANES)
HALVES = ir.VectorType(HALF, LANES)
QUAD = 4  # float32 numbers in 128 bits
HEAD = 64  # numbers of a key or value processed at once
PARTS = range(0, HEAD, LANES)

# Columns that a loop iteration processes, and their bytes in a panel.
COLUMNS = {"q4": BLOCK, "q8": BLOCK, "f16": 1, "bf16": 1, "f32": 1}
ITERATION_BYTES = {"q4": 20 * WIDE, "q8": 34 * WIDE, "f16": 2 * WIDE, "bf16": 2 * WIDE, "f32": 4 * WIDE}


class Code:
    """Builder of the instructions needed here."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def load(self, address: Any, offset: int, kind: ir.Type) -> Any:
        """Load a value of a type from an address plus an offset in bytes."""
        place = self.builder.inttoptr(self.builder.add(address, LONG(offset)), POINTER)
        return self.builder.load(place, typ=kind, align=1)

    def store(self, value: Any, address: Any, offset: int) -> None:
        """Store a value at an address plus an offset in bytes."""
        place = self.builder.inttoptr(self.builder.add(address, LONG(offset)), POINTER)
        self.builder.store(value, place, align=1)

    def prefetch(self, address: Any, n_bytes: int) -> None:
        """Prefetch memory."""
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
        """Add neighbouring numbers within each `QUAD`, or neighbouring quads, of two vectors: one vector.

        Shuffles within a quad are the cheapest.
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
        """The sum of all numbers in several vectors."""
        total = vectors[0]
        for x in vectors[1:]:
            total = self.builder.fadd(total, x)
        return self.sum(total)

    def largest_absolute(self, vectors: list[Any]) -> Any:
        """The largest absolute value in several vectors: without the sign, bits compare as numbers do."""
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
        """Declare an LLVM intrinsic."""
        return get_or_insert_function(self.builder.module, ir.FunctionType(result, arguments), name)

    def low_nibbles(self, words: Any) -> Any:
        """The lowest 4 bits of each word as float32."""
        if not WIDE_REGISTERS:
            codes = self.builder.and_(words, INTEGERS([15] * LANES))
            return self.builder.sitofp(codes, VECTOR)
        # A look-up in 16 numbers ignores all but the lowest 4 bits of each index.
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

    def row_addresses(self, address: Any, stride: Any, n_rows: int) -> list[Any]:
        """Addresses of rows that are ``stride`` bytes apart."""
        addresses = [address]
        for _ in range(n_rows - 1):
            addresses.append(self.builder.add(addresses[-1], stride))
        return addresses

    def initial_sums(self, start: Any, n_rows: int) -> list[Any]:
        """Load the `WIDE` initial values of the sums, the same for each row."""
        return [self.load(start, 4 * vector * LANES, VECTOR) for vector in range(N_VECTORS)] * n_rows

    def write_rows(self, totals: list[Any], y: Any, stride: Any) -> None:
        """Store `WIDE` numbers for each row."""
        for row, place in enumerate(self.row_addresses(y, stride, len(totals) // N_VECTORS)):
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
        """Yield (column, vector, unscaled numbers) of all columns of an iteration."""
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
        """Scale and offset of `LANES` rows for an iteration, or None."""
        if kind == "q4":
            return self.halves(self.load(panel, 4 * vector * LANES, INTEGERS))
        if kind == "q8":
            scale = self.load(panel, 2 * vector * LANES, ir.VectorType(HALF, LANES))
            return self.builder.fpext(scale, VECTOR), None
        return None, None


def loop(
    builder: Any, n_iterations: Any, start: list[Any], body: Callable[[Any, list[Any]], list[Any]]
) -> list[Any]:
    """Loop ``n_iterations`` times, at least once; the body maps loop variables to their next values."""
    before = builder.block
    body_block, after = builder.append_basic_block("body"), builder.append_basic_block("after")
    builder.branch(body_block)
    builder.position_at_end(body_block)
    i = builder.phi(LONG)
    values = [builder.phi(value.type) for value in start]
    results = body(i, values)
    next_i = builder.add(i, LONG(1))
    builder.cbranch(builder.icmp_signed("<", next_i, n_iterations), body_block, after)
    i.add_incoming(LONG(0), before)
    i.add_incoming(next_i, body_block)
    for value, first, result in zip(values, start, results, strict=True):
        value.add_incoming(first, before)
        value.add_incoming(result, body_block)
    builder.position_at_end(after)
    return results


@intrinsic
def prefetch(typing_context: Any, address):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Prefetch the `AHEAD` bytes at an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        Code(builder).prefetch(arguments[0], AHEAD)
        return context.get_dummy_value()

    return types.void(types.intp), generate
