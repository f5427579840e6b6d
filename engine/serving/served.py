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
    """A corpus for the routes ``/search`` and ``/ask``."""

    index: Index = field(repr=False)
    null_scores: NullScores = field(repr=False)  # of unrelated questions in the index
    writer: Writer
    settings: AnswerSettings  # where a request does not say otherwise


@dataclass(frozen=True)
class Served:
    """The models and the corpus of a server."""

    encoder: Encoder  # with its reranker if one is loaded; requests give its name
    pooling: str = OWN  # as in `Encoder.encode`
    truncate: bool = False  # whether texts beyond the token limit are cut where a request does not say so
    matryoshka: bool = False  # whether the model was trained to have its vectors cut, so that requests may
    searched: Searched | None = None  # the corpus, if there is one

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
