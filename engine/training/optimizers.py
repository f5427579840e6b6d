"""Gradient descent: SGD with momentum, Adam and AdamW, and clipping, each as in ``torch.optim``.

Parameters and gradients are dictionaries of arrays with the same names and shapes. A step changes the
parameters, and what the optimiser remembers, in place. To train some parameters and leave the rest, give
those alone.
"""

from dataclasses import dataclass

import numpy as np

from engine.errors import InputError
from engine.layers.tracing import Array

Parameters = dict[str, Array]  # by dotted name
BETAS = (0.9, 0.999)


@dataclass
class Moments:
    """What Adam remembers: steps made, and running means of each gradient and of its square."""

    step: int
    mean: Parameters
    square: Parameters


def zeros_like(params: Parameters) -> Parameters:
    """Zeros of the shape of each parameter: the velocity that `sgd` starts from."""
    return {name: np.zeros_like(param) for name, param in params.items()}


def no_moments(params: Parameters) -> Moments:
    """Return what Adam remembers before its first step."""
    return Moments(0, zeros_like(params), zeros_like(params))


def sgd(
    params: Parameters,
    grads: Parameters,
    velocity: Parameters,
    learning_rate: float,
    momentum: float = 0.0,
    nesterov: bool = False,
) -> None:
    """``v = momentum v + g``, ``p -= learning_rate v``; Nesterov's takes ``g + momentum v`` for ``v``.

    The velocity starts as `zeros_like` the parameters. ``torch.optim.SGD`` without dampening.

    Raises
    ------
    InputError
        If the gradients are not of the names and shapes of the parameters.
    """
    _check(params, grads)
    scratch = _Scratch(params)
    for name, param in params.items():
        step = scratch.like(param)
        np.multiply(velocity[name], momentum, out=velocity[name])
        velocity[name] += grads[name]
        if nesterov:
            np.multiply(velocity[name], momentum, out=step)
            step += grads[name]
            step *= learning_rate
        else:
            np.multiply(velocity[name], learning_rate, out=step)
        param -= step


def adam(
    params: Parameters,
    grads: Parameters,
    moments: Moments,
    learning_rate: float,
    betas: tuple[float, float] = BETAS,
    eps: float = 1e-8,
) -> None:
    """Step by each gradient's running mean, divided by the root of that of its square (Kingma & Ba 2015).

    ``m = b1 m + (1 - b1) g``, ``s = b2 s + (1 - b2) g^2``, and at step ``t``
    ``p -= learning_rate (m / (1 - b1^t)) / (sqrt(s / (1 - b2^t)) + eps)``. The moments start as
    `no_moments`. ``torch.optim.Adam``.

    Raises
    ------
    InputError
        If the gradients are not of the names and shapes of the parameters.
    """
    adamw(params, grads, moments, learning_rate, betas, eps, weight_decay=0.0)


def adamw(
    params: Parameters,
    grads: Parameters,
    moments: Moments,
    learning_rate: float,
    betas: tuple[float, float] = BETAS,
    eps: float = 1e-8,
    weight_decay: float = 0.01,
) -> None:
    """Adam with ``p -= learning_rate * weight_decay * p`` before each step (Loshchilov & Hutter 2019).

    The decay stands outside the moments. ``torch.optim.AdamW``; the rest is as in `adam`.

    Raises
    ------
    InputError
        If the gradients are not of the names and shapes of the parameters.
    """
    _check(params, grads)
    moments.step += 1
    bias_mean, bias_square = (1 - beta**moments.step for beta in betas)
    root = bias_square**0.5
    scratch = _Scratch(params)
    for name, param in params.items():
        mean, square, step = moments.mean[name], moments.square[name], scratch.like(param)
        if weight_decay:
            param *= 1 - learning_rate * weight_decay
        np.subtract(grads[name], mean, out=step)
        step *= 1 - betas[0]
        mean += step
        np.square(grads[name], out=step)
        step *= 1 - betas[1]
        square *= betas[1]
        square += step
        # m / b1' / (sqrt(s) / root + eps), with both bias corrections moved into one factor
        np.sqrt(square, out=step)
        step += eps * root
        np.divide(mean, step, out=step)
        step *= learning_rate * root / bias_mean
        param -= step


def clip_gradients(grads: Parameters, max_norm: float) -> float:
    """Scale all gradients in place so that their common length is at most ``max_norm``.

    ``torch.nn.utils.clip_grad_norm_``, with its 1e-6 in the divisor.

    Returns
    -------
    float
        The length they had; where that is not finite, neither are the gradients now.
    """
    norm = float(np.sqrt(sum(float(np.vdot(grad, grad)) for grad in grads.values())))
    factor = max_norm / (norm + 1e-6)
    if not factor >= 1:  # nor where the length is not a number
        with np.errstate(invalid="ignore"):
            for name in grads:
                grads[name] *= factor
    return norm


class _Scratch:
    """Room for one array of the size of any parameter, so that a step makes none of its own."""

    def __init__(self, params: Parameters) -> None:
        self.bytes = np.empty(max((param.nbytes for param in params.values()), default=0), np.uint8)

    def like(self, param: Array) -> Array:
        return self.bytes[: param.nbytes].view(param.dtype).reshape(param.shape)


def _check(params: Parameters, grads: Parameters) -> None:
    shapes, given = ({name: array.shape for name, array in tree.items()} for tree in (params, grads))
    if shapes == given:
        return
    name = next(name for name in (*shapes, *given) if shapes.get(name) != given.get(name))
    raise InputError(
        f"{name!r} is {shapes.get(name, 'no parameter')} and its gradient {given.get(name, 'missing')}:"
        " give one gradient of the same shape for each parameter"
    )
