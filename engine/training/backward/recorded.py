"""A recorded forward pass: the arrays and parameters that a backward pass reads, and its gradients so far."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from engine.layers.linear import linear_backward
from engine.layers.primitives import NUMPY_TRAINING, TrainingPrimitives
from engine.layers.tracing import Array
from engine.training.optimizers import Parameters

Config = TypeVar("Config")


class Kept(dict[str, Array]):
    """A tracer that keeps every array under its name, without a copy: nothing later works in place."""

    def __call__(self, name: str, value: Array) -> Array:
        """Keep one array."""
        self[name] = value
        return value


@dataclass(frozen=True)
class Recorded(Generic[Config]):
    """The inputs and outputs of a backward pass; ``grads`` has the names and shapes of ``params``."""

    params: Mapping[str, Array]
    config: Config
    kept: Kept
    ops: TrainingPrimitives = NUMPY_TRAINING
    grads: Parameters = field(default_factory=dict)

    def linear_backward(self, d_y: Array, x: Array, name: str) -> Array:
        """Gradient of the input of the affine map ``name``; its parameters' are put into ``grads``."""
        weight = self.params[f"{name}.weight"]
        d_x, self.grads[f"{name}.weight"], self.grads[f"{name}.bias"] = linear_backward(d_y, x, weight)
        return d_x

    def norm_backward(self, d_y: Array, x: Array, name: str, eps: float) -> Array:
        """Gradient of the input of the layer norm of part ``name``, likewise."""
        norm = f"{name}.norm"
        d_x, self.grads[f"{norm}.weight"], self.grads[f"{norm}.bias"] = self.ops.layer_norm_backward(
            d_y, x, self.params[f"{norm}.weight"], eps
        )
        return d_x
