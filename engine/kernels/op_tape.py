"""Compiled operations of a decoder's forward pass, recorded on a tape that can be replayed.

Forward passes over a few more tokens call the same primitives on the same arrays; only the inputs, the
number of tokens and their caches differ. So one pass is recorded, and from then on a token takes one call
from Python instead of some four hundred. Its tokens may belong to several texts: a matrix is read once for
all of them.
"""

from collections import defaultdict
from functools import cached_property
from math import prod
from weakref import ReferenceType, finalize, ref

import numpy as np

from ..layers.activation import Activation, gelu_new_backward
from ..layers.attention import CachedKeys
from ..layers.tracing import Array, Tracer, no_trace
from ..weights.quantized import UNIT
from . import op_loop
from .attention_ops import QUERY_BLOCK, ROW_SIZE, SUMMARY
from .gemm import WIDE
from .matrix_ops import FEW_TOKENS, is_fixed_point, product_kernel, unpack_kernel
from .memory import address
from .packed import PackedMatrix, StackedMatrix
from .simd import HEAD
from .simd_matrix import FIXED_BYTES
from .thread_pool import n_threads, run

N_TASKS = 4 * n_threads  # of an operation that can be split so often: threads are not equally fast
TASK_BYTES = 16_384  # smallest part of a matrix that is worth a task
N_SPLITS = 2 * n_threads  # of the keys of a head, for the attention of few tokens
GATED = {"silu": op_loop.SWIGLU, "gelu_new": op_loop.GEGLU}
ALL_KEYS = 2**32  # a window wider than any text


def fits(d_head: int, activation: str) -> bool:
    """Whether the operations support a decoder with these heads and this activation."""
    return d_head % HEAD == 0 and activation in GATED


def scores_per_key(n_heads: int) -> int:
    """Most scores of each key in memory: of the few tokens of a recorded pass, and of blocks of a prompt."""
    return FEW_TOKENS * n_heads + n_threads * QUERY_BLOCK


