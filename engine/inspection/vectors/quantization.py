"""int8 and binary quantisation of vectors, equal to ``quantize_embeddings`` of sentence-transformers."""

from dataclasses import dataclass

import numpy as np

from engine.layers.tracing import Array

LEVELS = 255  # steps of int8 between the smallest and the largest value of a dimension


@dataclass(frozen=True)
class Int8Quantizer:
    """256 levels for each dimension, from ``start`` on, a ``step`` apart: ``(d_model,)`` each."""

    start: Array
    step: Array

    @classmethod
    def of(cls, vectors: Array) -> "Int8Quantizer":
        """Fit the levels to the range of each dimension of ``(n, d_model)``."""
        start = vectors.min(axis=0)
        step = (vectors.max(axis=0) - start) / LEVELS
        return cls(start, np.where(step == 0, 1, step))

    def codes(self, vectors: Array) -> Array:
        """Round down to a level and clip to the range: int8 ``(n, d_model)``."""
        levels = np.floor((vectors - self.start) / self.step)
        return (np.clip(levels, 0, LEVELS) - 128).astype(np.int8)

    def values(self, codes: Array) -> Array:
        """Return the lower ends of the levels of codes."""
        return (codes.astype(self.step.dtype) + 128) * self.step + self.start


def binary_codes(vectors: Array) -> Array:
    """Keep the signs, eight to a byte, as ``precision="ubinary"``: uint8 ``(n, d_model / 8)``."""
    return np.packbits(vectors > 0, axis=-1)


def signs(codes: Array, d_model: int) -> Array:
    """``+1`` for a bit that is set, else ``-1``: float32 ``(n, d_model)``.

    The inner product of two is ``d_model - 2 * Hamming distance``, so it ranks as that distance does.
    """
    return 2 * np.unpackbits(codes, axis=-1, count=d_model).astype(np.float32) - 1
