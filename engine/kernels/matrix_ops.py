"""Operations on packed matrices (see `op_loop`), and their kernels: a pair for each type of number.

Kernels are compiled when a model first has a type, and called by their addresses (`call`), so that a model
waits only for the types that it has.
"""

from functools import cache
from typing import Any

from llvmlite import ir
from numba import cfunc, int64, types, void
from numba.core.cgutils import unpack_tuple
from numba.extending import intrinsic

from ..layers.tracing import Array
from ..weights.quantized import UNIT
from .gemm import WIDE, wide_product
from .jit import njit
from .memory import split_range
from .panel_layout import KINDS, LAYOUTS
from .simd_matrix import DOT_PRODUCTS, FIXED_BYTES, fixed_point, fixed_product, row_product, unpack_panel

FEW_TOKENS = 8  # up to so many, packed panels are multiplied; with more, a panel is unpacked once for all
# Rows multiplied at once by some products: the sums of three do not fit into the registers (eight rows then
# take 1.2 to 1.7 times as long), and four by half a panel gain 4 %: dot products alone are 79 % of the time.
TOGETHER = 2


def is_fixed_point(kind: str) -> bool:
    """Whether few rows of x meet a type in fixed point: all with codes of fewer than 8 bits."""
    return DOT_PRODUCTS and not LAYOUTS[kind].by_column


@cache
def product_kernel(kind: str) -> Any:
    """Compile ``y = panel x + start`` for a few rows of x; return the function, which has an ``address``.

    Arguments: ``x, x_stride, n_rows, panel, y, y_stride, start``, and the number of units, ``n``.
    """
    number, fixed, together = KINDS.index(kind), is_fixed_point(kind), bool(LAYOUTS[kind].planes)

    @cfunc(void(*[int64] * 8), cache=True)
    def product(
        x: int, x_stride: int, n_rows: int, panel: int, y: int, y_stride: int, start: int, n: int
    ) -> None:
        row = 0
        if together:
            while row + TOGETHER <= n_rows:
                own_x, own_y = x + row * x_stride, y + row * y_stride
                if fixed:
                    fixed_product(number, TOGETHER, own_x, x_stride, panel, own_y, y_stride, start, n)
                else:
                    row_product(number, TOGETHER, own_x, x_stride, panel, own_y, y_stride, start, n)
                row += TOGETHER
        while row < n_rows:
            own_x, own_y = x + row * x_stride, y + row * y_stride
            if fixed:
                fixed_product(number, 1, own_x, 0, panel, own_y, 0, start, n)
            else:
                row_product(number, 1, own_x, 0, panel, own_y, 0, start, n)
            row += 1

    return product


@cache
def unpack_kernel(kind: str) -> Any:
    """Compile the unpacking of a panel to float32 ``(d_in, WIDE)``, as `product_kernel` does.

    Arguments: ``panel, columns, n_units``.
    """
    number = KINDS.index(kind)

    @cfunc(void(*[int64] * 3), cache=True)
    def unpack(panel: int, columns: int, n_units: int) -> None:
        unpack_panel(number, panel, columns, n_units)

    return unpack


@intrinsic
def call(typing_context: Any, kernel, arguments):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Call a kernel by its address with a tuple of integers."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        integers = unpack_tuple(builder, values[1])
        function = ir.FunctionType(ir.VoidType(), [integer.type for integer in integers])
        builder.call(builder.inttoptr(values[0], function.as_pointer()), integers)
        return context.get_dummy_value()

    return types.void(kernel, arguments), generate


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
