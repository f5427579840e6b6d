"""The steps of training that exist twice: as NumPy says them, and compiled."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from engine.layers.activation import (
    ACTIVATIONS,
    gelu_backward,
    gelu_new_backward,
    relu_backward,
    silu_backward,
)
from engine.layers.attention import attention, attention_backward
from engine.layers.norm import layer_norm, layer_norm_backward
from engine.layers.tracing import Array

log = logging.getLogger(__name__)

ACTIVATIONS_BACKWARD: dict[str, Callable[[Array, Array], Array]] = {
    "gelu": gelu_backward,
    "gelu_new": gelu_new_backward,
    "gelu_pytorch_tanh": gelu_new_backward,
    "relu": relu_backward,
    "silu": silu_backward,
}


@dataclass(frozen=True)
class TrainingPrimitives:
    """One implementation of each step and of its gradient; none overwrites what it is given."""

    attention: Callable[..., Array]
    attention_backward: Callable[..., tuple[Array, Array, Array]]
    layer_norm: Callable[[Array, Array, Array, float], Array]
    layer_norm_backward: Callable[[Array, Array, Array, float], tuple[Array, Array, Array]]
    activations: Mapping[str, Callable[[Array], Array]]
    activations_backward: Mapping[str, Callable[[Array, Array], Array]]


NUMPY_TRAINING = TrainingPrimitives(
    attention, attention_backward, layer_norm, layer_norm_backward, ACTIVATIONS, ACTIVATIONS_BACKWARD
)


@cache
def compiled_training() -> TrainingPrimitives:
    """Return the compiled twins, for float32, or NumPy's steps where numba cannot be had.

    The very first time on a machine they are compiled, which takes seconds, and kept on disk.
    """
    try:
        from engine.layers import training_kernels as kernels

        kernels.gelu(np.zeros((1, 1), np.float32))  # numba may be importable and yet switched off
    except Exception as error:  # numba is absent, or does not work with what else is installed
        log.info("no compiled steps of training (%s): NumPy does all the work", error)
        return NUMPY_TRAINING
    return TrainingPrimitives(
        kernels.attention,
        kernels.attention_backward,
        kernels.layer_norm,
        kernels.layer_norm_backward,
        {**ACTIVATIONS, "gelu": kernels.gelu},
        {**ACTIVATIONS_BACKWARD, "gelu": kernels.gelu_backward},
    )
