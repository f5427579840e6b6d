"""Steps of attention: to the cached keys for a few tokens, and to a whole prompt's (see `steps`)."""

import numpy as np

from engine.layers.atomics import read
from engine.layers.head_registers import HEADS_TOGETHER, make_dots, make_weighted_sum, narrow, widen
from engine.layers.jit import njit
from engine.layers.products import LANES, WIDE, exp, ordered, wide_product
from engine.layers.registers import HEAD
from engine.layers.shares import FAST, numbers, part_of
from engine.layers.tracing import Array

dot, dots, heads_dots = make_dots(1), make_dots(LANES), make_dots(LANES, HEADS_TOGETHER)
weighted_sum, heads_weighted_sum = make_weighted_sum(), make_weighted_sum(HEADS_TOGETHER)

QUERY_BLOCK = 64  # queries of a prompt that one share attends for
SUMMARY = 2  # numbers kept of a part's scores: the largest, and the sum of their exponentials


@njit
def remember(step: Array, share: int) -> None:
    """Write some tokens' keys and values into the cache, as float16, behind those it holds."""
    n_shares, key, stride, n_tokens, value, n_kv_heads, d_head, keys, values, capacity, length = step[1:12]
    past = read(length)
    first, last = part_of(n_tokens, share, n_shares)
    for i in range(first, last):
        for head in range(n_kv_heads):
            place = 2 * d_head * (head * capacity + past + i)
            own = i * stride + 4 * d_head * head
            for d in range(0, d_head, HEAD):
                narrow(key + own + 4 * d, keys + place + 2 * d)
                narrow(value + own + 4 * d, values + place + 2 * d)


@njit(fastmath=FAST)
def largest_of(x: Array) -> np.float32:
    """Largest of some numbers, none of them NaN."""
    bits = x.view(np.int32)
    order = ordered(bits[0])
    for j in range(len(x)):
        order = max(order, ordered(bits[j]))
    return np.int32(ordered(order)).view(np.float32)


@njit(fastmath=FAST)
def exponentials(x: Array, largest: np.float32) -> np.float32:
    """``exp(x - largest)``, in place; return their sum."""
    total = np.float32(0)
    for j in range(len(x)):
        x[j] = exp(x[j] - largest)
        total += x[j]
    return total


@njit(fastmath=FAST, error_model="numpy")
def attend_to_part(step: Array, share: int) -> None:
    """Attention of few tokens to a part of the keys of one key head (Dao et al. 2023, flash decoding).

    What is left of a part are the values weighed by their scores' exponentials, and a `SUMMARY`. A token's
    numbers are the same, to the last bit, whichever others stand behind it.
    """
    n_shares, query, stride, n_tokens, n_heads, n_kv_heads, d_head = step[1:8]
    keys, values, capacity, length, scores, parts = step[8:14]
    n_parts = n_shares // n_kv_heads
    past = read(length)
    for token in range(n_tokens):
        token_attends_to_part(
            query + token * stride,
            n_heads,
            n_kv_heads,
            d_head,
            keys,
            values,
            capacity,
            past + token + 1,
            scores + 4 * token * n_heads * capacity,
            parts + 4 * token * n_heads * n_parts * (d_head + SUMMARY),
            share // n_parts,
            share % n_parts,
            n_parts,
        )


