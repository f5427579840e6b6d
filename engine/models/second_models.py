"""Second models, which some retrievers need besides an encoder: one table."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..weights.catalog import DEFAULT_RERANKER, DEFAULT_SPARSE
from .multi_vector import MultiVectorEncoder
from .reranker import Reranker
from .sparse_encoder import SparseEncoder

SecondModel = Reranker | SparseEncoder | MultiVectorEncoder


@dataclass(frozen=True)
class SecondModelKind:
    """A kind of model: its name and description for people, and how it is loaded."""

    label: str
    load: Callable[..., Any]
    example: str  # an id on the Hub
    help: str
    default: str = ""  # the known model that is used where none is named, if there is one
    reads: str = ""  # the method that reads chunks by themselves, empty for one that reads pairs


# By the field of an `Encoder` that holds the model.
SECOND_MODELS = {
    "reranker": SecondModelKind(
        "cross-encoder",
        Reranker.load,
        "cross-encoder/ms-marco-MiniLM-L6-v2",
        "A model that reads question and chunk together and gives one score, as sentence-transformers saves "
        "it, or a language model asked for yes or no (Qwen3-Reranker). It reorders the best chunks of the "
        "hybrid search: slower than vectors, and often better.",
        DEFAULT_RERANKER,
    ),
    "sparse": SecondModelKind(
        "learned sparse model",
        SparseEncoder.load,
        "naver/splade-cocondenser-ensembledistil",
        "A masked language model (SPLADE) that weighs the words of a text and adds others, as transformers "
        "or sentence-transformers save it.",
        DEFAULT_SPARSE,
        reads="encode",
    ),
    "multi_vector": SecondModelKind(
        "late-interaction model",
        MultiVectorEncoder.load,
        "colbert-ir/colbertv2.0",
        "A model (ColBERT) that compares each token of the question with those of a chunk, as its own "
        "library, PyLate or sentence-transformers save it.",
        reads="vectors",
    ),
}
