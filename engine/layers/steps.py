"""The steps of a decoder, compiled (numba), and the loop in which threads go through a list of them.

Each is a primitive of the decoder's forward pass for float32, made like those in `products`. A *step* is a
row of integers: what to do, in how many *shares*, and the addresses and sizes of its arrays; strides are
in bytes. Threads take share after share until none is left, and go on to the next step when all shares
are done. So one call from Python goes through a whole model, and a thread that comes late, or never,
costs no more than its help.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numba import boolean, carray, int64, njit

from engine.layers.atomics import add, give_way, integers_at, numbers_at, pause, read, write
from engine.layers.products import LANES, WIDE, exp, ordered, wide_product
from engine.layers.registers import (
    BLOCK,
    DOT_PRODUCTS,
    FIXED_BYTES,
    HEAD,
    HEADS_TOGETHER,
    TOGETHER,
    Kind,
    fixed_point,
    make_dots,
    make_fixed_point_product,
    make_row_product,
    make_unpack,
    make_weighted_sum,
    narrow,
    prefetch,
    widen,
)
from engine.layers.tracing import Array

FAST = {"reassoc", "contract", "nsz", "arcp"}  # as in `kernels`
ROW = 16  # integers of a step
N_TOKENS = 4  # where a step of few tokens says how many they are
LINE = 8  # integers of a cache line: what one thread writes often stands in a line of its own

LINEAR, TO_FIXED_POINT, RMS_NORM, LAYER_NORM, ROTATE, ADD, SWIGLU, GELU_NEW = range(8)
REMEMBER, ATTEND_TO_PART, MERGE_PARTS, LAY_OUT, ATTEND = range(8, 13)

KINDS: tuple[Kind, ...] = ("q4", "q8", "f16", "bf16", "f32")
Q4, Q8, F16, BF16, F32 = range(5)
FIXED = 5  # a Q4 matrix times numbers in fixed point
row_q4, row_q8, row_f16, row_bf16, row_f32 = (make_row_product(kind) for kind in KINDS)
rows_q8, row_fixed, rows_fixed = (
    make_row_product("q8", TOGETHER),
    make_fixed_point_product(),
    make_fixed_point_product(TOGETHER),
)
dot, dots, heads_dots = make_dots(1), make_dots(LANES), make_dots(LANES, HEADS_TOGETHER)
weighted_sum, heads_weighted_sum = make_weighted_sum(), make_weighted_sum(HEADS_TOGETHER)
unpack_q4, unpack_q8, unpack_f16, unpack_bf16, unpack_f32 = (make_unpack(kind) for kind in KINDS)

FEW_TOKENS = 8  # up to which rows are multiplied one by one; with more, a panel is unpacked for all of them
QUERY_BLOCK = 64  # queries of a prompt that one share attends for
AT_HAND = 1000  # rounds of waiting within which a thread that runs is done with its share
SUMMARY = 2  # numbers kept of a part's scores: the largest, and the sum of their exponentials
GELU_SCALE = np.float32(np.sqrt(2 / np.pi))


@njit(inline="always")
def numbers(address: int, n: int) -> Array:
    """Return the float32 numbers at an address."""
    return carray(numbers_at(address), (n,))


@njit(inline="always")
def part_of(n: int, share: int, n_shares: int) -> tuple[int, int]:
    """Where a share of ``n`` things begins and ends."""
    return share * n // n_shares, (share + 1) * n // n_shares


@njit
def row_product(kind: int, x: int, panel: int, y: int, start: int, n_turns: int) -> None:
    """``y = panel x + start`` for one row of x."""
    if DOT_PRODUCTS and kind == FIXED:
        row_fixed(x, 0, panel, y, 0, start, n_turns)
    elif kind == Q4:
        row_q4(x, 0, panel, y, 0, start, n_turns)
    elif kind == Q8:
        row_q8(x, 0, panel, y, 0, start, n_turns)
    elif kind == F16:
        row_f16(x, 0, panel, y, 0, start, n_turns)
    elif kind == BF16:
        row_bf16(x, 0, panel, y, 0, start, n_turns)
    else:
        row_f32(x, 0, panel, y, 0, start, n_turns)


@njit
def row_products(
    kind: int, x: int, x_stride: int, n_rows: int, panel: int, y: int, y_stride: int, start: int, n_turns: int
) -> None:
    """``y = panel x + start`` for a few rows of x, `TOGETHER` at once where that saves unpacking."""
    row = 0
    if kind == Q8 or (DOT_PRODUCTS and kind == FIXED):
        while row + TOGETHER <= n_rows:
            own_x, own_y = x + row * x_stride, y + row * y_stride
            if kind == Q8:
                rows_q8(own_x, x_stride, panel, own_y, y_stride, start, n_turns)
            elif DOT_PRODUCTS:
                rows_fixed(own_x, x_stride, panel, own_y, y_stride, start, n_turns)
            row += TOGETHER
    while row < n_rows:
        row_product(kind, x + row * x_stride, panel, y + row * y_stride, start, n_turns)
        row += 1


@njit
def to_fixed_point(step: Array, share: int) -> None:
    """Write rows as fixed-point blocks; some blocks to a share."""
    n_shares, x, x_stride, n_tokens, n_blocks, blocks = step[1:7]
    first, last = part_of(n_tokens * n_blocks, share, n_shares)
    for i in range(first, last):
        fixed_point(x + i // n_blocks * x_stride + 4 * BLOCK * (i % n_blocks), blocks + FIXED_BYTES * i)


@njit
def unpack(kind: int, panel: int, columns: int, n_turns: int) -> None:
    """Write a panel as float32 ``(d_in, WIDE)``."""
    if kind == Q4:
        unpack_q4(panel, columns, n_turns)
    elif kind == Q8:
        unpack_q8(panel, columns, n_turns)
    elif kind == F16:
        unpack_f16(panel, columns, n_turns)
    elif kind == BF16:
        unpack_bf16(panel, columns, n_turns)
    else:
        unpack_f32(panel, columns, n_turns)


@njit
def linear(step: Array, share: int, thread: int) -> None:
    """``x W^T + b``, some panels of W to a share."""
    n_shares, x, x_stride, n_tokens, d_in, panels, n_panels, panel_bytes, kind, n_turns = step[1:11]
    y, bias, scratch = step[11:14]
    y_stride = 4 * WIDE * n_panels
    if n_tokens <= FEW_TOKENS:
        first, last = part_of(n_panels, share, n_shares)
        for i in range(first, last):
            panel, own_y, b = panels + i * panel_bytes, y + 4 * WIDE * i, bias + 4 * WIDE * i
            row_products(kind, x, x_stride, n_tokens, panel, own_y, y_stride, b, n_turns)
        return
    n_parts = n_shares // n_panels  # of the tokens
    i = share // n_parts
    first, last = part_of(n_tokens, share % n_parts, n_parts)
    columns = scratch + 4 * WIDE * d_in * thread
    unpack(kind, panels + i * panel_bytes, columns, n_turns)
    x_first, y_first = x + first * x_stride, y + first * y_stride + 4 * WIDE * i
    b = bias + 4 * WIDE * i
    wide_product(x_first, x_stride, columns, 4 * WIDE, y_first, y_stride, b, d_in, last - first)


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
    while head < end:
        n_together = HEADS_TOGETHER if head + HEADS_TOGETHER <= end else 1
        own, out = scores + 4 * (head * capacity + first), parts + 4 * width * (head * n_parts + part)
        for i in range(n_together):
            s = numbers(own + 4 * capacity * i, n_keys)
            s[:] = np.float32(0)
        if n_keys > 0:
            add_scores(query + 4 * d_head * head, d_head, keys + place, own, 4 * capacity, n_keys, n_together)
        for i in range(n_together):
            s = numbers(own + 4 * capacity * i, n_keys)
            summary = numbers(out + 4 * (width * n_parts * i + d_head), SUMMARY)
            summary[0], summary[1] = np.float32(0), np.float32(0)
            if n_keys > 0:
                s *= scale
                summary[0] = largest_of(s)
                summary[1] = exponentials(s, summary[0])
        if n_keys > 0:
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


@njit(inline="always")
def do(step: Array, share: int, thread: int) -> None:
    """Do one share of a step."""
    what = step[0]
    if what == LINEAR:
        linear(step, share, thread)
    elif what == TO_FIXED_POINT:
        to_fixed_point(step, share)
    elif what == RMS_NORM:
        rms_norm(step, share)
    elif what == LAYER_NORM:
        layer_norm(step, share)
    elif what == ROTATE:
        rotate(step, share)
    elif what == ADD:
        add_rows(step, share)
    elif what == SWIGLU:
        swiglu(step, share)
    elif what == GELU_NEW:
        gelu_new(step, share)
    elif what == REMEMBER:
        remember(step, share)
    elif what == ATTEND_TO_PART:
        attend_to_part(step, share)
    elif what == MERGE_PARTS:
        merge_parts(step, share)
    elif what == LAY_OUT:
        lay_out(step, share, thread)
    elif what == ATTEND:
        attend(step, share, thread)


@njit
def go_through(program: int, n_steps: int, counters: int, thread: int, n_threads: int) -> int:
    """Take part in every step of a program, until all shares of all steps are done.

    Returns the longest wait for other threads, in rounds.

    Every thread has shares of its own, which lie side by side, and then takes what others have left. A
    step counts in ``1 + n_threads`` cache lines: the shares done, and those taken of every thread's own.
    Steps of one share that follow each other are done by one thread, who has not to wait in between.
    """
    longest, i = 0, 0
    while i < n_steps:
        n_shares = step_of(program, i)[1]
        done = counters + 8 * LINE * (1 + n_threads) * i
        n_chained = 1
        while n_shares == 1 and i + n_chained < n_steps and step_of(program, i + n_chained)[1] == 1:
            n_chained += 1
        i += n_chained
        if i < n_steps:
            prepare(step_of(program, i), thread, n_threads)
        for other in range(n_threads):
            owner = (thread + other) % n_threads
            first, last = part_of(n_shares, owner, n_threads)
            taken = done + 8 * LINE * (1 + owner)
            while read(taken) < last - first:
                share = first + add(taken, 1)
                if share < last:
                    for j in range(i - n_chained, i):
                        do(step_of(program, j), share, thread)
                    add(done, 1)
        waited = 0
        while read(done) < n_shares:
            wait(waited)
            waited += 1
        longest = max(longest, waited)
    return longest


@njit(inline="always")
def step_of(program: int, i: int) -> Array:
    """Return a step of a program: ``(ROW,)``."""
    return carray(integers_at(program + 8 * ROW * i), (ROW,))


@njit(inline="always")
def prepare(step: Array, thread: int, n_threads: int) -> None:
    """Ask for the first weights that a thread will need in the next step, while it is busy with this one."""
    if step[0] == LINEAR:
        n_shares, panels, n_panels, panel_bytes = step[1], step[6], step[7], step[8]
        first, _ = part_of(n_shares, thread, n_threads)
        prefetch(panels + first * n_panels // n_shares * panel_bytes)


@njit
def wait(waited: int) -> None:
    """Wait a moment for another thread, who may have lost his core where that has been long."""
    if waited < AT_HAND:
        pause()
    else:
        give_way()


# What the leader of a program and its helpers tell each other, each in a cache line of its own: a number
# that is odd while a program may be joined, how many helpers are in it, where it is and for how many
# threads, and how many helpers are awake.
EPOCH, INSIDE, PROGRAM, N_STEPS, COUNTERS, N_THREADS, AWAKE = (8 * LINE * i for i in range(7))
BOARD = 7 * LINE


def sources() -> str:
    """Hash of the files that the entries below are compiled from."""
    folder = Path(__file__).parent
    names = ("atomics.py", "products.py", "registers.py", "steps.py")
    return hashlib.sha256(b"".join((folder / name).read_bytes() for name in names)).hexdigest()


def entries(version: str) -> tuple[Callable[..., int], Callable[..., bool]]:
    """Return the two functions that Python calls.

    numba keeps what it compiled for as long as the file of a function and what it closes over are the
    same; it does not look at other files. So these close over the ``version`` of all of them.
    """

    @njit(int64(int64, int64, int64, int64, int64, int64, int64), nogil=True, cache=True)
    def take_part(
        board: int, thread: int, n_threads: int, patience: int, program: int, n_steps: int, counters: int
    ) -> int:
        """Lead through a program (thread 0), or help with every program that comes up.

        The leader has the help of those who are awake; without a board (0) there are none. A helper goes
        when no program has come up for ``patience`` rounds of waiting. Returns the longest wait for other
        threads, in rounds.
        """
        _ = version
        longest = 0
        if thread == 0:
            if board:
                write(board + PROGRAM, program)
                write(board + N_STEPS, n_steps)
                write(board + COUNTERS, counters)
                write(board + N_THREADS, n_threads)
                add(board + EPOCH, 1)
            longest = go_through(program, n_steps, counters, thread, n_threads)
            if board:
                add(board + EPOCH, 1)
                while read(board + INSIDE) > 0:
                    give_way()
            return longest
        add(board + AWAKE, 1)
        waited, seen = 0, 0
        while waited < patience:
            epoch = read(board + EPOCH)
            if epoch % 2 == 0 or epoch == seen:
                wait(waited)
                waited += 1
                continue
            add(board + INSIDE, 1)
            if read(board + EPOCH) == epoch:
                program, n_steps = read(board + PROGRAM), read(board + N_STEPS)
                counters, n_threads = read(board + COUNTERS), read(board + N_THREADS)
                if thread < n_threads:
                    longest = go_through(program, n_steps, counters, thread, n_threads)
            add(board + INSIDE, -1)
            seen, waited = epoch, 0
        add(board + AWAKE, -1)
        return longest

    @njit(boolean(*[int64] * 4, int64[::1], *[int64] * 4), nogil=True, cache=True)
    def unpack_rows(
        kind: int,
        panels: int,
        panel_bytes: int,
        n_turns: int,
        rows: Array,
        d_out: int,
        columns: int,
        y: int,
        d_in: int,
    ) -> bool:
        """Write some rows of a packed matrix as float32, or return False where it has not all of them.

        ``columns`` has room for an unpacked panel.
        """
        _ = version
        for row in rows:
            if not 0 <= row < d_out:
                return False
        unpacked = -1
        panel = numbers(columns, d_in * WIDE)
        for i in range(len(rows)):
            if rows[i] // WIDE != unpacked:
                unpacked = rows[i] // WIDE
                unpack(kind, panels + unpacked * panel_bytes, columns, n_turns)
            y_row, lane = numbers(y + 4 * d_in * i, d_in), rows[i] % WIDE
            for j in range(d_in):
                y_row[j] = panel[j * WIDE + lane]
        return True

    return take_part, unpack_rows


take_part, unpack_rows = entries(sources())
