"""SIMD code, written for LLVM since numba has no vector types: functions of addresses.

Decoding a token multiplies one vector by every weight of the model, so the speed is limited by memory
bandwidth: quantized weights are faster, as long as unpacking them keeps pace. Quantized weights become
float32 or integers of 8 bits in registers, and keys and values in float16 become float32.

Matrices are stored in *panels* (see `panel_layout`).
"""

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from llvmlite.binding import get_host_cpu_name
from numba import types
from numba.core.cgutils import get_or_insert_function

from .gemm import FEATURES, LANES, LONG, POINTER, WIDE, WIDE_REGISTERS
from .jit import instructions

if not (FEATURES.get("f16c") or FEATURES.get("neon")):
    raise ImportError("this processor has no instruction from float16 to float32")

N_VECTORS = WIDE // LANES
BYTES, SHORT, INTEGER = ir.IntType(8), ir.IntType(16), ir.IntType(32)
# By how many bytes a row product prefetches its weights, and into which cache.
AHEAD, FIRST_CACHE, SECOND_CACHE = 8_192, 1, 2
# Zen 4 waits for prefetches of quantised weights into its first cache. Into the second, and from further
# ahead, it reads Q4_1 1.2 times as fast from memory, Q5_1 and Q6_K over twice.
FAR_AHEAD, FAR_CACHE = (32_768, SECOND_CACHE) if get_host_cpu_name() == "znver4" else (AHEAD, FIRST_CACHE)
SINGLE = ir.FloatType()
VECTOR, INTEGERS = ir.VectorType(SINGLE, LANES), ir.VectorType(INTEGER, LANES)
HALVES = ir.VectorType(ir.HalfType(), LANES)
QUAD = 4  # float32 numbers in 128 bits
HEAD = 64  # numbers of a key or value processed at once
PARTS = range(0, HEAD, LANES)


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

    def prefetch(self, address: Any, n_bytes: int, cache: int = FIRST_CACHE) -> None:
        """Prefetch memory into the first or second cache."""
        function = self.function("llvm.prefetch.p0", ir.VoidType(), [POINTER, INTEGER, INTEGER, INTEGER])
        for offset in range(0, n_bytes, 64):
            place = self.builder.inttoptr(self.builder.add(address, LONG(offset)), POINTER)
            self.builder.call(function, [place, INTEGER(0), INTEGER(4 - cache), INTEGER(1)])

    def spread(self, number: Any, kind: ir.VectorType) -> Any:
        """Return a vector with the same number in all lanes."""
        lane = self.builder.insert_element(kind(ir.Undefined), number, INTEGER(0))
        return self.builder.shuffle_vector(lane, kind(ir.Undefined), INTEGERS([0] * LANES))

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

    def vectors(self, address: Any, n: int) -> list[Any]:
        """Load ``n`` numbers."""
        return [self.load(address, 4 * first, VECTOR) for first in range(0, n, LANES)]

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

    def nearest(self, x: Any) -> Any:
        """The nearest integers."""
        floor = self.function(f"llvm.floor.v{LANES}f32", VECTOR, [VECTOR])
        below = self.builder.call(floor, [self.builder.fadd(x, VECTOR([0.5] * LANES))])
        return self.builder.fptosi(below, INTEGERS)

    def two_bytes(self, whole: Any) -> tuple[Any, Any]:
        """Integers as ``256 * upper + lower``, both signed bytes."""
        byte = ir.VectorType(BYTES, LANES)
        carry = self.builder.add(whole, INTEGERS([128] * LANES))
        upper = self.builder.ashr(carry, INTEGERS([8] * LANES))
        return self.builder.trunc(upper, byte), self.builder.trunc(whole, byte)

    def sum_of_integers(self, vectors: list[Any]) -> Any:
        """The sum of all integers in several vectors."""
        total = vectors[0]
        for x in vectors[1:]:
            total = self.builder.add(total, x)
        reduce = self.function(f"llvm.vector.reduce.add.v{LANES}i32", INTEGER, [INTEGERS])
        return self.builder.call(reduce, [total])

    def function(self, name: str, result: ir.Type, arguments: list[ir.Type]) -> Any:
        """Declare an LLVM intrinsic."""
        return get_or_insert_function(self.builder.module, ir.FunctionType(result, arguments), name)

    def look_up(self, numbers: Sequence[int], indices: Any) -> Any:
        """Those of 16 numbers that the lowest 4 bits of each index name, as float32; for wide registers."""
        permute = self.function("llvm.x86.avx512.permvar.sf.512", VECTOR, [VECTOR, INTEGERS])
        return self.builder.call(permute, [VECTOR([float(number) for number in numbers]), indices])

    def look_up_bytes(self, numbers: Sequence[int], words: Any) -> Any:
        """Those of 16 bytes that each byte of a word names, which is less than 16."""
        register, indices = ir.VectorType(BYTES, 4 * LANES), self.as_bytes(words)
        if WIDE_REGISTERS or FEATURES.get("avx2"):  # in each 128 bits, with a table of their own
            name = "llvm.x86.avx512.pshuf.b.512" if WIDE_REGISTERS else "llvm.x86.avx2.pshuf.b"
            permute = self.function(name, register, [register] * 2)
            table = register([*numbers] * (LANES // QUAD))
            return self.builder.bitcast(self.builder.call(permute, [table, indices]), INTEGERS)
        found, table = register(ir.Undefined), ir.VectorType(BYTES, 16)(numbers)
        for place in map(INTEGER, range(4 * LANES)):
            index = self.builder.zext(self.builder.extract_element(indices, place), INTEGER)
            number = self.builder.extract_element(table, index)
            found = self.builder.insert_element(found, number, place)
        return self.builder.bitcast(found, INTEGERS)

    def as_bytes(self, words: Any) -> Any:
        """The bytes of words."""
        return self.builder.bitcast(words, ir.VectorType(BYTES, 4 * LANES))

    def add_dots(self, sums: Any, codes: Any, numbers: Any) -> Any:
        """Add to each lane the products of its four unsigned codes of 8 bits and four signed numbers."""
        add = self.function("llvm.x86.avx512.vpdpbusd.512", INTEGERS, [INTEGERS] * 3)
        return self.builder.call(add, [sums, codes, numbers])

    def row_addresses(self, address: Any, stride: Any, n_rows: int) -> list[Any]:
        """Addresses of rows that are ``stride`` bytes apart."""
        addresses = [address]
        for _ in range(n_rows - 1):
            addresses.append(self.builder.add(addresses[-1], stride))
        return addresses

    def write_rows(self, totals: list[Any], y: Any, stride: Any) -> None:
        """Store `WIDE` numbers for each row."""
        for row, place in enumerate(self.row_addresses(y, stride, len(totals) // N_VECTORS)):
            for vector in range(N_VECTORS):
                self.store(totals[row * N_VECTORS + vector], place, 4 * vector * LANES)


@instructions(types.void(types.intp))
def prefetch(builder: Any, address: Any) -> None:
    """Prefetch the `AHEAD` bytes at an address."""
    Code(builder).prefetch(address, AHEAD)
