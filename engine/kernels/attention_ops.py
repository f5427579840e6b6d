"""Operations of attention: of a few tokens to cached keys, and of a whole prompt (see `op_loop`)."""

import numpy as np

from engine.kernels.atomics import load
from engine.kernels.gemm import FAST, LANES, WIDE, exp, ordered, wide_product
from engine.kernels.jit import njit
from engine.kernels.simd import HEAD
from engine.kernels.simd_attention import HEADS_TOGETHER, make_dots, make_weighted_sum, narrow, widen
from engine.kernels.work_split import floats_at, split_range
from engine.layers.tracing import Array

dot, dots, heads_dots = make_dots(1), make_dots(LANES), make_dots(LANES, HEADS_TOGETHER)
weighted_sum, heads_weighted_sum = make_weighted_sum(), make_weighted_sum(HEADS_TOGETHER)

QUERY_BLOCK = 64  # queries of a prompt in a task
SUMMARY = 2  # numbers kept of a split's scores: their maximum, and the sum of their exponentials


@njit
def write_cache(op: Array, task: int) -> None:
    """Append keys and values to the cache as float16, some tokens to a task."""
    n_tasks, key, key_stride, n_tokens, value, value_stride, n_kv_heads, d_head = op[1:9]
    keys, values, capacity, length = op[9:13]
    past = load(length)
    first, last = split_range(n_tokens, task, n_tasks)
    for i in range(first, last):
        for head in range(n_kv_heads):
            place = 2 * d_head * (head * capacity + past + i)
            own_key = key + i * key_stride + 4 * d_head * head
            own_value = value + i * value_stride + 4 * d_head * head
            for d in range(0, d_head, HEAD):
                narrow(own_key + 4 * d, keys + place + 2 * d)
                narrow(own_value + 4 * d, values + place + 2 * d)


@njit(fastmath=FAST)
def maximum(x: Array) -> np.float32:
    """Maximum of numbers without NaN."""
    bits = x.view(np.int32)
    order = ordered(bits[0])
    for j in range(len(x)):
        order = max(order, ordered(bits[j]))
    return np.int32(ordered(order)).view(np.float32)


@njit(fastmath=FAST)
def exponentials(x: Array, largest: np.float32) -> np.float32:
    """Write ``exp(x - largest)`` in place, and return the sum."""
    total = np.float32(0)
    for j in range(len(x)):
        x[j] = exp(x[j] - largest)
        total += x[j]
    return total


@njit(fastmath=FAST, error_model="numpy")
def attend_to_split(op: Array, task: int) -> None:
    """Attention of few tokens to a split of the keys of one key head (Dao et al. 2023, flash decoding).

    A token sees ``window`` keys at most, the last of which is its own. Writes the values weighed by their
    scores' exponentials, and a `SUMMARY`. A token's result is the same, to the last bit, whichever tokens
    follow it.
    """
    n_tasks, query, stride, n_tokens, n_heads, n_kv_heads, d_head = op[1:8]
    keys, values, capacity, length, scores, splits, window, scale = op[8:16]
    n_splits = n_tasks // n_kv_heads
    past = load(length)
    for token in range(n_tokens):
        unseen = max(past + token + 1 - window, 0)
        attend_token_to_split(
            query + token * stride,
            n_heads,
            n_kv_heads,
            d_head,
            keys + 2 * d_head * unseen,
            values + 2 * d_head * unseen,
            capacity,
            past + token + 1 - unseen,
            floats_at(scale, 1)[0],
            scores + 4 * token * n_heads * capacity,
            splits + 4 * token * n_heads * n_splits * (d_head + SUMMARY),
            task // n_splits,
            task % n_splits,
            n_splits,
        )


@njit(fastmath=FAST, error_model="numpy")
def attend_token_to_split(
    query: int,
    n_heads: int,
    n_kv_heads: int,
    d_head: int,
    keys: int,
    values: int,
    capacity: int,
    n_seen: int,
    scale: np.float32,
    scores: int,
    splits: int,
    kv_head: int,
    split: int,
    n_splits: int,
) -> None:
    """`attend_to_split` of one token and the ``n_seen`` keys it sees; heads that share keys are batched."""
    first, last = split_range(-(-n_seen // LANES), split, n_splits)
    first, last = LANES * first, min(LANES * last, n_seen)
    n_keys, group = last - first, n_heads // n_kv_heads
    width, place = d_head + SUMMARY, 2 * d_head * (kv_head * capacity + first)
    head, end = kv_head * group, (kv_head + 1) * group
    if n_keys == 0:
        for empty in range(head, end):
            summary = floats_at(splits + 4 * width * (empty * n_splits + split) + 4 * d_head, SUMMARY)
            summary[0], summary[1] = np.float32(0), np.float32(0)
        return
    while head < end:
        n_together = HEADS_TOGETHER if head + HEADS_TOGETHER <= end else 1
        own, out = scores + 4 * (head * capacity + first), splits + 4 * width * (head * n_splits + split)
        for i in range(n_together):
            floats_at(own + 4 * capacity * i, n_keys)[:] = np.float32(0)
        add_scores(query + 4 * d_head * head, d_head, keys + place, own, 4 * capacity, n_keys, n_together)
        for i in range(n_together):
            s = floats_at(own + 4 * capacity * i, n_keys)
            summary = floats_at(out + 4 * (width * n_splits * i + d_head), SUMMARY)
            s *= scale
            summary[0] = maximum(s)
            summary[1] = exponentials(s, summary[0])
        weigh(own, 4 * capacity, values + place, d_head, out, 4 * width * n_splits, n_keys, n_together)
        head += n_together


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
    weights: int,
    weights_stride: int,
    values: int,
    d_head: int,
    out: int,
    out_stride: int,
    n_keys: int,
    n_heads: int,
) -> None:
    """Write the sum of all values times their weights, for one head or `HEADS_TOGETHER`."""
    for d in range(0, d_head, HEAD):
        v, own = values + 2 * d, out + 4 * d
        if n_heads == HEADS_TOGETHER:
            heads_weighted_sum(weights, weights_stride, v, 2 * d_head, own, out_stride, n_keys)
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
        for d in range(0, d_head, HEAD):  # the key, in memory that the value then overwrites
            widen(keys + place + 2 * d, single + 4 * d)
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
            own_query,
            stride,
            panel,
            4 * WIDE,
            scores + 4 * WIDE * i,
            4 * width,
            zeros,
            d_head,
            last - first,
        )
    for i in range(first, last):
        row = floats_at(scores + 4 * width * (i - first), seen)
        visible = row[max(past + i + 1 - window, 0) : past + i + 1]
        total = exponentials(visible, maximum(visible))
        visible *= np.float32(1) / total
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
