"""The interface of embedding models to a search: vectors of texts, and the spec of how they were made."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from engine.errors import InputError
from engine.layers.tracing import Array
from engine.models.embedding_head import OWN
from engine.models.encoder import Encoder
from engine.models.precision import chosen_precision
from engine.models.prompts import Prompts, Role
from engine.retrieval.embedding_spec import EmbeddingSpec, Query
from engine.weights.fetch import Progress

if TYPE_CHECKING:
    from engine.tokenizers.text_tokenizer import TextTokenizer


class BlackBoxModel(Protocol):
    """A model that returns one vector for each text, by its ``"own"`` pooling, and no token vectors.

    Documents are cut and tokens counted by a tokenizer of the engine, so a model with another tokenizer may
    read fewer or more tokens of a chunk than its size.
    """

    sets_limit: ClassVar[bool]  # whether it takes another limit of tokens than its own
    block_texts: ClassVar[int]  # texts embedded before a cache stores their vectors

    @property
    def name(self) -> str:
        """Name for people, by which `load_model` finds it."""

    @property
    def tokenizer(self) -> "TextTokenizer":
        """The engine's tokenizer, by which documents are cut."""

    @property
    def d_model(self) -> int:
        """Length of a vector."""

    @property
    def fingerprint(self) -> str:
        """A SHA-256 that differs between models whose vectors differ."""

    @property
    def prompts(self) -> Prompts:
        """The texts put before questions and documents."""

    def with_prompts(self, use: str) -> "BlackBoxModel":
        """Return this model with its prompts or none, by a key of `PROMPT_USES`."""

    def token_limit(self, max_tokens: int | None) -> int:
        """Return ``max_tokens``, or the model's own limit for None; one out of its range raises."""

    def embedding_spec(self, pooling: str = OWN, max_tokens: int | None = None) -> EmbeddingSpec:
        """Return the spec of the vectors that `encode_as` makes; the errors are the same."""

    def encode_as(
        self,
        role: Role,
        texts: Sequence[str],
        pooling: list[str],
        max_tokens: int | None = None,
        on_progress: Progress | None = None,
    ) -> dict[str, Array]:
        """Embed texts: ``{"own": vectors}``, float32 ``(n_texts, d_model)``, rows of length 1."""


Model = Encoder | BlackBoxModel


def embedding_spec(model: Model, pooling: str | None, max_tokens: int | None) -> EmbeddingSpec:
    """Return the spec of the vectors that a model makes; None is its own pooling, or its own limit."""
    if isinstance(model, Encoder):
        return EmbeddingSpec.of(model, pooling, max_tokens)
    return model.embedding_spec(pooling or OWN, max_tokens)


def encode_by(
    spec: EmbeddingSpec,
    role: Role,
    texts: Sequence[str],
    model: Model,
    on_progress: Progress | None = None,
) -> Array:
    """Embed the questions or documents of a search as a spec states: ``(n_texts, d_model)``, of length 1."""
    vectors = model.encode_as(
        role, texts, [spec.pooling], max_tokens=spec.max_tokens, on_progress=on_progress
    )
    return vectors[spec.pooling]


def embed_blocks(
    texts: Sequence[str],
    model: BlackBoxModel,
    embed: Callable[[list[str]], Array],
    on_progress: Progress | None,
) -> dict[str, Array]:
    """Embed texts by a function, as many at once as the model takes: the result of its `encode_as`."""
    blocks = [np.empty((0, model.d_model), np.float32)]
    for start in range(0, len(texts), model.block_texts):
        block = list(texts[start : start + model.block_texts])
        blocks.append(embed(block))
        if on_progress is not None:
            on_progress(start + len(block), len(texts))
    return {OWN: np.concatenate(blocks)}


def embed_query(
    question: str, model: Model, pooling: str | None = None, max_tokens: int | None = None
) -> Query:
    """Embed a question as `Encoder.encode` does, with length 1; a blank one raises `InputError`."""
    if not question.strip():
        raise InputError("the question is empty: ask something")
    spec = embedding_spec(model, pooling, max_tokens)
    [vector] = encode_by(spec, "query", [question], model)
    return Query(vector, spec)


def as_searched(model: Model, prompts: str = "own", precision: str = "float32") -> Model:
    """Return a model with its prompts or none, in a precision, by keys of `PROMPT_USES` and `PRECISIONS`.

    Raises
    ------
    InputError
        One of the two is unknown, or the model has no inside, or one that cannot be rounded.
    """
    if isinstance(model, Encoder):
        return model.with_prompts(prompts).with_precision(precision)
    if chosen_precision(precision) != "float32":
        raise InputError(f"precision {precision} rounds the inside of a model, and {model.name} shows none")
    return model.with_prompts(prompts)


def text_limit(model: Model, max_tokens: int | None = None) -> int:
    """Return how many tokens of a document are read; None is the model's own limit, as in `token_limit`."""
    return model.text_limit(max_tokens) if isinstance(model, Encoder) else model.token_limit(max_tokens)


def inside_of(model: Model) -> Encoder | None:
    """Return a model as an encoder, None for one without an inside."""
    return model if isinstance(model, Encoder) else None


def no_inside(what: str, model: BlackBoxModel) -> str:
    """Return why a model without token vectors cannot do what reads them."""
    return f"{what} reads the vectors of tokens, and {model.name} gives only those of whole texts"
