"""Layer norm (Ba et al. 2016), RMS norm (Zhang & Sennrich 2019), L2 normalisation, and their gradients.

Each backward needs the input of its forward and recomputes mean and scale. With ``x^`` the normalised input,
a change of ``x`` along ``x^`` (and, for layer norm, the same change of all of ``x``) changes nothing, so
those parts of the gradient are subtracted.
"""

from typing import NamedTuple

import numpy as np

from .tracing import Array

SHORTEST = 1e-12  # lower bound of a vector's length, as in `torch.nn.functional.normalize`


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


def layer_norm_backward(d_y: Array, x: Array, weight: Array, eps: float) -> tuple[Array, Array, Array]:
    """Gradients of `layer_norm`: ``d_y`` and ``x`` of ``(..., d_model)`` to ``d_x, d_weight, d_bias``.

    ``d_x = (g - mean(g) - x^ mean(g x^)) / sqrt(var + eps)`` with ``g = d_y * weight``; ``d_weight`` and
    ``d_bias``, both ``(d_model,)``, are the sums of ``d_y x^`` and ``d_y`` over all vectors.
    """
    normed = x - x.mean(axis=-1, keepdims=True)
    scale = np.sqrt(np.square(normed).mean(axis=-1, keepdims=True) + eps)  # (..., 1)
    normed /= scale
    d_normed = d_y * weight
    d_x = d_normed - d_normed.mean(axis=-1, keepdims=True)
    d_x -= normed * (d_normed * normed).mean(axis=-1, keepdims=True)
    d_x /= scale
    return d_x, _sum_of_vectors(d_y * normed), _sum_of_vectors(d_y)


def rms_norm(x: Array, weight: Array, eps: float) -> Array:
    """``x / sqrt(mean(x^2) + eps) * weight`` over the last axis of ``(..., d_model)``."""
    mean_square = np.square(x).mean(axis=-1, keepdims=True)  # (..., 1)
    return x / np.sqrt(mean_square + eps) * weight


def l2_normalize(x: Array) -> Array:
    """Scale each vector of ``(..., d)`` to length 1; a zero vector stays zero."""
    length = np.linalg.norm(x, axis=-1, keepdims=True)  # (..., 1)
    return x / np.maximum(length, SHORTEST)


def l2_normalize_backward(d_y: Array, x: Array) -> Array:
    """Gradient of `l2_normalize` from its input: both ``(..., d)``, to ``d_x`` of the same shape.

    ``d_x = (d_y - x^ (x^ · d_y)) / |x|``. Below the bound the length is constant: nothing is subtracted.
    """
    length = np.linalg.norm(x, axis=-1, keepdims=True)  # (..., 1)
    floored = np.maximum(length, SHORTEST)
    normed = x / floored
    along = (normed * d_y).sum(axis=-1, keepdims=True)
    return (d_y - normed * np.where(length < SHORTEST, 0, along)) / floored


def _sum_of_vectors(x: Array) -> Array:
    return x.reshape(-1, x.shape[-1]).sum(axis=0)  # (..., d_model) -> (d_model,)
