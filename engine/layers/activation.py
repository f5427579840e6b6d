"""Element-wise non-linearities, and the softmax."""

from collections.abc import Callable

import numpy as np
from scipy.special import erf

from engine.layers.tracing import Array


def softmax(x: Array) -> Array:
    """``exp(x) / sum(exp(x))`` over the last axis, shifted by the maximum so nothing overflows."""
    y = x - x.max(axis=-1, keepdims=True)
    np.exp(y, out=y)
    y /= y.sum(axis=-1, keepdims=True)
    return y


def log_softmax(x: Array) -> Array:
    """``log(softmax(x))`` over the last axis."""
    shifted = x - x.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def relu(x: Array) -> Array:
    """``max(x, 0)``."""
    return np.maximum(x, 0)


def gelu(x: Array) -> Array:
    """``x * Phi(x)`` with the exact normal distribution function (Hendrycks & Gimpel 2016)."""
    y: Array = erf(x * x.dtype.type(1 / np.sqrt(2)))
    y += 1
    y *= x
    y *= 0.5
    return y


def gelu_new(x: Array) -> Array:
    """The tanh approximation of GELU, as GPT-2 and ``hidden_act: gelu_new`` use it."""
    inner = x.dtype.type(np.sqrt(2 / np.pi)) * (x + 0.044715 * x**3)
    return 0.5 * x * (1 + np.tanh(inner))


def silu(x: Array) -> Array:
    """``x * sigmoid(x)``, the gate of `swiglu`."""
    with np.errstate(over="ignore"):  # exp(-x) is inf for very negative x, and x / inf is the 0 meant
        return x / (1 + np.exp(-x))


def swiglu(gate: Array, up: Array) -> Array:
    """``silu(gate) * up``, the element-wise part of SwiGLU (Shazeer 2020): ``(n_tokens, d_ff)`` each."""
    return silu(gate) * up


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "gelu": gelu,
    "gelu_new": gelu_new,
    "gelu_pytorch_tanh": gelu_new,
    "relu": relu,
    "silu": silu,
}
