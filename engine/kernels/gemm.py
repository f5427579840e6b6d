"""Compiled twin (numba) of `engine.layers.linear`, and the products of matrices that attention shares.

The twin is for float32, compiled like those of `elementwise`. Products are computed in small *tiles*, a few
rows times a few vector registers. A tile's sums stay in registers while the rows of a *panel* are read one by
one: ``depth`` rows, as wide as the tile, of the matrix on the right. Weights are cut into panels once, where
a BLAS does so at every call (Goto & van de Geijn 2008). Shapes that fit no tile are left to NumPy.

numba has no vector types, so the tile is written for LLVM.
"""

import weakref
from collections.abc import Callable
from typing import Any, TypeVar

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import float32, types, void
from numba.core.cgutils import get_or_insert_function

from ..layers.linear import Matrix
from ..layers.linear import linear as numpy_linear
from ..layers.tracing import Array
from .jit import instructions, njit

VECTOR, MATRIX, PANELS = float32[::1], float32[:, ::1], float32[:, :, ::1]

Weight = TypeVar("Weight")
Panels = TypeVar("Panels")

FEATURES = llvmlite.binding.get_host_cpu_features()
if not (FEATURES.get("fma") or FEATURES.get("neon")):
    raise ImportError("this processor has no fused multiply-add")

# Numbers in a vector register, and rows and registers of a tile: 6 x 4 of the 32 registers of AVX-512,
# 6 x 2 of the 16 of AVX2 (or of NEON's 32, which are half as wide).
WIDE_REGISTERS = FEATURES.get("avx512f", False)
LANES = 16 if WIDE_REGISTERS else 8
ROWS = 6
# Widths of a tile in numbers: one for weights, one for the values of an attention head.
WIDE = (4 if WIDE_REGISTERS else 2) * LANES
NARROW = 2 * LANES
LONG, POINTER = ir.IntType(64), ir.PointerType()


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


def make_tile(n_rows: int, width: int, bits: int) -> Callable[..., None]:
    """Return a function of addresses and strides in bytes: ``y = x @ panel + start``.

    Its arguments are ``x, x_stride, panel, panel_stride, y, y_stride, start, depth``: ``n_rows`` rows of
    x, ``depth`` rows of the panel, and ``width`` numbers that every row of y begins its sum with.

    Numbers are float32 for 32 ``bits``. For 8, four bytes of a row of x lie side by side in the place of one,
    and so do the four of the panel that they are multiplied by; those of x are unsigned, those of the panel
    signed, and sums are int32.
    """
    single = ir.FloatType() if bits == 32 else ir.IntType(32)  # the place of one
    vector = ir.VectorType(single, LANES)
    n_vectors = width // LANES
    instruction = f"llvm.fma.v{LANES}f32" if bits == 32 else f"llvm.x86.avx512.vpdpbusd.{32 * LANES}"

    @instructions(types.void(*[types.intp] * 8))
    def tile(builder: Any, *arguments: Any) -> None:
        x, x_stride, panel, panel_stride, y, y_stride, start, depth = arguments
        kind = ir.FunctionType(vector, [vector] * 3)
        function = get_or_insert_function(builder.module, kind, instruction)

        def multiply_add(left: Any, right: Any, total: Any) -> Any:
            order = [left, right, total] if bits == 32 else [total, left, right]
            return builder.call(function, order)

        def at(address: Any, row: Any, stride: Any, column: Any) -> Any:
            offset = builder.add(builder.mul(row, stride), builder.mul(column, LONG(4)))
            return builder.gep(builder.inttoptr(address, POINTER), [offset], source_etype=ir.IntType(8))

        def load(place: Any, kind: Any) -> Any:
            return builder.load(place, typ=kind, align=4)

        columns = [LONG(i * LANES) for i in range(n_vectors)]
        first = [load(at(start, LONG(0), LONG(0), column), vector) for column in columns]

        def add_products(k: Any, sums: list[Any]) -> list[Any]:
            """The sums, row by row, and the products of row ``k`` of the panel."""
            right = [load(at(panel, k, panel_stride, column), vector) for column in columns]
            new_sums = []
            for row in range(n_rows):
                left = load(at(x, LONG(row), x_stride, k), single)
                lane = builder.insert_element(vector(ir.Undefined), left, ir.IntType(32)(0))
                spread = builder.shuffle_vector(
                    lane, vector(ir.Undefined), ir.VectorType(ir.IntType(32), LANES)([0] * LANES)
                )
                own = sums[row * n_vectors :][:n_vectors]
                new_sums += [multiply_add(spread, *pair) for pair in zip(right, own, strict=True)]
            return new_sums

        totals = loop(builder, depth, first * n_rows, add_products)
        for i, total in enumerate(totals):
            row, register = divmod(i, n_vectors)
            builder.store(total, at(y, LONG(row), y_stride, columns[register]), align=4)

    return tile


