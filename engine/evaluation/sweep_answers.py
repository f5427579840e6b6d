"""Answers in a sweep: some questions are answered in every configuration, and scored without a judge.

The reader answers in some 0.1 s a question on two cores, and reads no passage twice for a question.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ..documents.document import Chunk, Document
from ..generation.answer import Answer
from ..generation.answering import ask
from ..generation.settings import DEFAULT_ANSWER, AnswerSettings
from ..generation.writer import Writer
from ..layers.tracing import Array
from ..models.encoder import Encoder
from ..models.reader import Reader, Span
from ..retrieval.embedding_model import Model
from ..retrieval.index import Index, build_index
from ..retrieval.relevance import NullScores, null_scores_of
from ..retrieval.retrievers import SearchTexts
from ..retrieval.vector_cache import VectorCache
from ..settings import Configuration
from ..wording import counted
from .answers import AnswerQuestion, AnswerRow, measure_answers

MOST_ANSWERED = 20  # questions of a sample, answered in each configuration
Gaps = Sequence[Sequence[tuple[int, int]]]  # of passages, the characters that hold no answer
KEPT_PAIRS = 16_384  # of questions and passages, with their spans: about 20 MB


@dataclass(frozen=True)
class KeepingReader(Reader):
    """A reader that reads no pair of question and passage twice: configurations find many passages alike."""

    known: dict[Hashable, list[Span] | None] = field(default_factory=dict, repr=False)

    def read(self, question: str, passages: Sequence[str], skipped: Gaps = (), n_best: int = 5) -> list[Span]:
        """Return the best spans of each passage, as `Reader.read`."""
        hidden = skipped or [()] * len(passages)
        keys = [(question, *each, n_best) for each in zip(passages, map(tuple, hidden), strict=True)]
        found: dict[Hashable, list[Span] | None] = {
            key: self.known.pop(key, None) for key in dict.fromkeys(keys)
        }
        new = [number for number, key in enumerate(keys) if found[key] is None]
        read = super().read(question, [passages[n] for n in new], [hidden[n] for n in new], n_best)
        found |= {keys[n]: [span for span in read if new[span.passage] == n] for n in new}
        self.known.update(found)
        for old in list(self.known)[:-KEPT_PAIRS]:
            self.known.pop(old, None)
        spans = [replace(span, passage=n) for n, key in enumerate(keys) for span in found[key] or ()]
        return sorted(spans, key=lambda span: -span.score)


@dataclass(frozen=True)
class KeepingEncoder(Encoder):
    """An encoder that embeds no question twice."""

    known: dict[str, dict[str, Array]] = field(default_factory=dict, repr=False)

    def _embed(self, sequences: Sequence[Sequence[int]], *how: Any, **no_more: Any) -> dict[str, Array]:
        key = str((sequences, *how[:-1]))  # without who is told of the progress
        if key not in self.known:
            self.known[key] = super()._embed(sequences, *how)
        return self.known[key]


@dataclass(frozen=True)
class Answering:
    """The questions that are answered in every configuration, and how, but for ``k`` and retriever.

    A ``writer`` adds a text where the settings ask for one.
    """

    questions: Sequence[AnswerQuestion] = field(repr=False)
    documents: Sequence[Document] = field(repr=False)
    reader: Reader | None
    settings: AnswerSettings = DEFAULT_ANSWER
    writer: Writer | None = None

    def with_memory(self) -> "Answering":
        """Return this with a `KeepingReader`, for the configurations of a sweep."""
        return replace(self, reader=self.reader and KeepingReader(**vars(self.reader)))

    def rows(
        self,
        configuration: Configuration,
        indexed: tuple[Index, NullScores],
        model: Model,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> tuple[AnswerRow, ...]:
        """Answer the questions in a configuration, whose chunks and unrelated scores are ``indexed``."""
        index, null_scores = indexed
        search = replace(self.settings.search, k=configuration.k, retriever=configuration.retriever)
        settings = replace(self.settings, search=search)

        def answer(question: str) -> Answer:
            return ask(question, index, model, self.writer, settings, null_scores, reader=self.reader)

        return tuple(measure_answers(self.questions, answer, on_progress, at_once=True))

    def index(
        self, pooling: str, chunks: Sequence[Chunk], model: Model, texts: SearchTexts, cache: VectorCache
    ) -> tuple[Index, NullScores]:
        """Return the index of chunks, whose vectors are in the cache, with what unrelated questions score."""
        index = build_index(chunks, model, pooling, texts.max_tokens, None, cache, self.documents)
        postings = None if texts.words is None else texts.words.postings
        index = replace(index, postings=postings, expanded=texts.expanded, cache=cache)
        return index, null_scores_of(index, model, cache)


@dataclass(frozen=True)
class Limit:
    """Where answerable questions are lost: of ``n``, so many find their answer, and are answered rightly."""

    n: int
    n_found: int
    n_right: int

    @property
    def by(self) -> Literal["search", "answer", ""]:
        """What loses more of them; empty where none is lost."""
        if self.n_right == self.n:
            return ""
        return "search" if self.n - self.n_found > self.n_found - self.n_right else "answer"

    @property
    def words(self) -> str:
        """The numbers, and what limits, in a sentence."""
        said = (
            f"Of {counted(self.n, 'question')} answered, the passage is found for {self.n_found:,} and the "
            f"answer is right for {self.n_right:,}"
        )
        limits = {
            "search": f"the search limits now, which misses {self.n - self.n_found:,}",
            "answer": f"the answer limits now: {self.n_found - self.n_right:,} are lost after the search",
            "": "nothing limits them",
        }
        return f"{said}: {limits[self.by]}."


def limit_of(rows: Sequence[AnswerRow]) -> Limit | None:
    """Return where the answers of a configuration are lost; None where no question has one.

    A right answer counts as found, wherever its words were read.
    """
    own = [row for row in rows if row.question.is_answerable]
    n_right = sum(row.right for row in own)
    return Limit(len(own), sum(row.found or row.right for row in own), n_right) if own else None
