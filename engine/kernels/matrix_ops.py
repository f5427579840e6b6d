"""Operations on packed matrices (see `op_loop`)."""

from engine.kernels.gemm import WIDE, wide_product
from engine.kernels.jit import njit
from engine.kernels.simd import BLOCK, Kind
from engine.kernels.simd_matrix import (
    DOT_PRODUCTS,
    FIXED_BYTES,
    TOGETHER,
    fixed_point,
    make_fixed_point_product,
    make_row_product,
    make_unpack,
)
from engine.kernels.work_split import split_range
from engine.layers.tracing import Array

KINDS: tuple[Kind, ...] = ("q4", "q8", "f16", "bf16", "f32")
Q4, Q8, F16, BF16, F32 = range(5)
FIXED = 5  # a Q4 matrix times fixed-point numbers
row_q4, row_q8, row_f16, row_bf16, row_f32 = (make_row_product(kind) for kind in KINDS)
rows_q8, row_fixed, rows_fixed = (
    make_row_product("q8", TOGETHER),
    make_fixed_point_product(),
    make_fixed_point_product(TOGETHER),
)
unpack_q4, unpack_q8, unpack_f16, unpack_bf16, unpack_f32 = (make_unpack(kind) for kind in KINDS)

FEW_TOKENS = 8  # up to so many, packed panels are multiplied; with more, a panel is unpacked once for all


@njit
def row_product(kind: int, x: int, panel: int, y: int, start: int, n_iterations: int) -> None:
    """``y = panel x + start`` for one row of x."""
    if DOT_PRODUCTS and kind == FIXED:
        row_fixed(x, 0, panel, y, 0, start, n_iterations)
    elif kind == Q4:
        row_q4(x, 0, panel, y, 0, start, n_iterations)
    elif kind == Q8:
        row_q8(x, 0, panel, y, 0, start, n_iterations)
    elif kind == F16:
        row_f16(x, 0, panel, y, 0, start, n_iterations)
    elif kind == BF16:
        row_bf16(x, 0, panel, y, 0, start, n_iterations)
    else:
        row_f32(x, 0, panel, y, 0, start, n_iterations)


@njit
def row_products(
    kind: int,
    x: int,
    x_stride: int,
    n_rows: int,
    panel: int,
    y: int,
    y_stride: int,
    start: int,
    n_iterations: int,
) -> None:
    """``y = panel x + start`` for a few rows of x, `TOGETHER` at once if that saves unpacking."""
    row = 0
    if kind == Q8 or (DOT_PRODUCTS and kind == FIXED):
        while row + TOGETHER <= n_rows:
            own_x, own_y = x + row * x_stride, y + row * y_stride
            if kind == Q8:
                rows_q8(own_x, x_stride, panel, own_y, y_stride, start, n_iterations)
            elif DOT_PRODUCTS:
                rows_fixed(own_x, x_stride, panel, own_y, y_stride, start, n_iterations)
            row += TOGETHER
    while row < n_rows:
        row_product(kind, x + row * x_stride, panel, y + row * y_stride, start, n_iterations)
        row += 1


@njit
def to_fixed_point(op: Array, task: int) -> None:
    """Convert rows to fixed-point blocks; some blocks to a task."""
    n_tasks, x, x_stride, n_tokens, n_blocks, blocks = op[1:7]
    first, last = split_range(n_tokens * n_blocks, task, n_tasks)
    for i in range(first, last):
        fixed_point(x + i // n_blocks * x_stride + 4 * BLOCK * (i % n_blocks), blocks + FIXED_BYTES * i)


@njit
def unpack(kind: int, panel: int, columns: int, n_iterations: int) -> None:
    """Write a panel as float32 ``(d_in, WIDE)``."""
    if kind == Q4:
        unpack_q4(panel, columns, n_iterations)
    elif kind == Q8:
        unpack_q8(panel, columns, n_iterations)
    elif kind == F16:
        unpack_f16(panel, columns, n_iterations)
    elif kind == BF16:
        unpack_bf16(panel, columns, n_iterations)
    else:
        unpack_f32(panel, columns, n_iterations)


@njit
def linear(op: Array, task: int, thread: int) -> None:
    """``x W^T + b``, some panels of W to a task."""
    n_tasks, x, x_stride, n_tokens, d_in, panels, n_panels, panel_bytes, kind, n_iterations = op[1:11]
    y, bias, scratch = op[11:14]
    y_stride = 4 * WIDE * n_panels
    if n_tokens <= FEW_TOKENS:
        first, last = split_range(n_panels, task, n_tasks)
        for i in range(first, last):
            panel, own_y, b = panels + i * panel_bytes, y + 4 * WIDE * i, bias + 4 * WIDE * i
            row_products(kind, x, x_stride, n_tokens, panel, own_y, y_stride, b, n_iterations)
        return
    n_parts = n_tasks // n_panels  # of the tokens
    i = task // n_parts
    first, last = split_range(n_tokens, task % n_parts, n_parts)
    columns = scratch + 4 * WIDE * d_in * thread
    unpack(kind, panels + i * panel_bytes, columns, n_iterations)
    x_first, y_first = x + first * x_stride, y + first * y_stride + 4 * WIDE * i
    b = bias + 4 * WIDE * i
    wide_product(x_first, x_stride, columns, 4 * WIDE, y_first, y_stride, b, d_in, last - first)
