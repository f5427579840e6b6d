"""Gradient descent: AdamW and clipping as in ``torch.optim``, and schedules of the learning rate.

Parameters and gradients are dictionaries of arrays with the same names and shapes. An update changes
the parameters and the optimiser's state in place. To train only some parameters, pass only those.

Schedules return the factor of update ``update``, counted from 0 as in torch's ``LambdaLR``: a warm-up starts
at 0, so the very first update changes nothing.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from ..layers.tracing import Array

Parameters = dict[str, Array]  # by dotted name
BETAS = (0.9, 0.999)


@dataclass
class Moments:
    """Adam's state: updates made, and running means of each gradient and of its square."""

    n_updates: int
    mean: Parameters
    square: Parameters

    def copied(self) -> "Moments":
        """Return a copy that shares no memory."""
        return Moments(self.n_updates, copied(self.mean), copied(self.square))


def copied(params: Parameters) -> Parameters:
    """Return copies that share no memory."""
    return {name: array.copy() for name, array in params.items()}


def no_moments(params: Parameters) -> Moments:
    """Return Adam's state before the first update: zeros."""
    mean, square = ({name: np.zeros_like(array) for name, array in params.items()} for _ in range(2))
    return Moments(0, mean, square)


def adamw(
    params: Parameters,
    grads: Parameters,
    moments: Moments,
    learning_rate: float,
    betas: tuple[float, float] = BETAS,
    eps: float = 1e-8,
    weight_decay: float = 0.01,
) -> None:
    """Update by the mean gradient over the root of the mean squared gradient (Kingma & Ba 2015).

    ``m = b1 m + (1 - b1) g``, ``s = b2 s + (1 - b2) g^2``, and at update ``t``
    ``p -= learning_rate (m / (1 - b1^t)) / (sqrt(s / (1 - b2^t)) + eps)``, after a decay by
    ``p -= learning_rate * weight_decay * p``, which the moments do not see (Loshchilov & Hutter 2019). The
    moments start as `no_moments`. ``torch.optim.AdamW``, and ``Adam`` without decay.
    """
    _check(params, grads)
    moments.n_updates += 1
    bias_mean, bias_square = (1 - beta**moments.n_updates for beta in betas)
    root = bias_square**0.5
    # A buffer of the largest parameter's size, so that updates allocate nothing.
    scratch = np.empty(max((param.nbytes for param in params.values()), default=0), np.uint8)
    for name, param in params.items():
        mean, square = moments.mean[name], moments.square[name]
        update = scratch[: param.nbytes].view(param.dtype).reshape(param.shape)
        if weight_decay:
            param *= 1 - learning_rate * weight_decay
        np.subtract(grads[name], mean, out=update)
        update *= 1 - betas[0]
        mean += update
        np.square(grads[name], out=update)
        update *= 1 - betas[1]
        square *= betas[1]
        square += update
        # m / b1' / (sqrt(s) / root + eps), with both bias corrections moved into one factor
        np.sqrt(square, out=update)
        update += eps * root
        np.divide(mean, update, out=update)
        update *= learning_rate * root / bias_mean
        param -= update


def clip_gradients(grads: Parameters, max_norm: float) -> float:
    """Scale all gradients in place so that their joint L2 norm is at most ``max_norm``.

    ``torch.nn.utils.clip_grad_norm_``, with its 1e-6 in the divisor. Returns the norm before; if it is not
    finite, neither are the gradients now.
    """
    norm = float(np.sqrt(sum(float(np.vdot(grad, grad)) for grad in grads.values())))
    factor = max_norm / (norm + 1e-6)
    if not factor >= 1:  # also if the norm is NaN
        with np.errstate(invalid="ignore"):
            for name in grads:
                grads[name] *= factor
    return norm


def warmup_linear(update: int, n_warmup: int, n_steps: int) -> float:
    """Rise to 1 in ``n_warmup`` updates, then fall linearly to 0 at ``n_steps``, as in transformers."""
    if update < n_warmup:
        return update / n_warmup
    return max(0.0, (n_steps - update) / max(1, n_steps - n_warmup))


def warmup_cosine(update: int, n_warmup: int, n_steps: int) -> float:
    """Rise to 1 in ``n_warmup`` updates, then fall along half a cosine to 0 (Loshchilov & Hutter 2017).

    transformers' ``get_cosine_schedule_with_warmup``, and with no warm-up torch's ``CosineAnnealingLR``.
    Those rise again after ``n_steps``; this one stays at 0.
    """
    if update < n_warmup:
        return update / n_warmup
    progress = min(1.0, (update - n_warmup) / max(1, n_steps - n_warmup))
    return 0.5 * (1 + math.cos(math.pi * progress))


def _check(params: Parameters, grads: Parameters) -> None:
    shapes, given = ({name: array.shape for name, array in tree.items()} for tree in (params, grads))
    if shapes == given:
        return
    name = next(name for name in (*shapes, *given) if shapes.get(name) != given.get(name))
    raise InputError(
        f"{name!r} is {shapes.get(name, 'no parameter')} and its gradient {given.get(name, 'missing')}:"
        " give one gradient of the same shape for each parameter"
    )
