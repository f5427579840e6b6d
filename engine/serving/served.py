"""The models and the corpus of a server."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.generation.settings import AnswerSettings
from engine.generation.writer import Writer
from engine.layers.tracing import Array
from engine.models.embedding_head import OWN
from engine.models.encoder import Encoder
from engine.retrieval.index import Index
from engine.retrieval.maxsim import maxsim_of_ids
from engine.retrieval.relevance import NullScores


@dataclass(frozen=True)
class Searched:
    """A corpus for the routes ``/search`` and ``/ask``.

    Attributes
    ----------
    index, null_scores
        Its chunks, and the scores of unrelated questions in it.
    writer
        The model that writes answers.
    settings
        How it is searched and answered, where a request does not say otherwise.
    """

    index: Index = field(repr=False)
    null_scores: NullScores = field(repr=False)
    writer: Writer
    settings: AnswerSettings


@dataclass(frozen=True)
class Served:
    """The models and the corpus of a server.

    Attributes
    ----------
    encoder
        The encoder, with its reranker if one is loaded; requests give its name.
    pooling
        As in `Encoder.encode`, or "own".
    truncate
        Whether texts beyond the token limit are cut where a request does not say so.
    matryoshka
        Whether the model was trained to have its vectors cut, so that requests may do it.
    searched
        The corpus, if there is one.
    """

    encoder: Encoder
    pooling: str = OWN
    truncate: bool = False
    matryoshka: bool = False
    searched: Searched | None = None

    def work(self, key: Any, items: list[Any]) -> Sequence[Any] | Array:
        """Compute a batch: the result of each item, by the key of its job.

        The keys are ``("embed", n_prompt, dimensions)`` for token ids to embed, ``("pairs",)`` for pairs that
        the reranker scores, and ``("maxsim", question)`` for token ids to compare with those of a question.
        """
        kind, *settings = key
        if kind == "embed":
            n_prompt, dimensions = settings
            pooling = None if self.pooling == OWN else self.pooling
            return self.encoder.encode_ids(items, pooling, n_prompt=n_prompt, dimensions=dimensions)
        if kind == "pairs":
            assert self.encoder.reranker is not None, "checked before pairs are read"
            return self.encoder.reranker.score_ids(items).tolist()
        return maxsim_of_ids(settings, items, self.encoder)[0].tolist()