def make_product(width: int, bits: int = 32) -> Callable[..., None]:
    """Return ``y = x @ panel + start`` for any number of rows, the last argument after those of a tile."""
    row, rows = make_tile(1, width, bits), make_tile(ROWS, width, bits)

    @njit
    def product(
        x: int,
        x_stride: int,
        panel: int,
        panel_stride: int,
        y: int,
        y_stride: int,
        start: int,
        depth: int,
        n_rows: int,
    ) -> None:
        if n_rows < ROWS:
            for i in range(n_rows):
                row(x + i * x_stride, x_stride, panel, panel_stride, y + i * y_stride, y_stride, start, depth)
            return
        for first in range(0, n_rows, ROWS):
            i = min(first, n_rows - ROWS)  # the last tile may overlap the one before
            rows(x + i * x_stride, x_stride, panel, panel_stride, y + i * y_stride, y_stride, start, depth)

    return product


wide_product, narrow_product = make_product(WIDE), make_product(NARROW)


@njit(void(MATRIX, PANELS, VECTOR, MATRIX), nogil=True, cache=True)
def _linear(x: Array, panels: Array, bias: Array, y: Array) -> None:
    n_tokens, d_in = x.shape
    for i in range(panels.shape[0]):
        wide_product(
            x.ctypes.data,
            4 * d_in,
            panels.ctypes.data + 4 * i * d_in * WIDE,
            4 * WIDE,
            y.ctypes.data + 4 * i * WIDE,
            4 * y.shape[1],
            bias.ctypes.data + 4 * i * WIDE,
            d_in,
            n_tokens,
        )


def linear(x: Array, weight: Matrix, bias: Array | None = None) -> Array:
    """``x W^T + b``: ``(n_tokens, d_in) -> (n_tokens, d_out)``."""
    d_out = weight.shape[0]
    if d_out % WIDE:
        return numpy_linear(x, weight, bias)
    if bias is None:
        bias = np.zeros(d_out, np.float32)
    y = np.empty((len(x), d_out), np.float32)
    _linear(np.ascontiguousarray(x), packed(weight, pack), bias, y)
    return y


def packed(weight: Weight, pack: Callable[[Weight], Panels]) -> Panels:
    """Return a weight's panels, which are cut once and kept as long as the weight."""
    key = id(weight)
    if key not in _panels:
        _panels[key] = pack(weight)
        weakref.finalize(weight, _panels.pop, key, None)
    panels: Panels = _panels[key]
    return panels


def pack(weight: Matrix) -> Array:
    """Cut ``weight (d_out, d_in)`` into panels: ``(d_out / WIDE, d_in, WIDE)``."""
    return into_panels(np.asarray(weight, np.float32), 1)


def into_panels(numbers: Array, together: int) -> Array:
    """Cut ``(d_out, d_in)`` into ``(d_out / WIDE, d_in / together, WIDE * together)``."""
    d_out, d_in = numbers.shape
    groups = numbers.reshape(d_out // WIDE, WIDE, d_in // together, together).swapaxes(1, 2)
    return np.ascontiguousarray(groups).reshape(d_out // WIDE, d_in // together, WIDE * together)


_panels: dict[int, Any] = {}  # of each weight, by its identity
