"""The precision of a model's matrices, and of the activations that they multiply."""

import weakref
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np

from ..errors import InputError, check_choice
from ..layers.linear import Linear
from ..layers.quantization import BLOCK, Int8Matrix

Weights = TypeVar("Weights")
Model = TypeVar("Model")  # with name, weights and precision


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
    """Return a key of `PRECISIONS`: the name itself, or for `AUTO` the one that is faster on this machine."""
    if name == AUTO:
        return "float32" if is_slower("int8") else "int8"
    check_choice("precision", name, (*PRECISIONS, AUTO))
    return name


def is_slower(precision: str) -> bool:
    """Whether a key of `PRECISIONS` is slower than float32: without its instructions, or numba."""
    if precision == "float32":
        return False
    try:
        from ..kernels import gemm_int8
    except ImportError:
        return True
    return not gemm_int8.DOT_PRODUCTS


def in_precision(model: Model, precision: str) -> Model:
    """Return a float32 encoder or cross-encoder in a precision: a key of `PRECISIONS`, or `AUTO`.

    `AUTO` leaves a model as it is that is not float32.
    """
    name, before = model.name, model.precision  # type: ignore[attr-defined]
    is_float32 = model.weights.token_table.dtype == np.float32  # type: ignore[attr-defined]
    if precision == AUTO and not is_float32:
        return model
    precision = chosen_precision(precision)
    if precision == before:
        return model
    if before != "float32":
        raise InputError(f"{name} is rounded to {before} already: load it as {precision}")
    weights = rounded_weights(model.weights)  # type: ignore[attr-defined]
    return replace(model, weights=weights, precision=precision)  # type: ignore[type-var]


def rounded_weights(weights: Weights) -> Weights:
    """Return an encoder's weights with the matrices of its layers in 8 bits, made once for them.

    Embeddings, norms and biases stay as they are, and so do matrices whose rows are not whole blocks.
    """
    dtype = weights.token_table.dtype  # type: ignore[attr-defined]
    if dtype != np.float32:
        raise InputError(f"the weights are {dtype}, which is not rounded to int8: load them as float32")
    key = id(weights)
    if key not in _rounded:
        layers = tuple(map(rounded, weights.layers))  # type: ignore[attr-defined]
        _rounded[key] = replace(weights, layers=layers)  # type: ignore[type-var]
        weakref.finalize(weights, _rounded.pop, key, None)
    return _rounded[key]


def rounded(part: Any) -> Any:
    """Return a layer, or a part of it, with its matrices in 8 bits."""
    if isinstance(part, Linear):
        weight = np.asarray(part.weight)
        fits = weight.shape[1] % BLOCK == 0  # its rows are whole blocks
        return Linear(Int8Matrix.of(weight), part.bias) if fits else part
    if is_dataclass(part) and not isinstance(part, type):
        return replace(part, **{field.name: rounded(getattr(part, field.name)) for field in fields(part)})
    return part


_rounded: dict[int, Any] = {}  # of weights, by their identity
