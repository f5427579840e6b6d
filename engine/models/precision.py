"""The precision of an encoder's matrices: float32, or 8 bits with activations rounded to 8 bits, too."""

import weakref
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np

from engine.errors import InputError
from engine.layers.linear import Linear
from engine.layers.quantization import Int8Matrix, fits_int8

Weights = TypeVar("Weights")


@dataclass(frozen=True)
class Precision:
    """A precision's name and description for people."""

    label: str
    help: str


PRECISIONS = {
    "float32": Precision("float32", "As the model was published, equal to sentence-transformers."),
    "int8": Precision(
        "int8",
        "Matrices and what they multiply in 8 bits: slightly other vectors, in about half the time where the "
        "processor multiplies bytes.",
    ),
}
AUTO = "auto"  # int8 where that is faster


def chosen_precision(name: str) -> str:
    """Return a key of `PRECISIONS`: the name itself, or for `AUTO` the one that is faster on this machine.

    Raises
    ------
    InputError
        There is no such precision.
    """
    if name == AUTO:
        return "int8" if has_byte_products() else "float32"
    if name not in PRECISIONS:
        raise InputError(f"precision {name!r} is not one of {', '.join((*PRECISIONS, AUTO))}")
    return name


def has_byte_products() -> bool:
    """Whether this processor multiplies bytes, and numba is there to make use of it."""
    try:
        from engine.kernels.gemm_int8 import DOT_PRODUCTS
    except ImportError:
        return False
    return DOT_PRODUCTS


def int8_weights(weights: Weights) -> Weights:
    """Return an encoder's weights with the matrices of its layers as `Int8Matrix`, made once for them.

    Embeddings, norms, biases, and matrices whose rows are not whole blocks stay as they are.

    Raises
    ------
    InputError
        The weights are not float32.
    """
    dtype = weights.token_table.dtype  # type: ignore[attr-defined]
    if dtype != np.float32:
        raise InputError(f"the weights are {dtype}, which is not rounded to int8: load them as float32")
    key = id(weights)
    if key not in _rounded:
        layers = tuple(rounded(layer) for layer in weights.layers)  # type: ignore[attr-defined]
        _rounded[key] = replace(weights, layers=layers)  # type: ignore[type-var]
        weakref.finalize(weights, _rounded.pop, key, None)
    return _rounded[key]


def rounded(part: Any) -> Any:
    """Return a layer, or a part of it, with its matrices as `Int8Matrix`."""
    if isinstance(part, Linear):
        weight = part.weight
        if isinstance(weight, np.ndarray) and fits_int8(weight):
            return Linear(Int8Matrix.of(weight), part.bias)
        return part
    if is_dataclass(part) and not isinstance(part, type):
        return replace(part, **{field.name: rounded(getattr(part, field.name)) for field in fields(part)})
    return part


_rounded: dict[int, Any] = {}  # of weights, by their identity
