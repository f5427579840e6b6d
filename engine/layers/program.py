"""The primitives of a decoder, compiled, as steps that can be gone through again.

A forward pass over a few more tokens calls the same primitives, on arrays in the same places, as the one
before: what differs is what stands in its inputs, how many tokens they are, and how long the cache is. So
one pass is written down, and from then on a token takes one call, not some four hundred.
"""

from functools import cached_property

import numpy as np

from engine.layers import steps
from engine.layers.atomics import address
from engine.layers.attention import CachedKeys
from engine.layers.attention_steps import QUERY_BLOCK, SUMMARY
from engine.layers.matrix_registers import DOT_PRODUCTS, FIXED_BYTES
from engine.layers.matrix_steps import FEW_TOKENS, FIXED, KINDS
from engine.layers.packed import PackedMatrix
from engine.layers.products import WIDE
from engine.layers.registers import BLOCK, HEAD
from engine.layers.room import Room
from engine.layers.team import n_threads, run
from engine.layers.tracing import Array, Tracer, no_trace

SHARES = 4 * n_threads  # a step has so many, where it can: threads are not equally fast
SHARE_BYTES = 16_384  # less than this of a matrix is not worth a share
PARTS = 2 * n_threads  # of the keys of a head, for the attention of few tokens
ACTIVATIONS = ("gelu_new", "gelu_pytorch_tanh")


def fits(d_head: int, activation: str) -> bool:
    """Whether there are steps for a decoder of these heads and this activation."""
    return d_head % HEAD == 0 and activation in ("swiglu", *ACTIVATIONS)


