"""Tensors in the types of model files: quantised (`quantized`), or numbers of 16 and 32 bits."""

from dataclasses import dataclass, replace

import numpy as np

from ..errors import ModelFileError
from ..layers.tracing import Array
from .quantized import QUANTIZED

FLOATS = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16}
STORED = (*QUANTIZED, *FLOATS)  # the types of matrices in memory
# GGUF's numbers of these types; others are looked up in the gguf package, which is slow to import.
NUMBERS = {
    0: "F32",
    1: "F16",
    2: "Q4_0",
    3: "Q4_1",
    6: "Q5_0",
    7: "Q5_1",
    8: "Q8_0",
    10: "Q2_K",
    11: "Q3_K",
    12: "Q4_K",
    13: "Q5_K",
    14: "Q6_K",
    20: "IQ4_NL",
    23: "IQ4_XS",
    30: "BF16",
    39: "MXFP4",
}
# Exponents of MXFP4 from which on its largest number, 12 * 2^(e - 128), is infinite; 255 stands for NaN.
INFINITE_EXPONENT = 253


@dataclass(frozen=True)
class StoredTensor:
    """A tensor in a file's own format, rows first as in PyTorch."""

    kind: str  # GGUF's name of the type
    # numbers (bfloat16 as the 16-bit integers of its bits), or of each row the bytes of its blocks
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
        if self.kind == "BF16":
            return from_bfloat16(self.rows)
        if self.kind in FLOATS:
            return self.rows.astype(np.float32)
        import gguf

        try:
            return gguf.dequantize(self.rows, gguf.GGMLQuantizationType[self.kind])
        except NotImplementedError as error:
            raise ModelFileError(
                f"the model has tensors of type {self.kind}, which cannot be dequantised here: "
                f"use a file in {', '.join(STORED)}"
            ) from error

    def is_finite(self) -> bool:
        """Whether all numbers are finite: neither NaN nor infinite."""
        if self.kind == "BF16":
            return bool((self.rows & 0x7F80 != 0x7F80).all())  # the exponent's 8 bits
        if self.kind in FLOATS:
            return bool(np.isfinite(self.rows).all())
        if self.kind not in QUANTIZED:
            return bool(np.isfinite(self.float32()).all())
        own = QUANTIZED[self.kind]
        fields = own.split(self.rows.reshape(-1, own.n_bytes))
        halves = [np.ascontiguousarray(fields[name]).view(np.float16) for name in own.halves]
        if own.scales == "exponents" and (fields["e"] >= INFINITE_EXPONENT).any():
            return False
        return all(np.isfinite(half).all() for half in halves)


def from_bfloat16(bits: Array) -> Array:
    """Return the float32 whose upper half is a bfloat16, from its bits: uint16 to the same shape."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


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
    if kind in FLOATS:
        return 1, np.dtype(FLOATS[kind]).itemsize
    if kind in QUANTIZED:
        return QUANTIZED[kind].n_columns, QUANTIZED[kind].n_bytes
    import gguf

    return gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]


def held_bytes(kind: str) -> float:
    """Bytes of one number of a matrix in memory; raise `ModelFileError` for other types."""
    if kind in FLOATS:
        return np.dtype(FLOATS[kind]).itemsize
    if kind not in QUANTIZED:
        raise ModelFileError(
            f"the model has tensors of type {kind}, which cannot be used: use a file in {', '.join(STORED)}"
        )
    return QUANTIZED[kind].held_bytes / QUANTIZED[kind].n_columns
