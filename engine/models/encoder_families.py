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
from . import bert, decoder_encoder, distilbert, gte, jina_bert, modern_bert, mpnet, nomic_bert, roberta


@dataclass(frozen=True)
class ClassifierNames:
    """The classifier of a cross-encoder: names of its tensors, and the activation between them."""

    dense: str
    score: str
    activation: Callable[[Array], Array] = np.tanh
    norm: str = ""


@dataclass(frozen=True)
class WordHeadNames:
    """The head of a masked language model: names of its tensors."""

    dense: str
    norm: str
    words: str  # whose table most models share with the embeddings, and leave out
    bias: str  # of the words, where it is stored apart from them
    # a key of `ACTIVATIONS`, or the name of the setting of config.json that states one
    activation: str = "gelu"


@dataclass(frozen=True)
class EncoderFamily:
    """An encoder family."""

    forward: ModuleType  # with ``read_config``, ``read_weights``, ``encoder_forward`` and ``trace_shapes``
    # in transformers' models for sequence classification; None where there are none
    classifier: ClassifierNames | None = None
    words: WordHeadNames | None = None  # the head of its masked language models; None where there are none


BERT_WORDS = WordHeadNames(
    "cls.predictions.transform.dense",
    "cls.predictions.transform.LayerNorm",
    "cls.predictions.decoder",
    "cls.predictions.bias",
    "hidden_act",
)
DISTILBERT_WORDS = WordHeadNames(
    "vocab_transform", "vocab_layer_norm", "vocab_projector", "vocab_projector.bias", "activation"
)
MODERNBERT_WORDS = WordHeadNames(
    "head.dense", "head.norm", "decoder", "decoder.bias", "classifier_activation"
)
ROBERTA_WORDS = WordHeadNames("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.bias")
ROBERTA_CLASSIFIER = ClassifierNames("classifier.dense", "classifier.out_proj")
DECODER = EncoderFamily(decoder_encoder)
GTE = EncoderFamily(gte, ClassifierNames("pooler.dense", "classifier"))
JINA = "jina_bert"  # whose files say bert
FAMILIES = {
    "bert": EncoderFamily(bert, ClassifierNames("pooler.dense", "classifier"), BERT_WORDS),
    "roberta": EncoderFamily(roberta, ROBERTA_CLASSIFIER, ROBERTA_WORDS),
    "xlm-roberta": EncoderFamily(roberta, ROBERTA_CLASSIFIER, ROBERTA_WORDS),
    "camembert": EncoderFamily(roberta, ROBERTA_CLASSIFIER, ROBERTA_WORDS),
    "mpnet": EncoderFamily(mpnet, ROBERTA_CLASSIFIER, ROBERTA_WORDS),
    "distilbert": EncoderFamily(
        distilbert, ClassifierNames("pre_classifier", "classifier", relu), DISTILBERT_WORDS
    ),
    "modernbert": EncoderFamily(
        modern_bert,
        ClassifierNames("head.dense", "classifier", ACTIVATIONS["gelu"].forward, "head.norm"),
        MODERNBERT_WORDS,
    ),
    "nomic_bert": EncoderFamily(nomic_bert),
    "qwen3": DECODER,
    "qwen2": DECODER,
    "mistral": DECODER,
    "llama": DECODER,
    "gemma3_text": DECODER,
    "gte": GTE,
    "new": GTE,  # as Alibaba-NLP's own files call it
    JINA: EncoderFamily(jina_bert),
}


def read_model_type(folder: Path) -> str:
    """Return the family of a model's folder; raise `ModelFileError` for unknown ones."""
    raw = read_json(folder / "config.json")
    model_type = raw.get("model_type")
    if model_type == "bert" and raw.get("position_embedding_type") == "alibi":
        return JINA
    if isinstance(model_type, str) and model_type in FAMILIES:
        return model_type
    raise ModelFileError(
        f"{folder} is a {model_type!r} model, which the encoder does not read: "
        f"give one of the families {', '.join(FAMILIES)}"
    )
