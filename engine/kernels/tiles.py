"""Products of bytes in Intel's tile registers (AMX): eight registers of 16 rows of 64 bytes each.

An instruction adds the product of two tiles to a third: 16 rows of x, and 16 columns of a panel, over 64
bytes of depth. That is 16 times the work of an instruction of `gemm`'s tiles. The operating system gives a
process these registers when it asks for them; each thread sets their shape before it uses them.
"""

import ctypes
import platform
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.cgutils import get_or_insert_function

from .gemm import FEATURES, LONG, POINTER, WIDE, loop
from .jit import instructions, njit

SYS_ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA = 158, 0x1023, 18  # Linux on x86-64
TILE_ROWS, TILE_BYTES = 16, 64
SIDE = 2  # tiles of x, and of the panel, whose products are summed at once: 4 sums, and 2 + 2 factors
ROWS = SIDE * TILE_ROWS


def has_tiles() -> bool:
    """Whether the processor has tile registers that multiply bytes, and the system grants them."""
    if platform.system() != "Linux" or not (FEATURES.get("amx-tile") and FEATURES.get("amx-int8")):
        return False
    ask = ctypes.CDLL(None).syscall
    return ask(SYS_ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0


def tile_shapes() -> np.ndarray:
    """The operand of ``ldtilecfg``: palette 1, and of each register its bytes in a row and its rows."""
    config = np.zeros(64, np.uint8)
    config[0] = 1
    config[16:32:2] = TILE_BYTES
    config[48:56] = TILE_ROWS
    return config


TILE_SHAPES = tile_shapes()
BYTE = ir.IntType(8)


def call(builder: Any, name: str, *arguments: Any) -> None:
    """Call an instruction of the tile registers, whose numbers are constants."""
    kind = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments])
    builder.call(get_or_insert_function(builder.module, kind, f"llvm.x86.{name}"), arguments)


@instructions(types.void(types.intp))
def set_tiles(builder: Any, shapes: Any) -> None:
    """Set the shapes of this thread's tile registers, from an address."""
    call(builder, "ldtilecfg", builder.inttoptr(shapes, POINTER))


@instructions(types.void())
def release_tiles(builder: Any) -> None:
    """Release them, so that switching threads does not save them."""
    call(builder, "tilerelease")


@instructions(types.void(*[types.intp] * 8))
def square(builder: Any, *arguments: Any) -> None:
    """``y = x @ panel + start`` of `ROWS` rows and columns, with the arguments of `gemm.make_tile`.

    Only ``depth`` differs: a row of x has that many times `TILE_BYTES`.
    """
    x, x_stride, panel, panel_stride, y, y_stride, start, depth = arguments
    sums = [[BYTE(SIDE * i + j) for j in range(SIDE)] for i in range(SIDE)]
    left, right = ([BYTE(first + i) for i in range(SIDE)] for first in (SIDE**2, SIDE**2 + SIDE))

    def place(address: Any, stride: Any, tile: int, k: Any = None) -> Any:
        """The tile so many tiles below an address, or for ``k`` as many bytes to the right."""
        offset = builder.mul(stride, LONG(TILE_ROWS * tile))
        offset = offset if k is None else builder.add(offset, builder.mul(k, LONG(TILE_BYTES)))
        return builder.inttoptr(builder.add(address, offset), POINTER)

    def next_tile(address: Any, column: int) -> Any:
        return builder.add(address, LONG(TILE_BYTES * column))

    for i in range(SIDE):
        for j in range(SIDE):  # the same row in all rows of a tile, since the stride is 0
            call(builder, "tileloadd64", sums[i][j], place(next_tile(start, j), LONG(0), 0), LONG(0))

    def add_products(k: Any, nothing: list[Any]) -> list[Any]:
        below = builder.mul(panel_stride, builder.mul(k, LONG(TILE_ROWS)))
        for i in range(SIDE):
            call(builder, "tileloadd64", left[i], place(x, x_stride, i, k), x_stride)
        for j in range(SIDE):
            source = builder.inttoptr(builder.add(next_tile(panel, j), below), POINTER)
            call(builder, "tileloadd64", right[j], source, panel_stride)
        for i in range(SIDE):
            for j in range(SIDE):
                call(builder, "tdpbusd", sums[i][j], left[i], right[j])
        return nothing

    loop(builder, depth, [], add_products)
    for i in range(SIDE):
        for j in range(SIDE):
            call(builder, "tilestored64", sums[i][j], place(next_tile(y, j), y_stride, i), y_stride)


@njit
def tile_product(
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
    """Multiply unsigned bytes by a panel of `WIDE` columns of signed ones, as `gemm.make_product` does.

    x and y have memory for a multiple of `ROWS` rows; all are computed. ``depth`` counts numbers of
    32 bits, and is a multiple of 16.
    """
    for row in range(0, n_rows, ROWS):
        for column in range(0, 4 * WIDE, SIDE * TILE_BYTES):
            square(
                x + row * x_stride,
                x_stride,
                panel + column,
                panel_stride,
                y + row * y_stride + column,
                y_stride,
                start + column,
                depth // TILE_ROWS,
            )