@njit(fastmath=FAST, error_model="numpy")
def token_attends_to_part(
    query: int,
    n_heads: int,
    n_kv_heads: int,
    d_head: int,
    keys: int,
    values: int,
    capacity: int,
    n_all: int,
    scores: int,
    parts: int,
    kv_head: int,
    part: int,
    n_parts: int,
) -> None:
    """`attend_to_part` of one token, which sees ``n_all`` keys; heads that share keys go together."""
    first, last = part_of(-(-n_all // LANES), part, n_parts)
    first, last = LANES * first, min(LANES * last, n_all)
    n_keys, group = last - first, n_heads // n_kv_heads
    width, place = d_head + SUMMARY, 2 * d_head * (kv_head * capacity + first)
    scale = np.float32(1) / np.sqrt(np.float32(d_head))
    head, end = kv_head * group, (kv_head + 1) * group
    if n_keys == 0:
        for empty in range(head, end):
            summary = numbers(parts + 4 * width * (empty * n_parts + part) + 4 * d_head, SUMMARY)
            summary[0], summary[1] = np.float32(0), np.float32(0)
        return
    while head < end:
        n_together = HEADS_TOGETHER if head + HEADS_TOGETHER <= end else 1
        own, out = scores + 4 * (head * capacity + first), parts + 4 * width * (head * n_parts + part)
        for i in range(n_together):
            numbers(own + 4 * capacity * i, n_keys)[:] = np.float32(0)
        add_scores(query + 4 * d_head * head, d_head, keys + place, own, 4 * capacity, n_keys, n_together)
        for i in range(n_together):
            s = numbers(own + 4 * capacity * i, n_keys)
            summary = numbers(out + 4 * (width * n_parts * i + d_head), SUMMARY)
            s *= scale
            summary[0] = largest_of(s)
            summary[1] = exponentials(s, summary[0])
        weigh(own, 4 * capacity, values + place, d_head, out, 4 * width * n_parts, n_keys, n_together)
        head += n_together


@njit
def add_scores(
    query: int, d_head: int, keys: int, scores: int, scores_stride: int, n_keys: int, n_heads: int
) -> None:
    """Add ``query . key`` of all keys to the scores of one head or `HEADS_TOGETHER`."""
    n_turns, stride = n_keys // LANES, 2 * d_head
    rest = LANES * n_turns
    for d in range(0, d_head, HEAD):
        q, k = query + 4 * d, keys + 2 * d
        if n_turns > 0 and n_heads == HEADS_TOGETHER:
            heads_dots(q, 4 * d_head, k, stride, scores, scores_stride, n_turns)
        elif n_turns > 0:
            dots(q, 0, k, stride, scores, 0, n_turns)
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
def merge_parts(step: Array, share: int) -> None:
    """Put together what `attend_to_part` left: the context of some tokens' heads to a share."""
    n_shares, parts, n_parts, n_tokens, n_heads, d_head, context = step[1:8]
    width = d_head + SUMMARY
    first, last = part_of(n_tokens * n_heads, share, n_shares)
    for head in range(first, last):
        own = parts + 4 * width * n_parts * head
        out = numbers(context + 4 * d_head * head, d_head)
        out[:] = np.float32(0)
        largest, total = np.float32(-np.inf), np.float32(0)
        for part in range(n_parts):
            summary = numbers(own + 4 * (width * part + d_head), SUMMARY)
            if summary[1] != 0:  # an empty part has no largest score; NaN is not empty
                largest = max(largest, summary[0])
        for part in range(n_parts):
            values = numbers(own + 4 * width * part, d_head)
            summary = numbers(own + 4 * (width * part + d_head), SUMMARY)
            if summary[1] != 0:
                weight = exp(summary[0] - largest)
                total += weight * summary[1]
                for d in range(d_head):
                    out[d] += weight * values[d]
        out /= total


@njit
def lay_out(step: Array, share: int, thread: int) -> None:
    """Keys and values of a prompt as float32 for `attend`, `WIDE` of a head to a share.

    Keys become panels ``(d_head, WIDE)`` of ``K^T / sqrt(d_head)``, the last filled up with zeros.
    """
    n_shares, keys, values, capacity, n_kv_heads, d_head, n_keys, key_panels, single_values = step[1:10]
    n_panels = n_shares // n_kv_heads
    head, first = share // n_panels, share % n_panels * WIDE
    scale = np.float32(1) / np.sqrt(np.float32(d_head))
    columns = numbers(key_panels + 4 * d_head * WIDE * share, d_head * WIDE).reshape(d_head, WIDE)
    for lane in range(WIDE):
        j = first + lane
        if j >= n_keys:
            columns[:, lane] = np.float32(0)
            continue
        place = 2 * d_head * (head * capacity + j)
        single = single_values + 4 * d_head * (head * n_keys + j)
        for d in range(0, d_head, HEAD):  # the key stands in the value's place for a moment
            widen(keys + place + 2 * d, single + 4 * d)
        key = numbers(single, d_head)
        for d in range(d_head):
            columns[d, lane] = key[d] * scale
        for d in range(0, d_head, HEAD):
            widen(values + place + 2 * d, single + 4 * d)


@njit(fastmath=FAST, error_model="numpy")
def attend(step: Array, share: int, thread: int) -> None:
    """Attention of `QUERY_BLOCK` tokens to themselves and those before them, one head to a share."""
    n_shares, query, stride, n_tokens, n_heads, n_kv_heads, d_head, key_panels, values, n_keys = step[1:11]
    context, scratch, nothing = step[11:14]
    n_blocks, n_panels = n_shares // n_heads, (n_keys + WIDE - 1) // WIDE
    # The blocks with the most keys come first, so that none of them is left for the end.
    head, block = share // n_blocks, n_blocks - 1 - share % n_blocks
    kv_head = head // (n_heads // n_kv_heads)
    first, last = block * QUERY_BLOCK, min((block + 1) * QUERY_BLOCK, n_tokens)
    past = n_keys - n_tokens
    seen = past + last  # keys that the last of these tokens sees
    width = n_panels * WIDE
    scores = scratch + 4 * QUERY_BLOCK * width * thread
    own_query = query + first * stride + 4 * d_head * head
    for i in range((seen + WIDE - 1) // WIDE):
        panel = key_panels + 4 * d_head * WIDE * (kv_head * n_panels + i)
        wide_product(
            own_query,
            stride,
            panel,
            4 * WIDE,
            scores + 4 * WIDE * i,
            4 * width,
            nothing,
            d_head,
            last - first,
        )
    for i in range(first, last):
        row = numbers(scores + 4 * width * (i - first), seen)
        visible = row[: past + i + 1]
        total = exponentials(visible, largest_of(visible))
        visible *= np.float32(1) / total
        row[past + i + 1 :] = np.float32(0)
    own_context, context_stride = context + 4 * d_head * (n_heads * first + head), 4 * d_head * n_heads
    own_values = values + 4 * d_head * n_keys * kv_head
    for d in range(0, d_head, WIDE):
        wide_product(
            scores,
            4 * width,
            own_values + 4 * d,
            4 * d_head,
            own_context + 4 * d,
            context_stride,
            nothing,
            seen,
            last - first,
        )
