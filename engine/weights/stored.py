"""Tensors in the types of model files: blocks of codes with scales, or numbers of 16 and 32 bits."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.errors import ModelFileError
from engine.layers.tracing import Array

BLOCK = 32  # columns of a row that share a scale in Q4_0, Q4_1 and Q8_0
FLOATS = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16}
# GGUF's numbers of the commonest types, and columns and bytes of their blocks; the others are looked up in
# the gguf package, which is slow to import.
NUMBERS = {0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 8: "Q8_0", 30: "BF16"}
BLOCK_SIZES = {
    **{kind: (1, np.dtype(dtype).itemsize) for kind, dtype in FLOATS.items()},
    **{"Q4_0": (BLOCK, 18), "Q4_1": (BLOCK, 20), "Q8_0": (BLOCK, 34)},
}
# Float16 numbers that a block of codes begins with: scale and offset.
SCALES = {"Q4_0": 1, "Q4_1": 2, "Q5_0": 1, "Q5_1": 2, "Q8_0": 1}
KEPT = ("Q4_1", "Q8_0", *FLOATS)  # the types of matrices in memory


@dataclass(frozen=True)
class StoredTensor:
    """A tensor in a file's own format, rows first as in PyTorch.

    Attributes
    ----------
    kind
        GGUF's name of the type.
    rows
        The numbers (bfloat16 as the 16-bit integers of its bits), or of each row the bytes of its blocks.
    """

    kind: str
    rows: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers along each axis."""
        if self.kind in FLOATS:
            return self.rows.shape
        n_columns, n_bytes = block_size(self.kind)
        return (*self.rows.shape[:-1], self.rows.shape[-1] // n_bytes * n_columns)

    def __getitem__(self, order: Array) -> "StoredTensor":
        """Return some of the rows, in any order."""
        return replace(self, rows=self.rows[order])

    def float32(self) -> Array:
        """Return the dequantised numbers."""
        if self.kind == "BF16":  # the upper half of a float32
            return (self.rows.astype(np.uint32) << 16).view(np.float32)
        if self.kind in FLOATS:
            return self.rows.astype(np.float32)
        import gguf

        try:
            return gguf.dequantize(self.rows, gguf.GGMLQuantizationType[self.kind])
        except NotImplementedError as error:
            raise ModelFileError(
                f"the model has tensors of type {self.kind}, which cannot be dequantised here: "
                f"use a file in Q4, Q5, Q6, Q8 or F16"
            ) from error

    def is_finite(self) -> bool:
        """Whether all numbers are finite: neither NaN nor infinite."""
        if self.kind == "BF16":
            return bool((self.rows & 0x7F80 != 0x7F80).all())  # the exponent's 8 bits
        if self.kind in FLOATS:
            return bool(np.isfinite(self.rows).all())
        if self.kind not in SCALES:
            return bool(np.isfinite(self.float32()).all())
        blocks = self.rows.reshape(-1, block_size(self.kind)[1])
        scales = np.ascontiguousarray(blocks[:, : 2 * SCALES[self.kind]]).view(np.float16)
        return bool(np.isfinite(scales).all())

    def kept(self) -> "StoredTensor":
        """Return the matrix in one of the types of `KEPT`: its own, or one that loses almost nothing."""
        if self.kind in KEPT:
            return self
        return as_q4_1(self) if self.kind == "Q4_0" else as_q8_0(self)


def kind_name(number: int) -> str:
    """Name of one of GGUF's types by its number."""
    if number in NUMBERS:
        return NUMBERS[number]
    import gguf

    try:
        return gguf.GGMLQuantizationType(number).name
    except ValueError as error:
        raise ModelFileError(
            f"the model has a tensor of the unknown type {number}: use another file"
        ) from error


def block_size(kind: str) -> tuple[int, int]:
    """Columns and bytes of a block of one of GGUF's types."""
    if kind in BLOCK_SIZES:
        return BLOCK_SIZES[kind]
    import gguf

    return gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]


def held_bytes(kind: str) -> float:
    """Bytes of one number of a matrix in memory, in the type of `kept`."""
    if kind in FLOATS:
        return np.dtype(FLOATS[kind]).itemsize
    columns, n_bytes = BLOCK_SIZES["Q4_1" if kind in ("Q4_0", "Q4_1") else "Q8_0"]
    return n_bytes / columns


def as_q4_1(matrix: StoredTensor) -> StoredTensor:
    """Q4_0, ``scale * (code - 8)``, as Q4_1, ``scale * code + offset``: the same numbers."""
    blocks = matrix.rows.reshape(len(matrix.rows), -1, 18)  # a scale and the codes
    scale = blocks[:, :, :2].copy().view(np.float16)
    offset = (scale * np.float16(-8)).view(np.uint8)
    with_offset = np.concatenate([blocks[:, :, :2], offset, blocks[:, :, 2:]], axis=-1)
    return StoredTensor("Q4_1", with_offset.reshape(len(blocks), -1))


def as_q8_0(matrix: StoredTensor) -> StoredTensor:
    """Round a matrix of any type to Q8_0; one whose rows are not whole blocks becomes float32."""
    numbers = matrix.float32()
    if numbers.shape[1] % BLOCK:
        return StoredTensor("F32", numbers)
    import gguf

    return StoredTensor("Q8_0", gguf.quantize(numbers, gguf.GGMLQuantizationType.Q8_0))


def stack(matrices: Sequence[StoredTensor]) -> StoredTensor:
    """Stack matrices with the same input one below the other, in one type for all."""
    kept = [matrix.kept() for matrix in matrices]
    kinds = {matrix.kind for matrix in kept}
    if len(kinds) > 1:
        floats = kinds <= set(FLOATS)
        kept = [StoredTensor("F32", m.float32()) if floats else as_q8_0(m) for m in kept]
    return StoredTensor(kept[0].kind, np.concatenate([matrix.rows for matrix in kept]))
