"""Compiled twins (numba) of training's GELU, layer norm and softmax attention, with their gradients.

They are the functions of the same names in `engine.layers`, for float32, compiled like those of
`elementwise`, but never in place. Matrix products are left to the BLAS.
"""

import numpy as np
from numba import boolean, float32, void

from ..layers.tracing import Array, Tracer, no_trace
from . import rows
from .elementwise import MATRIX, OPTIONS, VECTOR
from .jit import njit

HEADS, MASKS = float32[:, :, :, ::1], float32[:, :, ::1]
DENSITY = np.float32(1 / np.sqrt(2 * np.pi))


@njit(void(VECTOR, VECTOR), **OPTIONS)
def _gelu(x: Array, y: Array) -> None:
    for i in range(x.size):
        y[i] = rows.gelu(x[i])


@njit(void(VECTOR, VECTOR, VECTOR), **OPTIONS)
def _gelu_backward(d_y: Array, x: Array, d_x: Array) -> None:
    for i in range(x.size):
        probability = np.float32(0.5) * (np.float32(1) + rows.erf(x[i] * rows.SQRT_HALF))
        density = DENSITY * rows.exp(np.float32(-0.5) * x[i] * x[i])
        d_x[i] = d_y[i] * (probability + x[i] * density)


@njit(void(MATRIX, VECTOR, VECTOR, float32, MATRIX), **OPTIONS)
def _layer_norm(x: Array, weight: Array, bias: Array, eps: np.float32, y: Array) -> None:
    for i in range(x.shape[0]):
        rows.layer_norm(x[i], weight, bias, eps, y[i])


@njit(void(MATRIX, MATRIX, VECTOR, float32, MATRIX, VECTOR, VECTOR), **OPTIONS)
def _layer_norm_backward(
    d_y: Array, x: Array, weight: Array, eps: np.float32, d_x: Array, d_weight: Array, d_bias: Array
) -> None:
    reciprocal = np.float32(1) / np.float32(x.shape[1])
    for i in range(x.shape[0]):
        mean, scale = rows.mean_and_scale(x[i], eps)
        slope, along = np.float32(0), np.float32(0)
        for j in range(x.shape[1]):
            slope += d_y[i, j] * weight[j]
            along += d_y[i, j] * weight[j] * (x[i, j] - mean)
        slope, along = slope * reciprocal, along * reciprocal * scale
        for j in range(x.shape[1]):
            normed = (x[i, j] - mean) * scale
            d_x[i, j] = (d_y[i, j] * weight[j] - slope - normed * along) * scale
            d_weight[j] += d_y[i, j] * normed
            d_bias[j] += d_y[i, j]


@njit(void(HEADS, MASKS, float32, boolean), **OPTIONS)
def _softmax(x: Array, mask: Array, scale: np.float32, is_causal: bool) -> None:
    """``softmax(scale * x + mask)`` in place, 0 at keys after their query if it is causal."""
    n_query, n_key = x.shape[2:]
    for n in range(x.shape[0]):
        for head in range(x.shape[1]):
            head_mask = mask[head % mask.shape[0]]
            for i in range(n_query):
                n_seen = n_key - n_query + i + 1 if is_causal else n_key
                row = x[n, head, i]
                for j in range(n_seen):
                    row[j] = row[j] * scale + head_mask[i, j]
                rows.softmax(row[:n_seen])
                row[n_seen:] = np.float32(0)


@njit(void(HEADS, HEADS, float32, boolean), **OPTIONS)
def _softmax_backward(d_y: Array, y: Array, scale: np.float32, is_causal: bool) -> None:
    """Gradient of ``_softmax`` by its ``x``, written over ``d_y``."""
    n_query, n_key = y.shape[2:]
    for n in range(y.shape[0]):
        for head in range(y.shape[1]):
            for i in range(n_query):
                n_seen = n_key - n_query + i + 1 if is_causal else n_key
                along = np.float32(0)
                for j in range(n_seen):
                    along += d_y[n, head, i, j] * y[n, head, i, j]
                for j in range(n_seen):
                    d_y[n, head, i, j] = y[n, head, i, j] * (d_y[n, head, i, j] - along) * scale
                for j in range(n_seen, n_key):
                    d_y[n, head, i, j] = np.float32(0)


