"""Rotary position embedding (Su et al. 2021)."""

import numpy as np

from engine.layers.tracing import Array


def rope_tables(positions: Array, d_head: int, theta: float, dtype: np.dtype) -> tuple[Array, Array]:
    """Cosine and sine of ``position * theta^(-2i / d_head)``, each ``(n_tokens, d_head / 2)``.

    The angles are float32, as in transformers, so that both round alike at far positions.
    """
    frequency = 1 / theta ** (np.arange(0, d_head, 2, dtype=np.float32) / d_head)  # (d_head / 2,)
    angle = positions[:, None].astype(np.float32) * frequency.astype(np.float32)
    return np.cos(angle).astype(dtype), np.sin(angle).astype(dtype)


def apply_rope(x: Array, cos: Array, sin: Array) -> Array:
    """Rotate each pair ``(x[i], x[i + d_head / 2])`` of ``(n_heads, n_tokens, d_head)``."""
    half = x.shape[-1] // 2
    first, second = x[..., :half], x[..., half:]
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)
