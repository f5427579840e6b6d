"""Compiled twin (numba) of `bfloat16_linear` in `engine.layers.bfloat16`.

Tile registers multiply, or else the instruction of AVX-512 that adds two products of bfloat16 to each float32
(`vdpbf16ps`). Numbers too small for a normal float32 count as 0 in both.
"""

from collections.abc import Callable

import llvmlite.binding
import numpy as np
from numba import float32, uint16, void

from engine.kernels.gemm import FEATURES, WIDE, WIDE_REGISTERS, into_panels, make_product, packed
from engine.kernels.jit import njit, sources
from engine.kernels.tiles import ROWS as TILE_ROWS
from engine.kernels.tiles import (
    TILE_BYTES,
    TILE_SHAPES,
    has_tiles,
    make_tile_product,
    release_tiles,
    set_tiles,
)
from engine.layers.bfloat16 import HALF_BITS, QUIET_NAN, Bfloat16Matrix
from engine.layers.linear import linear as numpy_linear
from engine.layers.tracing import Array

TILES = has_tiles("amx-bf16")
PAIRS = WIDE_REGISTERS and FEATURES.get("avx512bf16", False)
# Billion multiply-adds of a core in a second, by `vdpbf16ps` and in float32: 250 and 126 on an AMD EPYC of
# family 26 (Zen 5), 59 and 90 on an Intel Xeon of family 6, model 167.
FASTER_THAN_FLOAT32 = TILES or (PAIRS and llvmlite.binding.get_host_cpu_name().startswith("znver"))
TOGETHER = 2  # numbers in 32 bits

wide_product = make_tile_product(bits=16) if TILES else make_product(WIDE, bits=16)


def entry(version: str) -> Callable[..., None]:
    """Return the function that Python calls; its cache notices changes in the files of ``version``."""

    @njit(
        void(float32[:, ::1], uint16[:, :, ::1], float32[::1], float32[:, ::1]),
        nogil=True,
        cache=True,
        error_model="numpy",
    )
    def product(x: Array, panels: Array, bias: Array, y: Array) -> None:
        _ = version
        n_tokens, d_in = x.shape
        rounded = np.empty((n_tokens + TILE_ROWS, d_in), np.uint16)  # the last tile is read to its end
        for i in range(n_tokens):
            bits, row = x[i].view(np.uint32), rounded[i]
            for j in range(d_in):
                even = (bits[j] >> np.uint32(HALF_BITS)) & np.uint32(1)
                upper = (bits[j] + np.uint32(0x7FFF) + even) >> np.uint32(HALF_BITS)
                row[j] = np.uint16(upper) if x[i, j] == x[i, j] else QUIET_NAN
        if TILES:
            set_tiles(TILE_SHAPES.ctypes.data)
        for panel in range(len(panels)):
            wide_product(
                rounded.ctypes.data,
                2 * d_in,
                panels.ctypes.data + 2 * d_in * WIDE * panel,
                4 * WIDE,
                y.ctypes.data + 4 * WIDE * panel,
                4 * y.shape[1],
                bias.ctypes.data + 4 * WIDE * panel,
                d_in // TOGETHER,
                n_tokens,
            )
        if TILES:
            release_tiles()

    return product


product = entry(f"{sources('gemm', 'gemm_bfloat16', 'tiles')} {TILES}") if TILES or PAIRS else None


def bfloat16_linear(x: Array, weight: Bfloat16Matrix, bias: Array | None = None) -> Array:
    """``x W^T + b``: ``(n_tokens, d_in) -> (n_tokens, d_out)``."""
    d_out, d_in = weight.shape
    if product is None or d_out % WIDE or 2 * d_in % (TILE_BYTES if TILES else 4):
        return numpy_linear(x, weight, bias)
    y = np.empty((len(x) + TILE_ROWS, d_out), np.float32)  # the last tile is written to its end
    bias = np.zeros(d_out, np.float32) if bias is None else bias
    product(np.ascontiguousarray(x), packed(weight, pack), bias, y)
    return y[: len(x)]


def pack(weight: Bfloat16Matrix) -> Array:
    """Cut a matrix into panels, ``(d_out / WIDE, d_in / 2, 2 WIDE)``."""
    return into_panels(weight.bits, TOGETHER)
