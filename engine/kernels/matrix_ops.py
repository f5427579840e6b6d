"""Operations on packed matrices (see `op_loop`)."""

from engine.kernels.gemm import WIDE, wide_product
from engine.kernels.jit import njit
from engine.kernels.matrix_kernels import call
from engine.kernels.simd_matrix import FIXED_BYTES, fixed_point
from engine.kernels.work_split import split_range
from engine.layers.tracing import Array
from engine.weights.quantized import UNIT

FEW_TOKENS = 8  # up to so many, packed panels are multiplied; with more, a panel is unpacked once for all


@njit
def to_fixed_point(op: Array, task: int) -> None:
    """Convert rows to fixed-point units; some units to a task."""
    n_tasks, x, x_stride, n_tokens, n_units, units = op[1:7]
    first, last = split_range(n_tokens * n_units, task, n_tasks)
    for i in range(first, last):
        fixed_point(x + i // n_units * x_stride + 4 * UNIT * (i % n_units), units + FIXED_BYTES * i)


@njit
def linear(op: Array, task: int, thread: int) -> None:
    """``x W^T + b``, some panels of W to a task.

    The kernel is that of products for few tokens, else that of unpacking.
    """
    n_tasks, x, x_stride, n_tokens, d_in, panels, n_panels, panel_bytes, kernel, n_units = op[1:11]
    y, y_stride, bias, scratch = op[11:15]
    if n_tokens <= FEW_TOKENS:
        first, last = split_range(n_panels, task, n_tasks)
        for i in range(first, last):
            panel, own_y, b = panels + i * panel_bytes, y + 4 * WIDE * i, bias + 4 * WIDE * i
            call(kernel, (x, x_stride, n_tokens, panel, own_y, y_stride, b, n_units))
        return
    n_parts = n_tasks // n_panels  # of the tokens
    i = task // n_parts
    first, last = split_range(n_tokens, task % n_parts, n_parts)
    columns = scratch + 4 * WIDE * d_in * thread
    call(kernel, (panels + i * panel_bytes, columns, n_units))
    x_first, y_first = x + first * x_stride, y + first * y_stride + 4 * WIDE * i
    b = bias + 4 * WIDE * i
    wide_product(x_first, x_stride, columns, 4 * WIDE, y_first, y_stride, b, d_in, last - first)
