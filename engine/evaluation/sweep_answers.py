"""Answers in a sweep: some questions are answered in every configuration, and scored without a judge.

The reader answers in some 0.1 s a question on two cores, so that a sample takes a few seconds each time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from ..documents.document import Chunk, Document
from ..generation.answer import Answer
from ..generation.answering import ask
from ..generation.settings import DEFAULT_ANSWER, AnswerSettings
from ..generation.writer import Writer
from ..models.reader import Reader, Scores, Window
from ..retrieval.embedding_model import Model
from ..retrieval.index import Index, build_index
from ..retrieval.relevance import NullScores, null_scores_of
from ..retrieval.retrievers import SearchTexts
from ..retrieval.vector_cache import VectorCache
from ..settings import Configuration
from ..wording import counted
from .answers import AnswerQuestion, AnswerRow, measure_answers

MOST_ANSWERED = 20  # questions of a sample, answered in each configuration


@dataclass(frozen=True)
class KeepingReader(Reader):
    """A reader that reads no window twice: configurations find many passages alike."""

    known: dict[tuple[int, ...], Scores] = field(default_factory=dict, repr=False)

    def scores_of(self, windows: Sequence[Window]) -> list[Scores]:
        """Score every token of windows, as `Reader.scores_of`."""
        keys = [tuple(window.ids) for window in windows]
        new = {key: window for key, window in zip(keys, windows, strict=True) if key not in self.known}
        self.known.update(zip(new, super().scores_of(list(new.values())), strict=True))
        return [replace(self.known[key], window=window) for key, window in zip(keys, windows, strict=True)]


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
        """Return this with a `KeepingReader`, for the configurations of the same chunks."""
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

        return tuple(measure_answers(self.questions, answer, on_progress))

    def index(
        self,
        pooling: str,
        chunks: Sequence[Chunk],
        model: Model,
        texts: SearchTexts,
        cache: VectorCache,
    ) -> tuple[Index, NullScores]:
        """Return the index of chunks, whose vectors are in the cache, with what unrelated questions score."""
        index = build_index(chunks, model, pooling, texts.max_tokens, None, cache, self.documents)
        postings = None if texts.words is None else texts.words.postings
        index = replace(index, postings=postings, expanded=texts.expanded)
        return index, null_scores_of(index, model, cache=cache)


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
