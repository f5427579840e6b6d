"""Operations of attention: of a few tokens to cached keys, and of a whole prompt (see `op_loop`)."""

import numpy as np

from ..layers.tracing import Array
from .gemm import LANES, WIDE, wide_product
from .jit import njit
from .memory import floats_at, load, split_range
from .rows import FAST, exp, exponentials, maximum, softmax
from .simd import HEAD
from .simd_attention import HEADS_TOGETHER, make_dots, make_weighted_sum, narrow, widen

QUERY_BLOCK = 64  # queries of a prompt in a task
SUMMARY = 2  # numbers kept of a split's scores: their maximum, and the sum of their exponentials

# Cached keys and values are float16. Tokens may have caches of their own: a row of a table has the addresses
# of a token's keys and values, the capacity, and the number of tokens before it.
ROW_SIZE = 4


@njit
def cache_of(rows: int, token: int, layer: int, n_kv_heads: int, d_head: int) -> tuple[int, ...]:
    """Return a token's row of the table, with the addresses of a layer."""
    row = rows + 8 * ROW_SIZE * token
    keys, values, capacity, past = load(row), load(row + 8), load(row + 16), load(row + 24)
    n_bytes = 2 * d_head * layer * n_kv_heads * capacity  # of earlier layers
    return keys + n_bytes, values + n_bytes, capacity, past


@njit
def write_cache(op: Array, task: int) -> None:
    """Append keys and values to the caches, some tokens to a task."""
    n_tasks, key, key_stride, n_tokens, value, value_stride, n_kv_heads, d_head, rows, layer = op[1:11]
    first, last = split_range(n_tokens, task, n_tasks)
    for i in range(first, last):
        keys, values, capacity, past = cache_of(rows, i, layer, n_kv_heads, d_head)
        for head in range(n_kv_heads):
            place = 2 * d_head * (head * capacity + past)
            for d in range(0, d_head, HEAD):
                narrow(key + i * key_stride + 4 * (d_head * head + d), keys + place + 2 * d)
                narrow(value + i * value_stride + 4 * (d_head * head + d), values + place + 2 * d)


