"""Steps that work on rows of numbers: norms, rotations, sums and activations (see `steps`)."""

import numpy as np

from engine.layers.jit import njit
from engine.layers.products import exp
from engine.layers.shares import FAST, numbers, part_of
from engine.layers.tracing import Array

GELU_SCALE = np.float32(np.sqrt(2 / np.pi))


@njit(fastmath=FAST, error_model="numpy")
def rms_norm(step: Array, share: int) -> None:
    """``x / sqrt(mean(x^2) + eps) * weight``, some rows to a share."""
    n_shares, x, x_stride, n_tokens, d, weight, eps, y = step[1:9]
    w, floor = numbers(weight, d), numbers(eps, 1)[0]
    first, last = part_of(n_tokens, share, n_shares)
    for i in range(first, last):
        row, out = numbers(x + i * x_stride, d), numbers(y + 4 * d * i, d)
        squares = np.float32(0)
        for j in range(d):
            squares += row[j] * row[j]
        scale = np.float32(1) / np.sqrt(squares / np.float32(d) + floor)
        for j in range(d):
            out[j] = row[j] * scale * w[j]


@njit(fastmath=FAST, error_model="numpy")
def layer_norm(step: Array, share: int) -> None:
    """``(x - mean) / sqrt(var + eps) * weight + bias``, some rows to a share."""
    n_shares, x, x_stride, n_tokens, d, weight, eps, y, bias = step[1:10]
    w, b, floor = numbers(weight, d), numbers(bias, d), numbers(eps, 1)[0]
    first, last = part_of(n_tokens, share, n_shares)
    for i in range(first, last):
        row, out = numbers(x + i * x_stride, d), numbers(y + 4 * d * i, d)
        total, squares = np.float32(0), np.float32(0)
        for j in range(d):
            total += row[j]
        mean = total / np.float32(d)
        for j in range(d):
            squares += (row[j] - mean) * (row[j] - mean)
        scale = np.float32(1) / np.sqrt(squares / np.float32(d) + floor)
        for j in range(d):
            out[j] = (row[j] - mean) * scale * w[j] + b[j]


@njit(fastmath=FAST)
def rotate(step: Array, share: int) -> None:
    """RoPE, in place: pairs ``(x[i], x[i + d_head / 2])`` of some tokens' heads to a share."""
    n_shares, x, x_stride, n_tokens, n_heads, d_head, cos, sin = step[1:9]
    half = d_head // 2
    first, last = part_of(n_tokens, share, n_shares)
    for i in range(first, last):
        c, s = numbers(cos + 4 * half * i, half), numbers(sin + 4 * half * i, half)
        for head in range(n_heads):
            pair = numbers(x + i * x_stride + 4 * d_head * head, d_head)
            for j in range(half):
                u, v = pair[j], pair[half + j]
                pair[j] = u * c[j] - v * s[j]
                pair[half + j] = v * c[j] + u * s[j]


@njit(fastmath=FAST)
def add_rows(step: Array, share: int) -> None:
    """``x + y``, some rows to a share."""
    n_shares, x, x_stride, n_tokens, d, y, y_stride, z = step[1:9]
    first, last = part_of(n_tokens, share, n_shares)
    for i in range(first, last):
        a, b, out = numbers(x + i * x_stride, d), numbers(y + i * y_stride, d), numbers(z + 4 * d * i, d)
        for j in range(d):
            out[j] = a[j] + b[j]


@njit(fastmath=FAST, error_model="numpy")
def swiglu(step: Array, share: int) -> None:
    """``silu(gate) * up``, some columns of all rows to a share."""
    n_shares, gate, gate_stride, n_tokens, d, up, up_stride, y = step[1:9]
    first, last = part_of(d, share, n_shares)
    n = last - first
    for i in range(n_tokens):
        a = numbers(gate + i * gate_stride + 4 * first, n)
        b = numbers(up + i * up_stride + 4 * first, n)
        out = numbers(y + 4 * (d * i + first), n)
        for j in range(n):  # from 0: an index that could be negative makes numba go number by number
            out[j] = a[j] / (np.float32(1) + exp(min(-a[j], np.float32(88)))) * b[j]


@njit(fastmath=FAST, error_model="numpy")
def gelu_new(step: Array, share: int) -> None:
    """The tanh approximation of GELU, ``x sigmoid(2 inner)``; some columns of all rows to a share."""
    n_shares, x, x_stride, n_tokens, d, y = step[1:7]
    first, last = part_of(d, share, n_shares)
    n = last - first
    for i in range(n_tokens):
        row, out = numbers(x + i * x_stride + 4 * first, n), numbers(y + 4 * (d * i + first), n)
        for j in range(n):  # from 0, as in `swiglu`
            inner = GELU_SCALE * (row[j] + np.float32(0.044715) * row[j] * row[j] * row[j])
            out[j] = row[j] / (np.float32(1) + exp(min(np.float32(-2) * inner, np.float32(88))))
