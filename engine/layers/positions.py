"""Position encodings: learned, sinusoidal and rotary positions, and ALiBi.

The first two are vectors added to the token vectors, the third rotates queries and keys, the last is added to
the attention scores. Positions are arguments, so tokens behind a cache need no other function.
"""

from functools import cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from .tracing import Array

FLOAT32 = np.dtype(np.float32)


def learned(table: Array, positions: Array) -> Array:
    """Rows of a trained table ``(n_positions, d_model)``: ``(n_tokens,) -> (n_tokens, d_model)``.

    Its gradient is that of a token embedding, `embedding_backward`.
    """
    return table[positions]


def sinusoidal(positions: Array, d_model: int, dtype: np.dtype = FLOAT32) -> Array:
    """Interleaved sine and cosine (Vaswani et al. 2017, section 3.5): ``(n_tokens,) -> (n_tokens, d_model)``.

    ``PE[2i] = sin(position / 10000^(2i / d_model))``, and ``PE[2i + 1]`` is the cosine of the same.
    """
    frequency = 10000.0 ** (-np.arange(0, d_model, 2) / d_model)  # (d_model / 2, rounded up)
    angle = positions[:, None] * frequency
    vectors = np.empty((len(positions), d_model), dtype)
    vectors[:, 0::2] = np.sin(angle)
    vectors[:, 1::2] = np.cos(angle[:, : d_model // 2])
    return vectors


@cache
def rope_frequencies(d_head: int, theta: float, factors: tuple[float, ...] | float = 1.0) -> Array:
    """Radians by which each pair rotates from one position to the next: float32 ``(d_head / 2,)``.

    ``theta^(-2i / d_head) / factor`` (Su et al. 2021). The factors, one or ``d_head / 2``, slow the rotations
    of models whose context was extended after their first training.
    """
    exponents = np.arange(0, d_head, 2, dtype=np.float32) / d_head
    # NumPy's power of float32 is off by a unit in the last place for one in six, PyTorch's for one in 150.
    frequency = 1 / (theta ** exponents.astype(float)).astype(np.float32)
    frequency = (frequency / np.asarray(factors, float)).astype(np.float32)
    frequency.flags.writeable = False  # cached: all callers share it
    return frequency


def llama3_factors(
    d_head: int, theta: float, factor: float, low_freq: float, high_freq: float, n_positions: int
) -> Array:
    """Factors that slow down the rotations of Llama 3.1, as in transformers: ``(d_head / 2,)``.

    Pairs with fewer than ``low_freq`` rotations over the ``n_positions`` of the first training are slowed by
    ``factor``, those with more than ``high_freq`` not at all, others partly.
    """
    usual = rope_frequencies(d_head, theta)
    rotations = n_positions * (1 / (2 * np.pi * (1 / usual)))  # rounded as by PyTorch, in this order
    unslowed = np.clip((rotations - low_freq) / (high_freq - low_freq), 0, 1)
    return usual / ((1 - unslowed) * usual / factor + unslowed * usual).astype(float)


def rope_tables(
    positions: Array, d_head: int, theta: float, dtype: np.dtype, factors: tuple[float, ...] | float = 1.0
) -> tuple[Array, Array]:
    """Cosine and sine of ``position * frequency``, each ``(n_tokens, d_head / 2)``.

    The angles are float32, as in transformers, for the same rounding at far positions.
    """
    angle = positions[:, None].astype(np.float32) * rope_frequencies(d_head, theta, factors)
    return np.cos(angle).astype(dtype, copy=False), np.sin(angle).astype(dtype, copy=False)


def apply_rope(x: Array, cos: Array, sin: Array) -> Array:
    """Rotate each pair ``(x[i], x[i + half])`` of ``(..., n_heads, n_tokens, d_head)``.

    The tables are ``(n_tokens, half)``; dimensions behind the first ``2 half`` stay as they are.
    """
    half = cos.shape[-1]
    first, second, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    return np.concatenate([first * cos - second * sin, second * cos + first * sin, rest], axis=-1)


def rope_backward(d_y: Array, cos: Array, sin: Array) -> Array:
    """Gradient of `apply_rope` with the same tables, of the same shape: rotation by the negative angle."""
    return apply_rope(d_y, cos, -sin)


def alibi_slopes(n_heads: int) -> Array:
    """Slope of each head (Press et al. 2022): float64 ``(n_heads,)``.

    ``2^(-8 / n), 2^(-16 / n), …`` for ``n`` heads. If n is no power of two, the official code takes the
    slopes of the next lower power, and for the other heads every second slope of the next higher.
    """
    lower = 2 ** (n_heads.bit_length() - 1)  # the largest power of two that is not above n_heads
    slopes = 2.0 ** (-8 / lower * np.arange(1, lower + 1))
    between = 2.0 ** (-4 / lower * np.arange(1, 2 * lower, 2))
    return np.concatenate([slopes, between[: n_heads - lower]])


def by_distance(values: Array) -> Array:
    """View ``(n_heads, n, n)`` of ``(n_heads, 2 n - 1)``: ``[h, i, j]`` has the value of ``j - i``."""
    rows = sliding_window_view(np.ascontiguousarray(values), (values.shape[1] + 1) // 2, axis=1)
    return rows[:, ::-1]  # of the first token, distances from 0; of the last, from 1 - n


def alibi_bias(n_heads: int, n_query: int, n_key: int, dtype: np.dtype = FLOAT32) -> Array:
    """``-slope * distance``, to be added to the scores: ``(n_heads, n_query, n_key)``.

    The last query has the position of the last key. Keys after a query are left to the causal mask.
    """
    distance = np.arange(n_key - n_query, n_key)[:, None] - np.arange(n_key)  # (n_query, n_key)
    return (-alibi_slopes(n_heads)[:, None, None] * distance).astype(dtype)