@njit(fastmath=FAST, error_model="numpy")
def attend_to_split(op: Array, task: int) -> None:
    """Attention of few tokens to a split of the keys of one key head (Dao et al. 2023, flash decoding).

    A token sees ``window`` keys at most, its own last. Writes the values weighed by their
    scores' exponentials, and a `SUMMARY`. A token's result is the same, to the last bit, whichever others
    are with it.
    """
    n_tasks, n_tokens, n_kv_heads = op[1], op[4], op[6]
    n_splits = n_tasks // n_kv_heads
    for token in range(n_tokens):
        attend_token_to_split(op, token, task // n_splits, task % n_splits, n_splits)


@njit(fastmath=FAST, error_model="numpy")
def attend_token_to_split(op: Array, token: int, kv_head: int, split: int, n_splits: int) -> None:
    """`attend_to_split` of one token; heads that share keys are batched."""
    query, stride, _, n_heads, n_kv_heads, d_head = op[2:8]
    rows, layer, scores, width, splits, window, factor = op[8:15]
    keys, values, capacity, past = cache_of(rows, token, layer, n_kv_heads, d_head)
    n_before = past + 1  # keys up to its own
    unseen = max(n_before - window, 0)
    n_seen, scale = n_before - unseen, floats_at(factor, 1)[0]
    query += token * stride
    scores += 4 * token * n_heads * width
    splits += 4 * token * n_heads * n_splits * (d_head + SUMMARY)
    first, last = split_range(-(-n_seen // LANES), split, n_splits)
    first, last = LANES * first, min(LANES * last, n_seen)
    n_keys, group = last - first, n_heads // n_kv_heads
    size, place = d_head + SUMMARY, 2 * d_head * (kv_head * capacity + unseen + first)
    head, end = kv_head * group, (kv_head + 1) * group
    if n_keys == 0:
        for empty in range(head, end):
            summary = floats_at(splits + 4 * size * (empty * n_splits + split) + 4 * d_head, SUMMARY)
            summary[0], summary[1] = np.float32(0), np.float32(0)
        return
    while head < end:
        n_together = HEADS_TOGETHER if head + HEADS_TOGETHER <= end else 1
        own_query = query + 4 * d_head * head
        own, out = scores + 4 * (head * width + first), splits + 4 * size * (head * n_splits + split)
        for i in range(n_together):
            floats_at(own + 4 * width * i, n_keys)[:] = np.float32(0)
        add_scores(own_query, d_head, keys + place, own, 4 * width, n_keys, n_together)
        for i in range(n_together):
            s = floats_at(own + 4 * width * i, n_keys)
            summary = floats_at(out + 4 * (size * n_splits * i + d_head), SUMMARY)
            s *= scale
            summary[0] = maximum(s)
            summary[1] = exponentials(s, summary[0])
        weigh(own, 4 * width, values + place, d_head, out, 4 * size * n_splits, n_keys, n_together)
        head += n_together


dot, dots, heads_dots = make_dots(1), make_dots(LANES), make_dots(LANES, HEADS_TOGETHER)
weighted_sum, heads_weighted_sum = make_weighted_sum(), make_weighted_sum(HEADS_TOGETHER)


@njit
def add_scores(
    query: int, d_head: int, keys: int, scores: int, scores_stride: int, n_keys: int, n_heads: int
) -> None:
    """Add ``query . key`` of all keys to the scores, for one head or `HEADS_TOGETHER`."""
    n_iterations, stride = n_keys // LANES, 2 * d_head
    rest = LANES * n_iterations
    for d in range(0, d_head, HEAD):
        q, k = query + 4 * d, keys + 2 * d
        if n_iterations > 0 and n_heads == HEADS_TOGETHER:
            heads_dots(q, 4 * d_head, k, stride, scores, scores_stride, n_iterations)
        elif n_iterations > 0:
            dots(q, 0, k, stride, scores, 0, n_iterations)
        for i in range(n_heads if rest < n_keys else 0):
            own = scores + scores_stride * i + 4 * rest
            dot(q + 4 * d_head * i, 0, k + stride * rest, stride, own, 0, n_keys - rest)


@njit
def weigh(
    weights: int, stride: int, values: int, d_head: int, out: int, out_stride: int, n_keys: int, n_heads: int
) -> None:
    """Write the sum of all values times their weights, for one head or `HEADS_TOGETHER`."""
    for d in range(0, d_head, HEAD):
        v, own = values + 2 * d, out + 4 * d
        if n_heads == HEADS_TOGETHER:
            heads_weighted_sum(weights, stride, v, 2 * d_head, own, out_stride, n_keys)
        else:
            weighted_sum(weights, 0, v, 2 * d_head, own, 0, n_keys)


@njit(fastmath=FAST, error_model="numpy")
def merge_splits(op: Array, task: int) -> None:
    """Merge the results of `attend_to_split` into the context; some tokens' heads to a task."""
    n_tasks, splits, n_splits, n_tokens, n_heads, d_head, context = op[1:8]
    width = d_head + SUMMARY
    first, last = split_range(n_tokens * n_heads, task, n_tasks)
    for head in range(first, last):
        own = splits + 4 * width * n_splits * head
        out = floats_at(context + 4 * d_head * head, d_head)
        out[:] = np.float32(0)
        largest, total = np.float32(-np.inf), np.float32(0)
        for split in range(n_splits):
            summary = floats_at(own + 4 * (width * split + d_head), SUMMARY)
            if summary[1] != 0:  # an empty split has no largest score; NaN is not empty
                largest = max(largest, summary[0])
        for split in range(n_splits):
            values = floats_at(own + 4 * width * split, d_head)
            summary = floats_at(own + 4 * (width * split + d_head), SUMMARY)
            if summary[1] != 0:
                weight = exp(summary[0] - largest)
                total += weight * summary[1]
                for d in range(d_head):
                    out[d] += weight * values[d]
        out /= total


@njit
def widen_cache(op: Array, task: int, thread: int) -> None:
    """Convert cached keys and values to float32 for `attend`, `WIDE` of a head to a task.

    Keys become panels ``(d_head, WIDE)`` of ``scale K^T``, the last padded with zeros.
    """
    n_tasks, keys, values, capacity, n_kv_heads, d_head, n_keys, key_panels, single_values = op[1:10]
    scale = floats_at(op[10], 1)[0]
    n_panels = n_tasks // n_kv_heads
    head, first = task // n_panels, task % n_panels * WIDE
    columns = floats_at(key_panels + 4 * d_head * WIDE * task, d_head * WIDE).reshape(d_head, WIDE)
    for lane in range(WIDE):
        j = first + lane
        if j >= n_keys:
            columns[:, lane] = np.float32(0)
            continue
        place = 2 * d_head * (head * capacity + j)
        single = single_values + 4 * d_head * (head * n_keys + j)
        for d in range(0, d_head, HEAD):
            widen(keys + place + 2 * d, single + 4 * d)  # the value then overwrites the key
        key = floats_at(single, d_head)
        for d in range(d_head):
            columns[d, lane] = key[d] * scale
        for d in range(0, d_head, HEAD):
            widen(values + place + 2 * d, single + 4 * d)


@njit(fastmath=FAST, error_model="numpy")
def attend(op: Array, task: int, thread: int) -> None:
    """Causal attention of `QUERY_BLOCK` tokens of a prompt to ``window`` keys, one head to a task."""
    n_tasks, query, stride, n_tokens, n_heads, n_kv_heads, d_head, key_panels, values, n_keys = op[1:11]
    context, scratch, zeros, window = op[11:15]
    n_blocks, n_panels = n_tasks // n_heads, (n_keys + WIDE - 1) // WIDE
    # The blocks with the most keys, which take longest, come first.
    head, block = task // n_blocks, n_blocks - 1 - task % n_blocks
    kv_head = head // (n_heads // n_kv_heads)
    first, last = block * QUERY_BLOCK, min((block + 1) * QUERY_BLOCK, n_tokens)
    past = n_keys - n_tokens
    seen = past + last  # keys that the last of these tokens sees
    begin = max(past + first + 1 - window, 0) // WIDE * WIDE  # the first panel that the first of them sees
    width = n_panels * WIDE
    scores = scratch + 4 * QUERY_BLOCK * width * thread
    own_query = query + first * stride + 4 * d_head * head
    for i in range(begin // WIDE, (seen + WIDE - 1) // WIDE):
        panel = key_panels + 4 * d_head * WIDE * (kv_head * n_panels + i)
        wide_product(
            own_query, stride, panel, 4 * WIDE, scores + 4 * WIDE * i, 4 * width, zeros, d_head, last - first
        )
    for i in range(first, last):
        row = floats_at(scores + 4 * width * (i - first), seen)
        visible = row[max(past + i + 1 - window, 0) : past + i + 1]
        softmax(visible)
        row[begin : max(past + i + 1 - window, begin)] = np.float32(0)
        row[past + i + 1 :] = np.float32(0)
    own_context, context_stride = context + 4 * d_head * (n_heads * first + head), 4 * d_head * n_heads
    own_values = values + 4 * d_head * (n_keys * kv_head + begin)
    for d in range(0, d_head, WIDE):
        wide_product(
            scores + 4 * begin,
            4 * width,
            own_values + 4 * d,
            4 * d_head,
            own_context + 4 * d,
            context_stride,
            zeros,
            seen - begin,
            last - first,
        )
