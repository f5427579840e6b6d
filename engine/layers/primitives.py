"""What a pass through a model is made of, by NumPy; `engine.kernels` has compiled twins."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from .activation import ACTIVATIONS, Activation, gated
from .attention import attention, attention_backward, causal_attention, windowed_attention
from .linear import linear
from .norm import layer_norm, layer_norm_backward, rms_norm
from .positions import apply_rope
from .tracing import Array

Activations = Mapping[str, Activation]


@dataclass(frozen=True)
class Primitives:
    """Primitives of an encoder; compiled ones may overwrite their first argument."""

    linear: Callable[..., Array]
    attention: Callable[..., Array]
    windowed_attention: Callable[..., Array]
    layer_norm: Callable[[Array, Array, Array, float], Array]
    rms_norm: Callable[[Array, Array, float], Array]
    apply_rope: Callable[[Array, Array, Array], Array]
    gated: Callable[[Array, Array, str], Array]
    activations: Activations


@dataclass(frozen=True)
class DecoderPrimitives:
    """Primitives of a decoder; a compiled `apply_rope` overwrites its first argument."""

    linear: Callable[..., Array]
    rms_norm: Callable[[Array, Array, float], Array]
    layer_norm: Callable[[Array, Array, Array, float], Array]
    apply_rope: Callable[[Array, Array, Array], Array]
    causal_attention: Callable[..., Array]
    add: Callable[[Array, Array], Array]
    gated: Callable[[Array, Array, str], Array]
    activations: Activations


@dataclass(frozen=True)
class TrainingPrimitives:
    """Primitives of training with their gradients; none overwrites its arguments."""

    attention: Callable[..., Array]
    attention_backward: Callable[..., tuple[Array, Array, Array]]
    layer_norm: Callable[[Array, Array, Array, float], Array]
    layer_norm_backward: Callable[[Array, Array, Array, float], tuple[Array, Array, Array]]
    activations: Activations


NUMPY = Primitives(
    linear, attention, windowed_attention, layer_norm, rms_norm, apply_rope, gated, ACTIVATIONS
)
NUMPY_DECODER = DecoderPrimitives(
    linear, rms_norm, layer_norm, apply_rope, causal_attention, np.add, gated, ACTIVATIONS
)
NUMPY_TRAINING = TrainingPrimitives(
    attention, attention_backward, layer_norm, layer_norm_backward, ACTIVATIONS
)
