"""Matrices in panels for the compiled kernels, quantized as in their file."""

import threading
from dataclasses import dataclass
from weakref import ref

import numpy as np

from ..layers.tracing import Array
from ..weights.quantized import QUANTIZED, UNIT, from_bit_rows, in_units
from .gemm import WIDE
from .matrix_ops import unpack_kernel
from .memory import address
from .op_loop import LINE, unpack_rows
from .panel_layout import LAYOUTS

CACHE_LINE = 8 * LINE  # bytes


@dataclass(frozen=True)
class PackedMatrix:
    """A matrix in panels of `WIDE` rows, the last padded with zeros; rows and ``T`` are read as float32."""

    kind: str  # GGUF's name of the type of its numbers
    shape: tuple[int, int]  # ``(d_out, d_in)``
    panels: Array  # bytes, ``(n_panels, bytes of a panel)``, in the order of a `PanelLayout`

    dtype = np.dtype(np.float32)  # of the rows it returns

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self.panels.nbytes

    @property
    def n_units(self) -> int:
        """Iterations of a kernel over a panel: units of columns, or single columns."""
        return self.shape[1] // LAYOUTS[self.kind].n_columns

    def __getitem__(self, rows: Array) -> Array:
        """Return rows by their numbers, none of them negative: ``(n,) -> (n, d_in)``."""
        d_out, d_in = self.shape
        y, columns = np.empty((len(rows), d_in), np.float32), np.empty((d_in, WIDE), np.float32)
        panels = (address(self.panels), self.panels.shape[1], self.n_units)
        rows = np.ascontiguousarray(rows, np.int64)
        kernel = unpack_kernel(self.kind).address
        if not unpack_rows(kernel, *panels, rows, d_out, address(columns), address(y), d_in):
            raise IndexError(f"rows {rows.min()} to {rows.max()} of a matrix that has {d_out}")
        return y

    @property
    def T(self) -> Array:
        """The transposed matrix, ``(d_in, d_out)``."""
        return self[np.arange(self.shape[0])].T


@dataclass(frozen=True)
class StackedMatrix:
    """Matrices of the same input, one below the other, each in its own type."""

    parts: tuple[PackedMatrix, ...]

    dtype = np.dtype(np.float32)  # of the rows it returns

    @property
    def shape(self) -> tuple[int, int]:
        """``(d_out, d_in)``."""
        return sum(part.shape[0] for part in self.parts), self.parts[0].shape[1]

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return sum(part.nbytes for part in self.parts)

    def __getitem__(self, rows: Array) -> Array:
        """Return rows by their numbers, as `PackedMatrix` does."""
        return np.ascontiguousarray(self.T.T[rows])

    @property
    def T(self) -> Array:
        """The transposed matrix, ``(d_in, d_out)``."""
        return np.concatenate([part.T for part in self.parts], axis=1)


def pack(kind: str, rows: Array) -> PackedMatrix:
    """Pack the rows of a `StoredTensor` of one of `KINDS`: ``(d_out, d_in)`` numbers, or bytes of blocks."""
    n_panels, layout = -(-len(rows) // WIDE), LAYOUTS[kind]
    if kind not in QUANTIZED:
        panels = allocate(n_panels, rows.shape[1] * rows.itemsize * WIDE)
        fill(panels.view(rows.dtype).reshape(n_panels, -1, WIDE), rows)
        return PackedMatrix(kind, (len(rows), rows.shape[1]), panels)
    n_blocks = rows.shape[1] // QUANTIZED[kind].n_bytes
    panels = allocate(n_panels, n_blocks * layout.block_bytes * WIDE)
    at_once = WIDE * max(1, CHUNK_BYTES // (WIDE * rows.shape[1]))
    for first in range(0, len(rows), at_once):
        chunk = slice(first // WIDE, (first + at_once) // WIDE)
        fill_blocks(panels[chunk], kind, rows[first : first + at_once])
    return PackedMatrix(kind, (len(rows), n_blocks * layout.n_units * layout.n_columns), panels)


CHUNK_BYTES = 1 << 20  # of a matrix that are rearranged at once: what fits in a cache


def fill_blocks(panels: Array, kind: str, rows: Array) -> None:
    """Rearrange rows of a quantised type in some panels, ``(n_panels, bytes of a panel)``."""
    own, layout = QUANTIZED[kind], LAYOUTS[kind]
    fields, n_header = own.split(rows), 2 * layout.n_halves * WIDE
    blocks = panels.reshape(len(panels), -1, layout.block_bytes * WIDE)
    units = blocks[..., n_header:].reshape(*blocks.shape[:2], layout.n_units, -1)
    halves = blocks[..., :n_header].view(np.uint16).reshape(*blocks.shape[:2], -1, WIDE)
    for n, name in enumerate(own.halves):
        fill(halves[:, :, n], fields[name].view(np.uint16)[..., 0])
    start, word = layout.n_scale_bytes * WIDE, np.uint8 if layout.by_column else np.uint32
    if own.read_scales:
        fill(units[..., :start].reshape(*units.shape[:3], -1, WIDE), own.read_scales(fields))
    for name, bits, run in own.planes:
        own_run = bits * UNIT // 8
        of_plane = units[..., start : start + own_run * WIDE].view(word)
        of_plane = of_plane.reshape(*units.shape[:3], -1, WIDE)
        start += own_run * WIDE
        plane = (from_bit_rows(fields[name]) if run == 1 else fields[name]).view(word)
        if run in (1, own_run):
            fill(of_plane, plane.reshape(*plane.shape[:2], layout.n_units, -1))
            continue
        words = np.empty((*blocks.shape[:2], plane.shape[2], WIDE), np.uint32)
        fill(words, plane)
        of_plane[:] = in_units(words, bits, run)


def fill(panels: Array, rows: Array) -> None:
    """Interleave `WIDE` rows at a time: ``(d_out, ...)`` into ``(n_panels, ..., WIDE)``."""
    n_whole, n_rest = divmod(len(rows), WIDE)
    whole = rows[: n_whole * WIDE].reshape(n_whole, WIDE, *rows.shape[1:])
    panels[:n_whole] = np.moveaxis(whole, 1, -1)
    if n_rest:
        panels[n_whole, ..., :n_rest] = np.moveaxis(rows[n_whole * WIDE :], 0, -1)
        panels[n_whole, ..., n_rest:] = 0


# Matrices share a few large pieces of memory: these get huge pages, which cause fewer TLB misses.
PIECE_BYTES = 1 << 25
_piece, _used = ref(np.empty(0)), 0  # kept by its matrices, and the bytes of it that they have
_piece_lock = threading.Lock()


def allocate(n_panels: int, panel_bytes: int) -> Array:
    """Return bytes ``(n_panels, panel_bytes)`` of a shared piece, which is freed with its last matrix."""
    global _piece, _used
    n_bytes = n_panels * panel_bytes
    with _piece_lock:
        piece = _piece()
        if piece is None or _used + n_bytes > len(piece):
            piece = np.empty(max(n_bytes + CACHE_LINE, PIECE_BYTES), np.uint8)
            _piece, _used = ref(piece), -address(piece) % CACHE_LINE
        start, _used = _used, _used + -(-n_bytes // CACHE_LINE) * CACHE_LINE
    return piece[start : start + n_bytes].reshape(n_panels, panel_bytes)
