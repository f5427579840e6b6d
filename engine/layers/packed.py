"""Matrices as the kernels read them: in panels, in as few bits as their file gives them."""

import threading
from dataclasses import dataclass

import numpy as np

from engine.layers.atomics import address
from engine.layers.products import WIDE
from engine.layers.registers import BLOCK, COLUMNS, Kind
from engine.layers.steps import KINDS, LINE, unpack_rows
from engine.layers.tracing import Array

CACHE_LINE = 8 * LINE  # bytes


@dataclass(frozen=True)
class PackedMatrix:
    """A matrix in panels of `WIDE` rows, the last filled up with zeros; its rows and ``T`` are float32.

    Attributes
    ----------
    kind
        How a number is held: ``q4`` as ``scale * code + offset`` with a code of 4 bits, ``q8`` as
        ``scale * code`` with one of 8, each with a float16 scale (and offset) for `BLOCK` columns of a
        row; the others as a floating-point number.
    shape
        ``(d_out, d_in)``.
    panels
        Bytes, ``(n_panels, bytes of a panel)``.
    """

    kind: Kind
    shape: tuple[int, int]
    panels: Array

    dtype = np.dtype(np.float32)  # of the numbers that are meant

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self.panels.nbytes

    @property
    def n_turns(self) -> int:
        """Blocks or columns of a panel that the kernels take one after the other."""
        return self.shape[1] // COLUMNS[self.kind]

    def __getitem__(self, rows: Array) -> Array:
        """Return some rows: ``(n,) -> (n, d_in)``; counted from 0 alone."""
        d_out, d_in = self.shape
        y, columns = np.empty((len(rows), d_in), np.float32), np.empty((d_in, WIDE), np.float32)
        panels = (address(self.panels), self.panels.shape[1], self.n_turns)
        rows = np.ascontiguousarray(rows, np.int64)
        if not unpack_rows(KINDS.index(self.kind), *panels, rows, d_out, address(columns), address(y), d_in):
            raise IndexError(f"rows {rows.min()} to {rows.max()} of a matrix that has {d_out}")
        return y

    @property
    def T(self) -> Array:
        """The transposed matrix, ``(d_in, d_out)``."""
        return self[np.arange(self.shape[0])].T


def pack(kind: str, rows: Array) -> PackedMatrix:
    """Pack a matrix as a file stores it: ``rows`` of a `StoredTensor` of one of the kept kinds.

    Parameters
    ----------
    kind
        GGUF's name: ``Q4_1``, ``Q8_0``, ``F16``, ``BF16`` or ``F32``.
    rows
        Numbers ``(d_out, d_in)``, or the bytes of blocks, ``(d_out, bytes of a row)``.
    """
    if kind == "Q4_1":
        words = rows.view(np.uint32)  # a block has 5: scale and offset, and the codes
        return PackedMatrix("q4", (len(rows), words.shape[1] // 5 * BLOCK), settled(in_panels(words)))
    if kind == "Q8_0":
        blocks = rows.reshape(len(rows), -1, 2 + BLOCK)  # a scale and the codes
        n_blocks = blocks.shape[1]
        scales = in_panels(blocks[:, :, :2].copy().view(np.uint16)[:, :, 0])
        codes = in_panels(blocks[:, :, 2:].reshape(len(rows), -1))
        parts = [part.reshape(len(part), n_blocks, -1) for part in (scales, codes)]
        panels = np.concatenate(parts, axis=-1).reshape(len(codes), -1)
        return PackedMatrix("q8", (len(rows), n_blocks * BLOCK), settled(panels))
    kinds: dict[str, Kind] = {"F16": "f16", "BF16": "bf16", "F32": "f32"}
    return PackedMatrix(kinds[kind], (len(rows), rows.shape[1]), settled(in_panels(rows)))


def in_panels(rows: Array) -> Array:
    """Put `WIDE` rows side by side: ``(d_out, n) -> bytes (n_panels, n * WIDE * itemsize)``."""
    d_out, n = rows.shape
    n_panels, n_whole = -(-d_out // WIDE), d_out // WIDE
    panels = np.zeros((n_panels, n, WIDE), rows.dtype)
    panels[:n_whole] = rows[: n_whole * WIDE].reshape(n_whole, WIDE, n).swapaxes(1, 2)
    if n_whole < n_panels:
        panels[n_whole, :, : d_out - n_whole * WIDE] = rows[n_whole * WIDE :].T
    return panels.view(np.uint8).reshape(n_panels, -1)


# Matrices share a few large pieces of memory. Those have large pages, whose places the processor can
# keep in mind: weights arrive faster from them than from many small pieces.
PIECE_BYTES = 1 << 25
_piece = np.empty(0, np.uint8)
_settling = threading.Lock()


def settled(panels: Array) -> Array:
    """Return a copy in a piece that matrices share, which lasts as long as any of them does."""
    global _piece
    with _settling:
        start = -address(_piece) % CACHE_LINE
        if start + panels.nbytes > len(_piece):
            _piece = np.empty(max(panels.nbytes + CACHE_LINE, PIECE_BYTES), np.uint8)
            start = -address(_piece) % CACHE_LINE
        room, _piece = _piece[start : start + panels.nbytes], _piece[start + panels.nbytes :]
    copy = room.reshape(panels.shape)
    copy[:] = panels
    return copy
