"""The head of an embedding model, from token vectors to one vector: pooling, dense layers, length 1.

These are the modules behind the Transformer in sentence-transformers (Reimers & Gurevych 2019).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from ..errors import InputError, ModelFileError
from ..layers.activation import gelu, relu, sigmoid, silu
from ..layers.linear import Linear, linear
from ..layers.norm import LayerNorm, l2_normalize, layer_norm
from ..layers.tracing import Array

NORM_EPS = 1e-5  # of torch's norms
MODEL_DEFAULT = "own"  # the name of a model's own head, besides those of `POOLINGS`


# Activations of dense layers, by the class of torch.nn that the files name.
DENSE_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "Identity": np.positive,
    "Tanh": np.tanh,
    "ReLU": relu,
    "GELU": gelu,
    "SiLU": silu,
    "Sigmoid": sigmoid,
    "LeakyReLU": lambda x: np.where(x > 0, x, 0.01 * x),
    "ELU": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "Mish": lambda x: x * np.tanh(np.logaddexp(x, 0)),
}


@dataclass(frozen=True)
class Measure:
    """A measure of vectors, ``(n, d), (m, d) -> (n, m)``, higher for closer ones; its name for people."""

    label: str
    function: Callable[[Array, Array], Array]


def negative_distances(first: Array, second: Array, order: int) -> Array:
    """Return the distances of two sets of vectors by the norm of an order, below 0."""
    return np.stack([-np.linalg.norm(second - vector, order, axis=1) for vector in first])


# The measures by which files of sentence-transformers compare vectors.
SIMILARITIES = {
    "cosine": Measure("cosine", lambda first, second: l2_normalize(first) @ l2_normalize(second).T),
    "dot": Measure("dot product", lambda first, second: first @ second.T),
    "euclidean": Measure("Euclidean distance", partial(negative_distances, order=2)),
    "manhattan": Measure("Manhattan distance", partial(negative_distances, order=1)),
}


@dataclass(frozen=True)
class Dense:
    """A layer ``f(W x + b)`` behind the pooling, or ``f(W x + b) + V x``."""

    parameters: Linear
    activation: str  # a key of `DENSE_ACTIVATIONS`
    residual: Array | None = None  # V, which may be the identity

    def __call__(self, x: Array) -> Array:
        """``(..., d_in) -> (..., d_out)``."""
        y = DENSE_ACTIVATIONS[self.activation](linear(np.atleast_2d(x), *self.parameters))
        if self.residual is not None:
            y = y + np.atleast_2d(x) @ self.residual.T
        return y.reshape(*x.shape[:-1], -1)


@dataclass(frozen=True)
class Norm:
    """A layer norm behind the pooling."""

    parameters: LayerNorm

    def __call__(self, x: Array) -> Array:
        """``(d,)`` to the same."""
        return layer_norm(x, *self.parameters, NORM_EPS)


@dataclass(frozen=True)
class Normalize:
    """Scales a vector to length 1."""

    def __call__(self, x: Array) -> Array:
        """``(d,)`` to the same."""
        return l2_normalize(x)


Step = Dense | Norm | Normalize


@dataclass(frozen=True)
class EmbeddingHead:
    """The modules of a model behind its last layer."""

    poolings: tuple[str, ...] = ("mean",)  # keys of `POOLINGS`; the vectors of several are concatenated
    steps: tuple[Step, ...] = ()  # modules between pooling and the end
    normalize: bool = False  # whether the last module scales the vector to length 1
    include_prompt: bool = True  # whether tokens of a prompt are pooled like those of the text
    dimensions: int | None = None  # first ones that the vector is cut to; None for all
    # that the model was made for, a key of `SIMILARITIES`; "cosine" where it orders alike
    similarity: str = "cosine"

    @property
    def pooling(self) -> str:
        """The key of `POOLINGS` that gives the same vectors, up to their length, or "own" if none does."""
        simple = not self.steps and self.include_prompt and self.dimensions is None
        return self.poolings[0] if simple and len(self.poolings) == 1 else MODEL_DEFAULT

    def width(self, d_model: int) -> int:
        """Length of a vector before it is cut."""
        widths = [step.parameters.weight.shape[0] for step in self.steps if isinstance(step, Dense)]
        return widths[-1] if widths else len(self.poolings) * d_model

    def vector(self, pool: Callable[[str], Array]) -> Array:
        """Return a text's vector before it is normalised and cut; ``pool`` computes one pooling's vector."""
        vector = np.concatenate([pool(strategy) for strategy in self.poolings])
        for step in self.steps:
            vector = step(vector)
        return vector


def similarity_note(name: str, similarity: str) -> str:
    """Say that a model was made for another measure than the cosine, which searches use; "" otherwise."""
    if similarity == "cosine":
        return ""
    return (
        f"{name} was made for the {SIMILARITIES[similarity].label}, and searches compare by the cosine: the "
        "order of passages may differ from its maker's"
    )


def check_widths(head: EmbeddingHead, d_model: int, folder: Path) -> None:
    """Raise `ModelFileError` if a layer has another input width, or vectors are cut beyond theirs."""
    width = len(head.poolings) * d_model
    for step in head.steps:
        if isinstance(step, Normalize):
            continue
        d_out, d_in = (step.parameters.weight.shape * 2)[:2]
        if d_in != width:
            raise ModelFileError(
                f"{folder}: a layer takes vectors of {d_in}, and gets {width}: the files are not of one model"
            )
        width = d_out
    if head.dimensions is not None and head.dimensions > width:
        raise ModelFileError(f"{folder} cuts vectors of {width} to {head.dimensions}: download it again")


def check_dimensions(dimensions: int | None, width: int) -> None:
    """Raise `InputError` unless a vector of ``width`` can be cut to ``dimensions``."""
    if dimensions is not None and not 1 <= dimensions <= width:
        raise InputError(f"truncate_dim is {dimensions}: the vectors can be cut to 1 to {width}")