class Program:
    """Compiled twins of the decoder's primitives; each goes through its steps when it is called.

    With ``record`` they are only written down, and `run` goes through them, as often as it is called.

    Parameters
    ----------
    length
        Tokens in the cache before those of the pass.
    record
        Write the steps down, and keep the arrays that they work on; what is between them may lie where
        something of no more use lay before.
    """

    def __init__(self, length: int, record: bool = False) -> None:
        self.length = np.array([length], np.int64)
        self.record = record
        self.steps: list[list[int]] = []
        self.room = Room()
        self.arrays: list[Array] = []  # whose addresses are in the steps, besides those in the room
        self.zeros: dict[int, Array] = {}
        self.activations = dict.fromkeys(ACTIVATIONS, self.gelu_new)

    def run(self, length: int, n_tokens: int) -> None:
        """Go through the recorded steps with the first ``n_tokens`` rows, behind ``length`` cached tokens.

        They are at most as many as were recorded, and at most `FEW_TOKENS`.
        """
        self.length[0] = length
        self.recorded[:, steps.N_TOKENS] = n_tokens
        run(self.recorded)

    @cached_property
    def recorded(self) -> Array:
        """The recorded steps, int64 ``(n_steps, ROW)``."""
        return np.array(self.steps, np.int64)

    def do(self, what: int, n_shares: int, *arguments: int | Array) -> None:
        """Go through one step, or write it down; of an array it has the address."""
        arrays = [item for item in arguments if isinstance(item, np.ndarray)]
        numbers = [address(item) if isinstance(item, np.ndarray) else item for item in arguments]
        step = [what, n_shares, *numbers] + [0] * (steps.ROW - 2 - len(numbers))
        if self.record:
            self.steps.append(step)
            self.arrays += [array for array in arrays if not self.room.has_lent(array)]
        else:
            run(np.array([step], np.int64))

    def linear(self, x: Array, weight: PackedMatrix, bias: Array | None = None) -> Array:
        """``x W^T + b``: ``(n_tokens, d_in) -> (n_tokens, d_out)``."""
        n_tokens, d_in = x.shape
        n_panels, panel_bytes = weight.panels.shape
        y = self.room.empty((n_tokens, n_panels * WIDE))
        start = self.starts(n_panels * WIDE, bias)
        if n_tokens <= FEW_TOKENS:
            n_shares = max(1, min(n_panels, SHARES, weight.nbytes // SHARE_BYTES))
            scratch = start  # not used
        else:
            n_shares = n_panels * max(1, -(-SHARES // n_panels))
            scratch = self.room.empty((n_threads, d_in * WIDE))
        kind, stride = KINDS.index(weight.kind), x.strides[0]
        if DOT_PRODUCTS and weight.kind == "q4" and n_tokens <= FEW_TOKENS:
            n_blocks = d_in // BLOCK
            fixed = self.room.empty((n_tokens, n_blocks, FIXED_BYTES), np.uint8)
            self.do(steps.TO_FIXED_POINT, 1, x, stride, n_tokens, n_blocks, fixed)
            kind, x, stride = FIXED, fixed, fixed.strides[0]
        matrix = (weight.panels, n_panels, panel_bytes, kind, weight.n_turns)
        self.do(steps.LINEAR, n_shares, x, stride, n_tokens, d_in, *matrix, y, start, scratch)
        return y[:, : weight.shape[0]]

    def starts(self, n: int, bias: Array | None) -> Array:
        """What ``n`` sums begin with: a bias, filled up with zeros."""
        if bias is None:
            return self.zeros.setdefault(n, np.zeros(n, np.float32))
        return np.concatenate([bias, np.zeros(n - len(bias), np.float32)])

    def rms_norm(self, x: Array, weight: Array, eps: float) -> Array:
        """``x / sqrt(mean(x^2) + eps) * weight`` of ``(n_tokens, d_model)``."""
        y, floor = self.room.empty(x.shape), np.array([eps], np.float32)
        self.do(steps.RMS_NORM, shares_of_rows(len(x)), *rows(x), np.ascontiguousarray(weight), floor, y)
        return y

    def layer_norm(self, x: Array, weight: Array, bias: Array, eps: float) -> Array:
        """``(x - mean) / sqrt(var + eps) * weight + bias`` of ``(n_tokens, d_model)``."""
        y, floor = self.room.empty(x.shape), np.array([eps], np.float32)
        scale, shift = np.ascontiguousarray(weight), np.ascontiguousarray(bias)
        self.do(steps.LAYER_NORM, shares_of_rows(len(x)), *rows(x), scale, floor, y, shift)
        return y

    def add(self, x: Array, y: Array) -> Array:
        """``x + y`` of ``(n_tokens, d_model)``."""
        z = self.room.empty(x.shape)
        self.do(steps.ADD, shares_of_rows(len(x)), *rows(x), y, y.strides[0], z)
        return z

    def swiglu(self, gate: Array, up: Array) -> Array:
        """``silu(gate) * up`` of ``(n_tokens, d_ff)``."""
        y = self.room.empty(gate.shape)
        self.do(steps.SWIGLU, SHARES, *rows(gate), up, up.strides[0], y)
        return y

    def gelu_new(self, x: Array) -> Array:
        """The tanh approximation of GELU of ``(n_tokens, d_ff)``."""
        y = self.room.empty(x.shape)
        self.do(steps.GELU_NEW, SHARES, *rows(x), y)
        return y

    def apply_rope(self, x: Array, cos: Array, sin: Array) -> Array:
        """Rotate the pairs of ``(n_heads, n_tokens, d_head)``, in place."""
        n_heads, n_tokens, d_head = x.shape
        self.do(steps.ROTATE, shares_of_rows(n_tokens), x, x.strides[1], n_tokens, n_heads, d_head, cos, sin)
        return x

    def causal_attention(
        self,
        query: Array,
        key: Array,
        value: Array,
        cache: CachedKeys,
        layer: int,
        trace: Tracer = no_trace,
    ) -> Array:
        """Attention to the cached tokens and the new ones, which the cache takes in; nothing is traced."""
        n_heads, n_tokens, d_head = query.shape
        n_kv_heads, n_keys = len(key), int(self.length[0]) + n_tokens
        if not self.record:  # which is of fewer tokens perhaps: whoever goes through it makes room
            cache.reserve(n_keys)
        keys, values = cache.keys[layer], cache.values[layer]
        capacity = keys.shape[1]
        sizes = (n_kv_heads, d_head, keys, values, capacity, self.length)
        self.do(steps.REMEMBER, shares_of_rows(n_tokens), key, key.strides[1], n_tokens, value, *sizes)
        context = self.room.empty((n_tokens, n_heads, d_head))
        if n_tokens <= FEW_TOKENS:
            scores = self.room.empty((n_tokens, n_heads, capacity))
            parts = self.room.empty((n_tokens, n_heads, PARTS, d_head + SUMMARY))
            heads = (query, query.strides[1], n_tokens, n_heads, n_kv_heads, d_head)
            cached = (keys, values, capacity, self.length)
            self.do(steps.ATTEND_TO_PART, n_kv_heads * PARTS, *heads, *cached, scores, parts)
            self.do(steps.MERGE_PARTS, 1, parts, PARTS, n_tokens, n_heads, d_head, context)
            return context.swapaxes(0, 1)
        n_panels, n_blocks = -(-n_keys // WIDE), -(-n_tokens // QUERY_BLOCK)
        panels = self.room.empty((n_kv_heads, n_panels, d_head, WIDE))
        singles = self.room.empty((n_kv_heads, n_keys, d_head))
        sources = (keys, values, capacity, n_kv_heads, d_head, n_keys)
        self.do(steps.LAY_OUT, n_kv_heads * n_panels, *sources, panels, singles)
        scores = self.room.empty((n_threads, QUERY_BLOCK, n_panels * WIDE))
        queries = (query, query.strides[1], n_tokens, n_heads, n_kv_heads, d_head)
        nothing = self.starts(WIDE, None)
        last = (panels, singles, n_keys, context, scores, nothing)
        self.do(steps.ATTEND, n_heads * n_blocks, *queries, *last)
        return context.swapaxes(0, 1)


def rows(x: Array) -> tuple[Array, int, int, int]:
    """What a step is told of ``(n_tokens, d)``: where it is, how far apart its rows are, and its shape."""
    return (x, x.strides[0], *x.shape)


def shares_of_rows(n_rows: int) -> int:
    """In how many shares a step goes over rows; few are quicker done than waited for."""
    return 1 if n_rows <= FEW_TOKENS else SHARES
