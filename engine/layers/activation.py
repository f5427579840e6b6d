"""Element-wise non-linearities, the softmax, and their gradients.

A backward ``f_backward(d_y, x)`` needs the input of its forward, that of the softmax the output; all arrays
have the same shape. `ACTIVATIONS` lists the non-linearities by name.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .tracing import Array


def softmax(x: Array) -> Array:
    """``exp(x) / sum(exp(x))`` over the last axis, shifted by the maximum so nothing overflows."""
    y = x - x.max(axis=-1, keepdims=True)
    np.exp(y, out=y)
    y /= y.sum(axis=-1, keepdims=True)
    return y


def softmax_backward(d_y: Array, y: Array) -> Array:
    """Gradient of `softmax` from its output: ``y * (d_y - sum(d_y * y))``, sums over the last axis."""
    d_x = d_y * y
    d_x -= y * d_x.sum(axis=-1, keepdims=True)
    return d_x


def log_softmax(x: Array) -> Array:
    """``log(softmax(x))`` over the last axis."""
    shifted = x - x.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def sigmoid(x: Array) -> Array:
    """``1 / (1 + exp(-x))``, by the hyperbolic tangent, which does not overflow."""
    half = x.dtype.type(0.5)
    return half + half * np.tanh(half * x)


def soft_cap(x: Array, cap: float) -> Array:
    """``cap tanh(x / cap)`` (Bello et al. 2016): about x near 0, and never beyond ``cap``."""
    return cap * np.tanh(x / cap)


def relu(x: Array) -> Array:
    """``max(x, 0)``."""
    return np.maximum(x, 0)


def relu_backward(d_y: Array, x: Array) -> Array:
    """``d_y`` where ``x > 0``, else 0; at 0, where there is no derivative, 0 as in torch."""
    return d_y * (x > 0)


def erf(x: Array) -> Array:
    """The error function."""
    from scipy.special import erf as scipy_erf  # imported only when needed: it takes 0.1 s

    y: Array = scipy_erf(x)
    return y


def gelu(x: Array) -> Array:
    """``x * Phi(x)`` with the exact normal distribution function (Hendrycks & Gimpel 2016)."""
    y = erf(x * x.dtype.type(1 / np.sqrt(2)))
    y += 1
    y *= x
    y *= 0.5
    return y


def gelu_backward(d_y: Array, x: Array) -> Array:
    """``d_y * (Phi(x) + x * phi(x))`` with the normal density ``phi``."""
    slope = erf(x * x.dtype.type(1 / np.sqrt(2)))
    slope += 1
    slope *= 0.5  # Phi(x)
    density = np.exp(-0.5 * x * x)
    density *= x.dtype.type(1 / np.sqrt(2 * np.pi))
    slope += x * density
    slope *= d_y
    return slope


def gelu_new(x: Array) -> Array:
    """The tanh approximation of GELU, as GPT-2 and ``hidden_act: gelu_new`` use it."""
    inner = x.dtype.type(np.sqrt(2 / np.pi)) * (x + 0.044715 * x**3)
    return 0.5 * x * (1 + np.tanh(inner))


def gelu_new_backward(d_y: Array, x: Array) -> Array:
    """``d_y * (1 + t + x (1 - t^2) u') / 2`` with ``t = tanh(u)`` and ``u`` the polynomial in `gelu_new`."""
    root = x.dtype.type(np.sqrt(2 / np.pi))
    square = x * x
    tanh = np.tanh(root * x * (1 + 0.044715 * square))
    inner_slope = root * (1 + 3 * 0.044715 * square)
    return d_y * (0.5 * (1 + tanh + x * (1 - tanh * tanh) * inner_slope))


def silu(x: Array) -> Array:
    """``x * sigmoid(x)``, the gate of SwiGLU (Shazeer 2020)."""
    with np.errstate(over="ignore"):  # exp(-x) is inf for very negative x, and x / inf is 0 as it should be
        return x / (1 + np.exp(-x))


def silu_backward(d_y: Array, x: Array) -> Array:
    """``d_y * s (1 + x (1 - s))`` with ``s = sigmoid(x)``."""
    with np.errstate(over="ignore"):  # as in `silu`
        sigmoid = 1 / (1 + np.exp(-x))
    return d_y * sigmoid * (1 + x * (1 - sigmoid))


def tanh_backward(d_y: Array, x: Array) -> Array:
    """``d_y * (1 - tanh(x)^2)``."""
    return d_y * (1 - np.tanh(x) ** 2)


def quick_gelu(x: Array) -> Array:
    """``x * sigmoid(1.702 x)``, which is near GELU."""
    return x * sigmoid(x.dtype.type(1.702) * x)


def quick_gelu_backward(d_y: Array, x: Array) -> Array:
    """``d_y * s (1 + 1.702 x (1 - s))`` with ``s = sigmoid(1.702 x)``."""
    inner = x.dtype.type(1.702) * x
    share = sigmoid(inner)
    return d_y * share * (1 + inner * (1 - share))


class Activation(NamedTuple):
    """A non-linearity ``f(x)`` and its gradient ``f_backward(d_y, x)``."""

    forward: Callable[[Array], Array]
    backward: Callable[[Array, Array], Array]


# By the names of Hugging Face's config.json.
ACTIVATIONS = {
    "gelu": Activation(gelu, gelu_backward),
    "gelu_new": Activation(gelu_new, gelu_new_backward),
    "relu": Activation(relu, relu_backward),
    "silu": Activation(silu, silu_backward),
    "tanh": Activation(np.tanh, tanh_backward),
    "quick_gelu": Activation(quick_gelu, quick_gelu_backward),
}
# Other names of the same functions.
ALSO_CALLED = {
    "gelu_python": "gelu",
    "gelu_fast": "gelu_new",
    "gelu_accurate": "gelu_new",
    "gelu_python_tanh": "gelu_new",
    "gelu_pytorch_tanh": "gelu_new",
    "swish": "silu",
}


def gated(gate: Array, up: Array, activation: str) -> Array:
    """``f(gate) * up``, the element-wise part of GeGLU and the like (Shazeer 2020): ``(n_tokens, d_ff)``.

    ``activation`` is the key of f in `ACTIVATIONS`.
    """
    return ACTIVATIONS[activation].forward(gate) * up
