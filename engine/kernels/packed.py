"""Matrices in panels for the compiled kernels, quantized as in their file."""

import threading
from dataclasses import dataclass

import numpy as np

from engine.kernels.atomics import address
from engine.kernels.gemm import WIDE
from engine.kernels.matrix_ops import KINDS
from engine.kernels.op_loop import LINE, unpack_rows
from engine.kernels.simd import BLOCK, COLUMNS, Kind
from engine.layers.tracing import Array

CACHE_LINE = 8 * LINE  # bytes


@dataclass(frozen=True)
class PackedMatrix:
    """A matrix in panels of `WIDE` rows, the last padded with zeros; rows and ``T`` are read as float32.

    Attributes
    ----------
    kind
        Number format: ``q4`` is ``scale * code + offset`` with codes of 4 bits, ``q8`` is ``scale * code``
        with codes of 8 bits, each with a float16 scale (and offset) for `BLOCK` columns of a row; the
        others are floating-point numbers.
    shape
        ``(d_out, d_in)``.
    panels
        Bytes, ``(n_panels, bytes of a panel)``.
    """

    kind: Kind
    shape: tuple[int, int]
    panels: Array

    dtype = np.dtype(np.float32)  # of the rows it returns

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self.panels.nbytes

    @property
    def n_iterations(self) -> int:
        """Iterations of a kernel over a panel: blocks of columns, or single columns."""
        return self.shape[1] // COLUMNS[self.kind]

    def __getitem__(self, rows: Array) -> Array:
        """Return rows by their numbers, none of them negative: ``(n,) -> (n, d_in)``."""
        d_out, d_in = self.shape
        y, columns = np.empty((len(rows), d_in), np.float32), np.empty((d_in, WIDE), np.float32)
        panels = (address(self.panels), self.panels.shape[1], self.n_iterations)
        rows = np.ascontiguousarray(rows, np.int64)
        if not unpack_rows(KINDS.index(self.kind), *panels, rows, d_out, address(columns), address(y), d_in):
            raise IndexError(f"rows {rows.min()} to {rows.max()} of a matrix that has {d_out}")
        return y

    @property
    def T(self) -> Array:
        """The transposed matrix, ``(d_in, d_out)``."""
        return self[np.arange(self.shape[0])].T


def pack(kind: str, rows: Array) -> PackedMatrix:
    """Pack the ``rows`` of a `StoredTensor` of one of the kept kinds.

    Parameters
    ----------
    kind
        GGUF's name of the format: ``Q4_1``, ``Q8_0``, ``F16``, ``BF16`` or ``F32``.
    rows
        Numbers ``(d_out, d_in)``, or the bytes of blocks, ``(d_out, bytes of a row)``.
    """
    n_panels = -(-len(rows) // WIDE)
    if kind == "Q4_1":
        words = rows.view(np.uint32)  # a block has 5: scale and offset, and the codes
        panels = allocate(n_panels, words.shape[1] * 4 * WIDE)
        fill(panels.view(np.uint32).reshape(n_panels, -1, WIDE), words)
        return PackedMatrix("q4", (len(rows), words.shape[1] // 5 * BLOCK), panels)
    if kind == "Q8_0":
        blocks = rows.reshape(len(rows), -1, 2 + BLOCK)  # a scale and the codes
        n_blocks = blocks.shape[1]
        panels = allocate(n_panels, n_blocks * (2 + BLOCK) * WIDE)
        of_blocks = panels.reshape(n_panels, n_blocks, -1)
        fill(of_blocks[:, :, : 2 * WIDE].view(np.uint16), blocks[:, :, :2].view(np.uint16)[:, :, 0])
        fill(of_blocks[:, :, 2 * WIDE :].reshape(n_panels, n_blocks, BLOCK, WIDE), blocks[:, :, 2:])
        return PackedMatrix("q8", (len(rows), n_blocks * BLOCK), panels)
    kinds: dict[str, Kind] = {"F16": "f16", "BF16": "bf16", "F32": "f32"}
    panels = allocate(n_panels, rows.shape[1] * rows.itemsize * WIDE)
    fill(panels.view(rows.dtype).reshape(n_panels, -1, WIDE), rows)
    return PackedMatrix(kinds[kind], (len(rows), rows.shape[1]), panels)


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
_piece = np.empty(0, np.uint8)
_piece_lock = threading.Lock()


def allocate(n_panels: int, panel_bytes: int) -> Array:
    """Return bytes ``(n_panels, panel_bytes)`` of a shared piece, which is freed with its last matrix."""
    global _piece
    n_bytes = n_panels * panel_bytes
    with _piece_lock:
        start = -address(_piece) % CACHE_LINE
        if start + n_bytes > len(_piece):
            _piece = np.empty(max(n_bytes + CACHE_LINE, PIECE_BYTES), np.uint8)
            start = -address(_piece) % CACHE_LINE
        panels, _piece = _piece[start : start + n_bytes], _piece[start + n_bytes :]
    return panels.reshape(n_panels, panel_bytes)
