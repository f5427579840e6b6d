"""The encoder families, by config.json's model_type: to add one, write its forward pass and an entry."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np

from ..errors import ModelFileError
from ..layers.activation import ACTIVATIONS, relu
from ..layers.tracing import Array
from ..weights.tensors import read_json
from . import bert, distilbert, modern_bert, mpnet, nomic_bert, qwen3, roberta


@dataclass(frozen=True)
class ClassifierNames:
    """The classifier of a cross-encoder: names of its tensors, and the activation between them."""

    dense: str
    score: str
    activation: Callable[[Array], Array] = np.tanh
    norm: str = ""


@dataclass(frozen=True)
class EncoderFamily:
    """An encoder family.

    Attributes
    ----------
    forward
        The module with ``read_config``, ``read_weights``, ``encoder_forward`` and ``trace_shapes``.
    classifier
        Its classifier in transformers' models for sequence classification; None where there are none.
    is_causal
        Whether tokens attend only to those before them.
    """

    forward: ModuleType
    classifier: ClassifierNames | None = None
    is_causal: bool = False


ROBERTA_CLASSIFIER = ClassifierNames("classifier.dense", "classifier.out_proj")
FAMILIES = {
    "bert": EncoderFamily(bert, ClassifierNames("pooler.dense", "classifier")),
    "roberta": EncoderFamily(roberta, ROBERTA_CLASSIFIER),
    "xlm-roberta": EncoderFamily(roberta, ROBERTA_CLASSIFIER),
    "mpnet": EncoderFamily(mpnet, ROBERTA_CLASSIFIER),
    "distilbert": EncoderFamily(distilbert, ClassifierNames("pre_classifier", "classifier", relu)),
    "modernbert": EncoderFamily(
        modern_bert,
        ClassifierNames("head.dense", "classifier", ACTIVATIONS["gelu"].forward, "head.norm"),
    ),
    "nomic_bert": EncoderFamily(nomic_bert),
    "qwen3": EncoderFamily(qwen3, is_causal=True),
}


def read_model_type(folder: Path) -> str:
    """Return the family of a model's folder; raise `ModelFileError` for unknown ones."""
    model_type = read_json(folder / "config.json").get("model_type")
    if isinstance(model_type, str) and model_type in FAMILIES:
        return model_type
    raise ModelFileError(
        f"{folder} is a {model_type!r} model, which the encoder does not read: "
        f"give one of the families {', '.join(FAMILIES)}"
    )