def gelu(x: Array) -> Array:
    """``x * Phi(x)``."""
    y = np.empty_like(x)
    _gelu(x.reshape(-1), y.reshape(-1))
    return y


def gelu_backward(d_y: Array, x: Array) -> Array:
    """``d_y * (Phi(x) + x * phi(x))`` with the normal density ``phi``."""
    d_x = np.empty_like(x)
    _gelu_backward(d_y.reshape(-1), x.reshape(-1), d_x.reshape(-1))
    return d_x


def layer_norm(x: Array, weight: Array, bias: Array, eps: float) -> Array:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over the last axis of ``(..., d_model)``."""
    y = np.empty_like(x)
    _layer_norm(_rows(x), weight, bias, np.float32(eps), _rows(y))
    return y


def layer_norm_backward(d_y: Array, x: Array, weight: Array, eps: float) -> tuple[Array, Array, Array]:
    """Gradients of `layer_norm`: ``d_y`` and ``x`` of ``(..., d_model)`` to ``d_x, d_weight, d_bias``."""
    d_x, d_weight, d_bias = np.empty_like(x), np.zeros_like(weight), np.zeros_like(weight)
    _layer_norm_backward(_rows(d_y), _rows(x), weight, np.float32(eps), _rows(d_x), d_weight, d_bias)
    return d_x, d_weight, d_bias


def attention(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None = None,
    trace: Tracer = no_trace,
    is_causal: bool = True,
) -> Array:
    """``softmax(Q K^T / sqrt(d_head) + mask) V`` of ``(..., n_heads, n_tokens, d_head)``.

    The mask is ``(n_query, n_key)``, one for each head, or None. Causal attention skips keys after a query,
    so a mask must hide them, too. Traces ``weights`` and ``context``.
    """
    weights = query @ key.swapaxes(-2, -1)  # (..., n_heads, n_query, n_key)
    if mask is None:
        mask = np.zeros(weights.shape[-2:], np.float32)
    _softmax(_four_axes(weights), mask.reshape(-1, *mask.shape[-2:]), _scale(query), is_causal)
    *batch, n_heads, n_query, _ = weights.shape
    # A token's heads lie side by side in memory, so that merging them copies nothing.
    context = np.empty((*batch, n_query, n_heads, value.shape[-1]), value.dtype).swapaxes(-3, -2)
    np.matmul(trace("weights", weights), value, out=context)
    return trace("context", context)


def attention_backward(
    d_context: Array, query: Array, key: Array, value: Array, weights: Array, is_causal: bool = True
) -> tuple[Array, Array, Array]:
    """Gradients of `attention` from its inputs and weights: ``d_query, d_key, d_value``."""
    d_value = weights.swapaxes(-2, -1) @ d_context
    d_scores = d_context @ value.swapaxes(-2, -1)  # of the weights so far, (..., n_heads, n_query, n_key)
    _softmax_backward(_four_axes(d_scores), _four_axes(weights), _scale(query), is_causal)
    return d_scores @ key, d_scores.swapaxes(-2, -1) @ query, d_value


def _rows(x: Array) -> Array:
    return np.ascontiguousarray(x).reshape(-1, x.shape[-1])  # (..., d) -> (n_rows, d)


def _four_axes(x: Array) -> Array:
    return x.reshape(-1, *x.shape[-3:])  # (..., n_heads, n_query, n_key) -> (n, n_heads, n_query, n_key)


def _scale(query: Array) -> np.float32:
    return np.float32(1 / np.sqrt(query.shape[-1]))
