"""Compiled twins (numba) of attention, whole and windowed.

They are the functions of the same names in `engine.layers.attention`, for float32, compiled like those of
`elementwise`. Queries are read in blocks, so that their scores stay in the processor's cache, and scores of
keys that no query of a block sees are not computed.
"""

import numpy as np
from numba import float32, int64, void

from ..layers.attention import attention as numpy_attention
from ..layers.attention import windowed_attention as numpy_windowed_attention
from ..layers.tracing import Array, Tracer, no_trace
from .gemm import NARROW, WIDE, narrow_product, wide_product
from .jit import njit
from .memory import floats_at
from .rows import FAST, softmax

HEADS = float32[:, :, :]  # (n_tokens, n_heads, d_head), numbers of a head side by side
QUERIES = 96  # of a block; a multiple of the rows of a tile


@njit
def weigh(
    scores: int,
    stride: int,
    value: int,
    value_stride: int,
    context: int,
    context_stride: int,
    d_head: int,
    zeros: int,
    n_keys: int,
    n_queries: int,
) -> None:
    """``weights V``: weights ``(n_queries, n_keys)`` times values, to the context of the queries."""
    d = 0
    while d < d_head:
        v, c = value + 4 * d, context + 4 * d
        if d + WIDE <= d_head:
            wide_product(scores, stride, v, value_stride, c, context_stride, zeros, n_keys, n_queries)
            d += WIDE
        else:
            narrow_product(scores, stride, v, value_stride, c, context_stride, zeros, n_keys, n_queries)
            d += NARROW


@njit(
    void(HEADS, HEADS, HEADS, int64, int64, int64, int64, int64, float32[:, :, ::1]),
    fastmath=FAST,
    nogil=True,
    cache=True,
    error_model="numpy",
)
def attend(
    query: Array,
    key: Array,
    value: Array,
    bias: int,
    bias_of_head: int,
    bias_of_query: int,
    before: int,
    after: int,
    context: Array,
) -> None:
    """Attend to the keys at most ``before`` before and ``after`` after a query.

    The bias is an address with the strides of heads and queries in bytes, 0 for none.
    """
    n_queries, n_heads, d_head = query.shape
    n_keys, group = key.shape[0], n_heads // key.shape[1]
    n_panels = (n_keys + WIDE - 1) // WIDE
    width = 4 * n_panels * WIDE
    scale = np.float32(1) / np.sqrt(np.float32(d_head))
    panels = np.zeros((n_panels, d_head, WIDE), np.float32)  # K^T / sqrt(d_head) of a head
    block_scores = np.empty((min(QUERIES, n_queries), n_panels * WIDE), np.float32)
    start_of_sums = np.zeros(WIDE, np.float32)
    for head in range(n_heads):
        # Taken inside the loop: numba frees arrays behind the last line that names them.
        scores, zeros = block_scores.ctypes.data, start_of_sums.ctypes.data
        if head % group == 0:  # not a function of its own, which LLVM would round differently
            for j in range(n_keys):
                for d in range(d_head):
                    panels[j // WIDE, d, j % WIDE] = key[j, head // group, d] * scale
        own_value = value.ctypes.data + head // group * value.strides[1]
        for start in range(0, n_queries, QUERIES):
            end = min(start + QUERIES, n_queries)
            low = max(0, start - before) // WIDE * WIDE  # the first key of a panel
            high = min(n_keys, end + after)
            own_query = query.ctypes.data + start * query.strides[0] + head * query.strides[1]
            for first in range(low, high, WIDE):
                wide_product(
                    own_query,
                    query.strides[0],
                    panels.ctypes.data + 4 * first * d_head,
                    4 * WIDE,
                    scores + 4 * (first - low),
                    width,
                    zeros,
                    d_head,
                    end - start,
                )
            for i in range(start, end):
                first, last = max(0, i - before), min(n_keys, i + after + 1)
                row = floats_at(scores + (i - start) * width, high - low)
                seen = row[first - low : last - low]
                if bias != 0:
                    of_keys = bias + head * bias_of_head + i * bias_of_query + 4 * first
                    own_bias = floats_at(of_keys, last - first)
                    for j in range(len(seen)):
                        seen[j] += own_bias[j]
                softmax(seen)
                row[: first - low] = np.float32(0)
                row[last - low :] = np.float32(0)
            weigh(
                scores,
                width,
                own_value + low * value.strides[0],
                value.strides[0],
                context.ctypes.data + start * context.strides[0] + head * context.strides[1],
                context.strides[0],
                d_head,
                zeros,
                high - low,
                end - start,
            )


def fits(query: Array, key: Array, value: Array) -> bool:
    """Whether the tiles fit the heads, and the numbers of each lie side by side."""
    return query.shape[-1] % NARROW == 0 and all(x.strides[-1] == x.itemsize for x in (query, key, value))


def attention(
    query: Array, key: Array, value: Array, mask: Array | None = None, trace: Tracer = no_trace
) -> Array:
    """``softmax(Q K^T / sqrt(d_head) + mask) V`` of one text; nothing is traced.

    Query ``(n_heads, n_query, d_head)``, key and value ``(n_kv_heads, n_key, d_head)``, to the shape of the
    query. NumPy does the work where the sizes fit no tile.
    """
    if not fits(query, key, value):
        return numpy_attention(query, key, value, mask)
    n_all = max(query.shape[1], key.shape[1])
    if mask is None:
        return run(query, key, value, (0, 0, 0), n_all, n_all)
    scores = (len(query), query.shape[1], key.shape[1])
    bias = np.broadcast_to(mask if mask.strides[-1] == mask.itemsize else mask.copy(), scores)
    of_head, of_query, _ = bias.strides
    return run(query, key, value, (bias.ctypes.data, of_head, of_query), n_all, n_all)


def windowed_attention(
    query: Array, key: Array, value: Array, before: int, after: int, trace: Tracer = no_trace
) -> Array:
    """`attention` to keys at most ``before`` tokens before and ``after`` behind a query, as `attention`."""
    if not fits(query, key, value):
        return numpy_windowed_attention(query, key, value, before, after)
    return run(query, key, value, (0, 0, 0), before, after)


def run(query: Array, key: Array, value: Array, bias: tuple[int, int, int], before: int, after: int) -> Array:
    """Call the compiled function on heads in front: ``(n_heads, n_query, d_head)``."""
    n_heads, n_query, d_head = query.shape
    # In this layout, merging the heads copies nothing.
    context = np.empty((n_query, n_heads, d_head), np.float32)
    attend(*(x.swapaxes(0, 1) for x in (query, key, value)), *bias, before, after, context)
    return context.swapaxes(0, 1)
