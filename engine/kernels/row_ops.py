"""Operations on rows: norms, rotations, sums and activations (see `op_loop`)."""

from collections.abc import Callable

import numpy as np

from ..layers.tracing import Array
from . import rows
from .jit import njit
from .memory import floats_at, split_range
from .rows import FAST


@njit(fastmath=FAST, error_model="numpy")
def rms_norm(op: Array, task: int) -> None:
    """``x / sqrt(mean(x^2) + eps) * weight`` of every head, 1 or more; some tokens to a task."""
    n_tasks, x, x_stride, n_tokens, d, weight, eps, y, n_heads = op[1:10]
    w, floor = floats_at(weight, d), floats_at(eps, 1)[0]
    first, last = split_range(n_tokens, task, n_tasks)
    for i in range(first, last):
        for head in range(n_heads):
            row = floats_at(x + i * x_stride + 4 * d * head, d)
            rows.rms_norm(row, w, floor, floats_at(y + 4 * d * (i * n_heads + head), d))


@njit(fastmath=FAST, error_model="numpy")
def layer_norm(op: Array, task: int) -> None:
    """``(x - mean) / sqrt(var + eps) * weight + bias``, some rows to a task."""
    n_tasks, x, x_stride, n_tokens, d, weight, eps, y, bias = op[1:10]
    w, b, floor = floats_at(weight, d), floats_at(bias, d), floats_at(eps, 1)[0]
    first, last = split_range(n_tokens, task, n_tasks)
    for i in range(first, last):
        rows.layer_norm(floats_at(x + i * x_stride, d), w, b, floor, floats_at(y + 4 * d * i, d))


@njit(fastmath=FAST)
def rotate(op: Array, task: int) -> None:
    """RoPE, in place: pairs ``(x[i], x[i + half])`` of some tokens' heads to a task; the rest stays."""
    n_tasks, x, x_stride, n_tokens, n_heads, d_head, cos, sin, half = op[1:10]
    first, last = split_range(n_tokens, task, n_tasks)
    for i in range(first, last):
        c, s = floats_at(cos + 4 * half * i, half), floats_at(sin + 4 * half * i, half)
        for head in range(n_heads):
            pair = x + i * x_stride + 4 * d_head * head
            rows.rotate(floats_at(pair, half), floats_at(pair + 4 * half, half), c, s)


@njit(fastmath=FAST)
def add_rows(op: Array, task: int) -> None:
    """``x + y``, some rows to a task."""
    n_tasks, x, x_stride, n_tokens, d, y, y_stride, z = op[1:9]
    first, last = split_range(n_tokens, task, n_tasks)
    for i in range(first, last):
        a, b = floats_at(x + i * x_stride, d), floats_at(y + i * y_stride, d)
        out = floats_at(z + 4 * d * i, d)
        for j in range(d):
            out[j] = a[j] + b[j]


def make_gated(function: Callable[[np.float32], np.float32]) -> Callable[[Array, int], None]:
    """Return the operation ``f(gate) * up``."""

    @njit(fastmath=FAST, error_model="numpy")
    def gated(op: Array, task: int) -> None:
        """Some columns of all rows to a task."""
        n_tasks, gate, gate_stride, n_tokens, d, up, up_stride, y = op[1:9]
        first, last = split_range(d, task, n_tasks)
        n = last - first
        for i in range(n_tokens):
            a = floats_at(gate + i * gate_stride + 4 * first, n)
            b = floats_at(up + i * up_stride + 4 * first, n)
            out = floats_at(y + 4 * (d * i + first), n)
            for j in range(n):  # from 0: numba does not vectorise a loop whose index could be negative
                out[j] = function(a[j]) * b[j]

    return gated


swiglu, geglu = make_gated(rows.silu), make_gated(rows.gelu_new)


@njit(fastmath=FAST, error_model="numpy")
def gelu_new(op: Array, task: int) -> None:
    """The tanh approximation of GELU; some columns of all rows to a task."""
    n_tasks, x, x_stride, n_tokens, d, y = op[1:7]
    first, last = split_range(d, task, n_tasks)
    n = last - first
    for i in range(n_tokens):
        row, out = floats_at(x + i * x_stride + 4 * first, n), floats_at(y + 4 * (d * i + first), n)
        for j in range(n):  # from 0, as in `gated`
            out[j] = rows.gelu_new(row[j])
