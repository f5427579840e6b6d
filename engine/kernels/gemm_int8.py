"""Compiled twin (numba) of `int8_linear` in `engine.layers.quantization`, by dot products of bytes.

An instruction multiplies four unsigned bytes by four signed ones in each lane and adds the sum to an int32,
four times the work of a float32 multiply-add. Codes of x are stored as ``code + 128``; every sum begins with
what that adds too much, ``-128 * sum(codes of W)``. So sums are exact. Tile registers compute them where the
processor has them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import float32, int8, int32, types, void

from ..layers.linear import linear as numpy_linear
from ..layers.quantization import BLOCK, LARGEST_CODE, SMALLEST_SCALE, Int8Matrix
from ..layers.tracing import Array
from . import gemm
from .gemm import FEATURES, LANES, WIDE, WIDE_REGISTERS, into_panels, make_product, packed
from .jit import instructions, njit
from .rows import FAST
from .simd import BYTES, INTEGERS, VECTOR, Code
from .tiles import ROWS as TILE_ROWS
from .tiles import TILE_SHAPES, has_tiles, release_tiles, set_tiles, tile_product

# Whether the processor multiplies bytes in registers of `LANES` times 32 bits.
DOT_PRODUCTS = FEATURES.get("avx512vnni" if WIDE_REGISTERS else "avxvnni", False)
TILES = DOT_PRODUCTS and WIDE_REGISTERS and has_tiles()
TOGETHER = 4  # bytes of a lane
OFFSET = 128
ROWS = 96  # of x whose sums are kept at once, in the first cache: whole tiles
STARTS, STAGES = range(0, BLOCK, LANES), BLOCK.bit_length() - 1
ROTATION = np.float32(np.sqrt(BLOCK))  # by which `rotate_block` makes vectors longer
LAST_BITS_WHOLE = 1.5 * 2**23  # a float32 of this size has no bits for fractions: adding it rounds


@instructions(types.float32(types.intp, types.intp))
def rotate_block(builder: Any, x: Any, y: Any) -> Any:
    """Write a block times the Hadamard matrix of +-1 to another address; return its largest |number|.

    It is the fast transform: at each stage, sums and differences of the numbers that are ``distance`` apart.
    """
    code, lanes = Code(builder), range(LANES)
    block = [code.load(x, 4 * start, VECTOR) for start in STARTS]
    for distance in (2**stage for stage in range(STAGES)):
        if distance < LANES:  # within a register
            partners = INTEGERS([lane ^ distance for lane in lanes])
            signs = VECTOR([-1.0 if lane & distance else 1.0 for lane in lanes])
            swapped = [builder.shuffle_vector(v, v, partners) for v in block]
            block = [code.multiply_add(v, signs, w) for v, w in zip(block, swapped, strict=True)]
        else:
            swapped = [block[i ^ distance // LANES] for i in range(len(block))]
            block = [
                builder.fsub(w, v) if start & distance else builder.fadd(v, w)
                for start, v, w in zip(STARTS, block, swapped, strict=True)
            ]
    for start, v in zip(STARTS, block, strict=True):
        code.store(v, y, 4 * start)
    return code.largest_absolute(block)


@instructions(types.void(types.intp, types.float32, types.intp))
def round_block(builder: Any, x: Any, of_scale: Any, codes: Any) -> None:
    """Write ``round(x * of_scale) + OFFSET`` of a block as bytes, halves to even."""
    code = Code(builder)
    factor = code.spread(of_scale, VECTOR)
    for start in STARTS:
        v = code.load(x, 4 * start, VECTOR)
        whole = code.multiply_add(v, factor, VECTOR([LAST_BITS_WHOLE + OFFSET] * LANES))
        byte = builder.trunc(builder.bitcast(whole, INTEGERS), ir.VectorType(BYTES, LANES))
        code.store(byte, codes, start)


wide_product = tile_product if TILES else make_product(WIDE, bits=8)


@njit(error_model="numpy")
def quantize_row(x: int, rotated: int, codes: int, d_in: int) -> np.float32:
    """Write the codes of a row of x, rotated, plus `OFFSET`; return their scale."""
    largest = np.float32(0)
    for start in range(0, d_in, BLOCK):
        of_block = rotate_block(x + 4 * start, rotated + 4 * start)
        if not of_block <= largest:  # NaN stays
            largest = of_block
    scale = largest / np.float32(LARGEST_CODE)
    of_scale = np.float32(1) / scale if scale >= SMALLEST_SCALE else np.float32(1)
    for start in range(0, d_in, BLOCK):
        round_block(rotated + 4 * start, of_scale, codes + start)
    return scale / ROTATION


def entry(tiles: bool) -> Callable[..., None]:
    """Return the function that Python calls, with or without tile registers."""

    @njit(
        void(float32[:, ::1], int8[:, :, ::1], int32[::1], float32[::1], float32[::1], float32[:, ::1]),
        fastmath=FAST,
        nogil=True,
        cache=True,
        error_model="numpy",
    )
    def product(x: Array, panels: Array, starts: Array, scales: Array, bias: Array, y: Array) -> None:
        n_tokens, d_in = x.shape
        codes = np.empty((n_tokens + TILE_ROWS, d_in), np.uint8)  # the last tile is read to its end
        rotated = np.empty(d_in, np.float32)
        x_scales, sums = np.empty(n_tokens, np.float32), np.empty((ROWS, WIDE), np.int32)
        for i in range(n_tokens):
            row = codes.ctypes.data + d_in * i
            x_scales[i] = quantize_row(x.ctypes.data + 4 * d_in * i, rotated.ctypes.data, row, d_in)
        if tiles:
            set_tiles(TILE_SHAPES.ctypes.data)
        for panel in range(len(panels)):
            own_scales, own_bias = scales[panel * WIDE :][:WIDE], bias[panel * WIDE :][:WIDE]
            for first in range(0, n_tokens, ROWS):
                n_rows = min(ROWS, n_tokens - first)
                wide_product(
                    codes.ctypes.data + d_in * first,
                    d_in,
                    panels.ctypes.data + d_in * WIDE * panel,
                    TOGETHER * WIDE,
                    sums.ctypes.data,
                    4 * WIDE,
                    starts.ctypes.data + 4 * WIDE * panel,
                    d_in // TOGETHER,
                    n_rows,
                )
                for i in range(n_rows):
                    out, scale = y[first + i, panel * WIDE :][:WIDE], x_scales[first + i]
                    for j in range(WIDE):
                        out[j] = np.float32(sums[i, j]) * (scale * own_scales[j]) + own_bias[j]
        if tiles:
            release_tiles()

    return product


# The compiler ends the process at an instruction that the processor lacks.
product = entry(TILES) if DOT_PRODUCTS else None


def linear(x: Array, weight: Any, bias: Array | None = None) -> Array:
    """``x W^T + b``: ``(n_tokens, d_in) -> (n_tokens, d_out)``, for arrays and rounded matrices."""
    product_of = int8_linear if isinstance(weight, Int8Matrix) else gemm.linear
    return product_of(x, weight, bias)


def int8_linear(x: Array, weight: Int8Matrix, bias: Array | None = None) -> Array:
    """``x W^T + b``: ``(n_tokens, d_in) -> (n_tokens, d_out)``."""
    d_out = weight.shape[0]
    if product is None or d_out % WIDE:
        return numpy_linear(x, weight, bias)
    panels, starts = packed(weight, pack)
    y = np.empty((len(x), d_out), np.float32)
    bias = np.zeros(d_out, np.float32) if bias is None else bias
    product(np.ascontiguousarray(x), panels, starts, weight.scales, bias, y)
    return y


def pack(weight: Int8Matrix) -> tuple[Array, Array]:
    """Cut codes into panels, ``(d_out / WIDE, d_in / 4, 4 WIDE)``; starts are ``(d_out,)``."""
    return into_panels(weight.codes, TOGETHER), -OFFSET * weight.codes.sum(axis=1, dtype=np.int32)
