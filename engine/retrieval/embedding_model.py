"""The interface of embedding models to a search: what a model can do is asked, not its class."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from typing import ClassVar, Self, TypeAlias

import numpy as np

from ..documents.document import Chunk, Document
from ..documents.splitters import Splitting, split
from ..errors import InputError, check_question, check_several
from ..layers.tracing import Array
from ..models.embedding_head import MODEL_DEFAULT
from ..models.encoder import Encoder
from ..models.fingerprint import head_digest
from ..models.precision import chosen_precision
from ..models.prompts import Prompts, Role
from ..tokenizers.encoding import check_text
from ..tokenizers.text_tokenizer import TextTokenizer
from ..weights.fetch import Progress
from ..wording import model_name
from .embedding_spec import EmbeddingSpec, Query, prompted_digest


class BlackBoxModel(ABC):
    """A model that returns one vector for each text, by its own pooling, and no token vectors.

    Documents are cut and tokens counted by a tokenizer of the engine, so a model with another tokenizer may
    read fewer or more tokens of a chunk than its size.
    """

    sets_limit: ClassVar[bool]  # whether another limit of tokens than the model's own can be set
    block_texts: ClassVar[int]  # texts embedded before a cache stores their vectors
    name: str  # for people, by which `load_model` finds it
    tokenizer: TextTokenizer  # by which documents are cut
    fingerprint: str  # a SHA-256 that differs between models whose vectors differ
    d_model: int
    prompts: Prompts

    pooling: ClassVar[str] = MODEL_DEFAULT
    precision: ClassVar[str] = "float32"
    reranker: ClassVar[None] = None
    as_encoder: ClassVar[None] = None
    similarity_fn_name: str = "cosine"

    @abstractmethod
    def with_prompts(self, use: str) -> Self:
        """Return this model with its prompts or none, by a key of `PROMPT_USES`."""

    @abstractmethod
    def token_limit(self, max_tokens: int | None) -> int:
        """Return ``max_tokens``, or the model's own limit for None; one out of its range raises."""

    @abstractmethod
    def embedder(
        self, role: Role, max_tokens: int | None
    ) -> AbstractContextManager[Callable[[list[str]], Array]]:
        """Open what embeds up to `block_texts` texts at a time: float32 ``(n_texts, d_model)``, length 1."""

    def with_precision(self, precision: str) -> Self:
        """Return this model for float32; raise `InputError` for another precision."""
        if chosen_precision(precision) != "float32":
            raise InputError(
                f"precision {precision} rounds an encoder's matrices, and {model_name(self.name)} has none"
            )
        return self

    def width(self, pooling: str | None = None) -> int:
        """Length of a vector."""
        return self.d_model

    def text_limit(self, max_tokens: int | None = None) -> int:
        """Return how many tokens of a document are read."""
        return self.token_limit(max_tokens)

    def check_poolings(self, pooling: str | Sequence[str] | None) -> list[str]:
        """Return ``["own"]``; raise `InputError` for another pooling."""
        for each in [pooling] if isinstance(pooling, str) else pooling or []:
            if each != MODEL_DEFAULT:
                raise InputError(
                    f"pooling is {each!r}: {model_name(self.name)} pools tokens itself, "
                    f"give {MODEL_DEFAULT!r}"
                )
        return [MODEL_DEFAULT]

    def encode_as(
        self,
        role: Role,
        texts: Sequence[str],
        pooling: list[str],
        max_tokens: int | None = None,
        on_progress: Progress | None = None,
    ) -> dict[str, Array]:
        """Embed texts: ``{"own": vectors}``, float32 ``(n_texts, d_model)``, rows of length 1.

        Raises `InputError` for another pooling, a limit out of the model's range, or something that is no
        text, and `ModelUnavailableError` where the model cannot be reached, or answers with something else
        than a vector for each text.
        """
        check_several(texts)
        self.check_poolings(pooling)
        limit = self.token_limit(max_tokens)
        for number, text in enumerate(texts):
            check_text(text, f"text {number}")
        blocks = [np.empty((0, self.d_model), np.float32)]
        with self.embedder(role, limit) as embed:
            for start in range(0, len(texts), self.block_texts):
                block = list(texts[start : start + self.block_texts])
                blocks.append(embed(block))
                if on_progress is not None:
                    on_progress(start + len(block), len(texts))
        return {MODEL_DEFAULT: np.concatenate(blocks)}


# What only some of them can do is None where a model cannot do it: `as_encoder`, for all that reads token
# vectors, layers or weights, and `reranker`.
Model: TypeAlias = Encoder | BlackBoxModel


def embedding_spec(model: Model, pooling: str | None = None, max_tokens: int | None = None) -> EmbeddingSpec:
    """Return the spec of a model's vectors; None is its own pooling or limit, errors are those of encoding.

    A model's own pooling has the name of the strategy that it is, or "own" if it is more than one.
    """
    model.check_poolings(pooling)
    pooling = model.pooling if pooling is None or pooling == MODEL_DEFAULT else pooling
    digest = prompted_digest(model.fingerprint, model.prompts)
    if (encoder := model.as_encoder) is not None:
        if pooling == MODEL_DEFAULT:
            digest = sha256(f"{digest} {head_digest(encoder.head)}".encode()).hexdigest()
        if pooling == "idf":
            assert encoder.idf is not None, "checked by check_poolings"
            digest = sha256(digest.encode() + encoder.idf.tobytes()).hexdigest()
    name = model.name if model.precision == "float32" else f"{model.name} in {model.precision}"
    name = f"{name} with its prompts" if model.prompts.in_search else name
    return EmbeddingSpec(digest, pooling, model.token_limit(max_tokens), model.width(pooling), name)


def encode_by(
    spec: EmbeddingSpec, role: Role, texts: Sequence[str], model: Model, on_progress: Progress | None = None
) -> Array:
    """Embed the questions or documents of a search as a spec states: ``(n_texts, d_model)``, of length 1."""
    vectors = model.encode_as(
        role, texts, [spec.pooling], max_tokens=spec.max_tokens, on_progress=on_progress
    )
    return vectors[spec.pooling]


def embed_query(
    question: str, model: Model, pooling: str | None = None, max_tokens: int | None = None
) -> Query:
    """Embed a question as `Encoder.encode` does, with length 1; a blank one raises `InputError`."""
    check_question(question)
    spec = embedding_spec(model, pooling, max_tokens)
    [vector] = encode_by(spec, "query", [question], model)
    return Query(vector, spec)


def needs_encoder_message(what: str, model: Model) -> str:
    """Return why a model without token vectors cannot do what reads them."""
    return f"{what} reads the vectors of tokens, and {model_name(model.name)} gives only those of whole texts"


def cut_documents(
    documents: Sequence[Document], model: Model, splitting: Splitting, parent_tokens: int = 0
) -> list[list[Chunk]]:
    """Cut documents by the model's tokenizer, in larger chunks of ``parent_tokens``; return each one's."""

    def embed(sentences: Sequence[str]) -> Array:
        if (encoder := model.as_encoder) is not None:
            return encoder.encode(sentences)
        return encode_by(embedding_spec(model), "document", sentences, model)

    return [
        split(document, model.tokenizer, splitting, embed, parent_tokens=parent_tokens)
        for document in documents
    ]