class OpTape:
    """Compiled twins of the decoder's primitives, which run at once or are recorded on a tape.

    With a ``capacity`` it is a tape to record, for caches of so many tokens at most: it keeps the arrays that
    the operations work on, and `replay` runs them as often as it is called; intermediate arrays may reuse the
    memory of earlier ones. Else operations run at once, behind ``length`` tokens in the cache.
    """

    def __init__(self, length: int, capacity: int | None = None) -> None:
        self.length, self.capacity = length, capacity
        self.rows = np.zeros((FEW_TOKENS, ROW_SIZE), np.int64)  # of the tokens of a recorded pass
        self.ops: list[list[int]] = []
        self.buffers = BufferPool()
        self.arrays: list[Array] = []  # of the recorded operations, besides those in the buffers
        self.zeros: dict[int, Array] = {}

    @property
    def activations(self) -> dict[str, Activation]:
        """The activations by name; an attribute would hold the tape, and its buffers, beyond its last use."""
        return {"gelu_new": Activation(self.gelu_new, gelu_new_backward)}

    def replay(self, rows: Array) -> None:
        """Run the recorded operations on the tokens of some `cache_rows`, as many as recorded at most."""
        self.rows[: len(rows)] = rows
        self.recorded[:, op_loop.N_TOKENS] = len(rows)
        run(self.recorded)

    @cached_property
    def recorded(self) -> Array:
        """The recorded operations, int64 ``(n_ops, OP_SIZE)``."""
        return np.array(self.ops, np.int64)

    def emit(self, opcode: int, n_tasks: int, *arguments: int | Array) -> None:
        """Run an operation, or record it; arrays are passed by their addresses."""
        arrays = [item for item in arguments if isinstance(item, np.ndarray)]
        integers = [address(item) if isinstance(item, np.ndarray) else item for item in arguments]
        op = [opcode, n_tasks, *integers] + [0] * (op_loop.OP_SIZE - 2 - len(integers))
        if self.capacity is not None:
            self.ops.append(op)
            self.arrays += [array for array in arrays if not self.buffers.owns(array)]
        else:
            run(np.array([op], np.int64))

    def linear(self, x: Array, weight: PackedMatrix | StackedMatrix, bias: Array | None = None) -> Array:
        """``x W^T + b``: ``(n_tokens, d_in) -> (n_tokens, d_out)``."""
        parts = weight.parts if isinstance(weight, StackedMatrix) else (weight,)
        d_out = weight.shape[0]
        # The last panel of a part is written whole; the next part then writes over what is beyond its rows.
        width = d_out - parts[-1].shape[0] + len(parts[-1].panels) * WIDE
        y, first = self.buffers.empty((len(x), width)), 0
        fixed = self.fixed_point(x) if any(self.uses_fixed_point(x, part) for part in parts) else x
        for part in parts:
            own = None if bias is None else bias[first : first + part.shape[0]]
            rows = fixed if self.uses_fixed_point(x, part) else x
            self.multiply(rows, part, own, y[:, first:], x.shape[1])
            first += part.shape[0]
        return y[:, :d_out]

    def uses_fixed_point(self, x: Array, weight: PackedMatrix) -> bool:
        """Whether rows meet a matrix in fixed point: a few of them, and codes of a few bits."""
        return len(x) <= FEW_TOKENS and is_fixed_point(weight.kind)

    def fixed_point(self, x: Array) -> Array:
        """Rows in fixed-point units: ``(n_tokens, d_in) -> (n_tokens, n_units, FIXED_BYTES)`` bytes."""
        n_tokens, n_units = len(x), x.shape[1] // UNIT
        fixed = self.buffers.empty((n_tokens, n_units, FIXED_BYTES), np.uint8)
        self.emit(op_loop.TO_FIXED_POINT, 1, x, x.strides[0], n_tokens, n_units, fixed)
        return fixed

    def multiply(self, x: Array, weight: PackedMatrix, bias: Array | None, y: Array, d_in: int) -> None:
        """Write ``x W^T + b`` to the first columns of ``y``, panel by panel."""
        n_tokens = len(x)
        n_panels, panel_bytes = weight.panels.shape
        start = self.padded_bias(n_panels * WIDE, bias)
        if n_tokens <= FEW_TOKENS:
            kernel = product_kernel(weight.kind).address
            n_tasks = max(1, min(n_panels, N_TASKS, weight.nbytes // TASK_BYTES))
            scratch = start  # not used
        else:
            kernel = unpack_kernel(weight.kind).address
            n_tasks = n_panels * max(1, -(-N_TASKS // n_panels))
            scratch = self.buffers.empty((n_threads, d_in * WIDE))
        matrix = (weight.panels, n_panels, panel_bytes, kernel, weight.n_units)
        rows = (x, x.strides[0], n_tokens, d_in)
        self.emit(op_loop.LINEAR, n_tasks, *rows, *matrix, y, y.strides[0], start, scratch)

    def padded_bias(self, n: int, bias: Array | None) -> Array:
        """Return a bias, or zeros for None, padded with zeros to ``n`` numbers: ``(n,)``."""
        if bias is None:
            return self.zeros.setdefault(n, np.zeros(n, np.float32))
        return np.concatenate([bias, np.zeros(n - len(bias), np.float32)])

    def rms_norm(self, x: Array, weight: Array, eps: float) -> Array:
        """``x / sqrt(mean(x^2) + eps) * weight`` of ``(n_tokens, d)``, or of ``(n_heads, n_tokens, d)``."""
        heads = x if x.ndim == 3 else x[None]
        n_heads, n_tokens, d = heads.shape
        y, floor = self.buffers.empty((n_tokens, n_heads, d)), np.array([eps], np.float32)
        rows = (heads, heads.strides[1], n_tokens, d)
        sizes = (*rows, np.ascontiguousarray(weight), floor, y, n_heads)
        self.emit(op_loop.RMS_NORM, row_tasks(n_tokens), *sizes)
        return y.swapaxes(0, 1) if x.ndim == 3 else y[:, 0]

    def layer_norm(self, x: Array, weight: Array, bias: Array, eps: float) -> Array:
        """``(x - mean) / sqrt(var + eps) * weight + bias`` of ``(n_tokens, d_model)``."""
        y, floor = self.buffers.empty(x.shape), np.array([eps], np.float32)
        scale, shift = np.ascontiguousarray(weight), np.ascontiguousarray(bias)
        self.emit(op_loop.LAYER_NORM, row_tasks(len(x)), *row_layout(x), scale, floor, y, shift)
        return y

    def add(self, x: Array, y: Array) -> Array:
        """``x + y`` of ``(n_tokens, d_model)``."""
        z = self.buffers.empty(x.shape)
        self.emit(op_loop.ADD, row_tasks(len(x)), *row_layout(x), y, y.strides[0], z)
        return z

    def gated(self, gate: Array, up: Array, activation: str) -> Array:
        """``f(gate) * up`` of ``(n_tokens, d_ff)``; ``activation`` names f, a key of `GATED`."""
        y = self.buffers.empty(gate.shape)
        self.emit(GATED[activation], N_TASKS, *row_layout(gate), up, up.strides[0], y)
        return y

    def gelu_new(self, x: Array) -> Array:
        """The tanh approximation of GELU of ``(n_tokens, d_ff)``."""
        y = self.buffers.empty(x.shape)
        self.emit(op_loop.GELU_NEW, N_TASKS, *row_layout(x), y)
        return y

    def apply_rope(self, x: Array, cos: Array, sin: Array) -> Array:
        """Rotate the pairs of ``(n_heads, n_tokens, d_head)``, in place."""
        n_heads, n_tokens, d_head = x.shape
        sizes = (n_tokens, n_heads, d_head, cos, sin, cos.shape[1])
        self.emit(op_loop.ROTATE, row_tasks(n_tokens), x, x.strides[1], *sizes)
        return x

    def causal_attention(
        self,
        query: Array,
        key: Array,
        value: Array,
        cache: CachedKeys,
        layer: int,
        trace: Tracer = no_trace,
        window: int | None = None,
        scale: float | None = None,
    ) -> Array:
        """Add the new tokens to the cache, and attend to the tokens in it; traces only the ``context``."""
        n_heads, n_tokens, d_head = query.shape
        n_kv_heads, n_keys = len(key), self.length + n_tokens
        factor = np.array([1 / np.sqrt(d_head) if scale is None else scale], np.float32)
        n_seen = ALL_KEYS if window is None else window
        if self.capacity is None:
            cache.reserve(n_keys)
            rows, width = cache_rows(cache, self.length, n_tokens), n_keys
        else:  # of the caches that a replay names
            rows, width = self.rows, self.capacity
        new = (key, key.strides[1], n_tokens, value, value.strides[1])
        self.emit(op_loop.WRITE_CACHE, row_tasks(n_tokens), *new, n_kv_heads, d_head, rows, layer)
        context = self.buffers.empty((n_tokens, n_heads, d_head))
        if n_tokens <= FEW_TOKENS:
            scores = self.buffers.empty((n_tokens, n_heads, width))
            parts = self.buffers.empty((n_tokens, n_heads, N_SPLITS, d_head + SUMMARY))
            heads = (query, query.strides[1], n_tokens, n_heads, n_kv_heads, d_head)
            written = (rows, layer, scores, width, parts)
            self.emit(op_loop.ATTEND_TO_SPLIT, n_kv_heads * N_SPLITS, *heads, *written, n_seen, factor)
            self.emit(op_loop.MERGE_SPLITS, 1, parts, N_SPLITS, n_tokens, n_heads, d_head, context)
            return trace("context", context.swapaxes(0, 1))
        n_panels, n_blocks = -(-n_keys // WIDE), -(-n_tokens // QUERY_BLOCK)
        key_panels = self.buffers.empty((n_kv_heads, n_panels, d_head, WIDE))
        single_values = self.buffers.empty((n_kv_heads, n_keys, d_head))
        cached = (cache.keys[layer], cache.values[layer], cache.keys.shape[2])
        copies = (n_kv_heads, d_head, n_keys, key_panels, single_values, factor)
        self.emit(op_loop.WIDEN_CACHE, n_kv_heads * n_panels, *cached, *copies)
        scores = self.buffers.empty((n_threads, QUERY_BLOCK, n_panels * WIDE))
        queries = (query, query.strides[1], n_tokens, n_heads, n_kv_heads, d_head)
        rest = (key_panels, single_values, n_keys, context, scores, self.padded_bias(WIDE, None))
        self.emit(op_loop.ATTEND, n_heads * n_blocks, *queries, *rest, n_seen)
        return trace("context", context.swapaxes(0, 1))


class BufferPool:
    """Allocates intermediate arrays, and reuses their memory when neither the array nor a view of it is left.

    Recently written memory is still in the processor's cache, fresh memory is not, so that this makes a
    decoder's pass over three tokens 15 % faster.
    """

    def __init__(self) -> None:
        # By size. The pool keeps its buffers, so addresses in them stay valid for as long as it exists.
        self._free: dict[int, list[bytearray]] = defaultdict(list)
        self._in_use: set[int] = set()

    def empty(self, shape: tuple[int, ...], dtype: type = np.float32) -> Array:
        """Return an uninitialised array."""
        n_bytes = prod(shape) * np.dtype(dtype).itemsize
        free = self._free[n_bytes]
        buffer = free.pop() if free else bytearray(n_bytes)
        # Views of this array keep it alive: NumPy does not replace it by its own base, which is no array.
        array: Array = np.frombuffer(buffer, dtype)
        self._in_use.add(id(array))
        finalize(array, release, ref(self), id(array), buffer)
        return array.reshape(shape)

    def owns(self, array: Array) -> bool:
        """Whether an array, or the array that it is a view of, lies in this pool."""
        return id(array.base) in self._in_use


def release(pool: ReferenceType[BufferPool], array: int, buffer: bytearray) -> None:
    """Give the buffer of an array that is gone, by the id that it had, back to its pool.

    The pool may be gone, too: an array does not keep the other buffers in memory.
    """
    owner = pool()
    if owner is not None:
        owner._in_use.remove(array)
        owner._free[len(buffer)].append(buffer)


def cache_rows(cache: CachedKeys, length: int, n_tokens: int) -> Array:
    """Rows for `replay` of tokens behind the first ``length`` in a cache: ``(n_tokens, ROW_SIZE)``."""
    row = np.array([address(cache.keys), address(cache.values), cache.keys.shape[2], length], np.int64)
    rows = np.tile(row, (n_tokens, 1))
    rows[:, -1] += np.arange(n_tokens)
    return rows


def row_layout(x: Array) -> tuple[Array, int, int, int]:
    """Arguments of an operation for an array ``(n_tokens, d)``: the array, its row stride, its shape."""
    return (x, x.strides[0], *x.shape)


def row_tasks(n_rows: int) -> int:
    """Number of tasks of an operation on rows: one for a few, which take less time than synchronising."""
    return 1 if n_rows <= FEW_TOKENS else N_TASKS
