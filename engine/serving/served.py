"""What a server serves: its models and its corpus, and the most that requests may take."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..generation.settings import AnswerSettings
from ..generation.writer import Writer
from ..layers.tracing import Array
from ..models.embedding_head import MODEL_DEFAULT
from ..models.encoder import Encoder
from ..models.reader import Reader, best_spans, shipped_reader
from ..retrieval.index import Index
from ..retrieval.relevance import NullScores

QUEUED_REQUESTS = 4  # of the largest size, whose tokens may wait together
TOGETHER = 8  # texts that the language model writes at once: as many as share a pass
QUEUED_ANSWERS = 2 * TOGETHER  # questions whose text it writes, or that wait for it
INDEX = "glassbox-index"  # the model of chats that answers from the documents
ANSWER_S = 2.0  # that a client is asked to wait for each of them


@dataclass(frozen=True)
class RequestLimits:
    """The most that requests may take."""

    body_mb: float = 4.0  # megabytes of a body
    texts: int = 2048  # of one request, as OpenAI has it
    tokens: int = 300_000  # of one request, as OpenAI has it
    requests: int = 128  # at work or waiting, of all clients
    seconds: float = 120.0  # from a request's first byte to the beginning of its answer; a stream ends then
    drain_s: int = 30  # seconds in which requests at work are answered after SIGTERM

    @property
    def body_bytes(self) -> int:
        """Bytes of a body."""
        return round(self.body_mb * 1e6)


@dataclass(frozen=True)
class Searched:
    """A corpus for the routes ``/search`` and ``/ask``."""

    index: Index = field(repr=False)
    null_scores: NullScores = field(repr=False)  # of unrelated questions in the index
    settings: AnswerSettings  # where a request does not say otherwise
    reader: Reader | None = None  # finds the words that answer
    writer: Writer | None = None  # the language model, where the settings have it write


@dataclass(frozen=True)
class Served:
    """What a server serves: its models and its corpus, and the most that requests may take."""

    encoder: Encoder  # with its reranker if one is loaded; requests give its name
    pooling: str = MODEL_DEFAULT  # as in `Encoder.encode`
    truncate: bool = False  # whether texts beyond the token limit are cut where a request does not say so
    matryoshka: bool = False  # whether the model was trained to have its vectors cut, so that requests may
    searched: Searched | None = None  # the corpus, if there is one
    limits: RequestLimits = RequestLimits()
    writer: Writer | None = None  # the language model of chats, where the corpus has none of its own
    tools: bool = False  # whether assistants may search and ask by MCP

    @property
    def chat_writer(self) -> Writer | None:
        """The language model of chats: the decoder, never a server in its place."""
        writer = self.writer or (self.searched.writer if self.searched else None)
        return writer if writer is not None and writer.server is None else None

    @property
    def models(self) -> dict[str, dict[str, Any]]:
        """The models by their names, with what clients want to know of them."""
        encoder, writer = self.encoder, self.chat_writer
        models: dict[str, dict[str, Any]] = {
            encoder.name: {"dimensions": encoder.width(), "max_tokens": encoder.max_tokens}
        }
        if encoder.reranker is not None:
            models[encoder.reranker.name] = {"max_tokens": encoder.reranker.max_tokens}
        if writer is not None:
            models[writer.name] = {"max_tokens": writer.decoder.max_tokens, "chat": True}
        if self.searched is not None:
            models[INDEX] = {"chat": True}
        return models

    @property
    def reader(self) -> Reader:
        """The reader that is shipped, loaded once a process."""
        return shipped_reader(self.encoder)

    def cuts(self, truncate: bool | None) -> bool:
        """Whether texts beyond the token limit are cut, by what a request says."""
        return self.truncate if truncate is None else truncate

    def work(self, key: Any, items: list[Any]) -> Sequence[Any] | Array:
        """Compute a batch: the result of each item, by the key of its job.

        The keys are ``("embed", n_prompt, dimensions)`` for token ids to embed, ``("pairs", as_logits)`` for
        pairs that the reranker scores, and ``("windows",)`` for those of the reader.
        """
        kind, *settings = key
        if kind == "embed":
            n_prompt, dimensions = settings
            pooling = None if self.pooling == MODEL_DEFAULT else self.pooling
            return self.encoder.encode_ids(items, pooling, n_prompt=n_prompt, dimensions=dimensions)
        if kind == "pairs":
            assert self.encoder.reranker is not None, "checked before pairs are read"
            return self.encoder.reranker.score_ids(items, as_logits=settings[0]).tolist()
        spans = [best_spans([scores], n_best=1) for scores in self.reader.scores_of(items)]
        return [found[0].score if found else -math.inf for found in spans]
