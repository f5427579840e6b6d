"""Layer norm (Ba et al. 2016), RMS norm (Zhang & Sennrich 2019) and L2 normalisation."""

from typing import NamedTuple

import numpy as np

from engine.layers.tracing import Array


class LayerNorm(NamedTuple):
    """Parameters of a layer norm: scale ``weight`` and shift ``bias``, both ``(d_model,)``."""

    weight: Array
    bias: Array


def layer_norm(x: Array, weight: Array, bias: Array, eps: float) -> Array:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over the last axis of ``(..., d_model)``."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = np.square(centred).mean(axis=-1, keepdims=True)  # (..., 1)
    centred /= np.sqrt(variance + eps)
    centred *= weight
    centred += bias
    return centred


def rms_norm(x: Array, weight: Array, eps: float) -> Array:
    """``x / sqrt(mean(x^2) + eps) * weight`` over the last axis of ``(..., d_model)``."""
    mean_square = np.square(x).mean(axis=-1, keepdims=True)  # (..., 1)
    return x / np.sqrt(mean_square + eps) * weight


def l2_normalize(x: Array) -> Array:
    """Scale each vector of ``(..., d)`` to length 1; a zero vector stays zero.

    The floor of 1e-12 on the length is that of ``torch.nn.functional.normalize``.
    """
    length = np.linalg.norm(x, axis=-1, keepdims=True)  # (..., 1)
    return x / np.maximum(length, 1e-12)
