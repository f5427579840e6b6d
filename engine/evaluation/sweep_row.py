"""The results of one configuration of a grid."""

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ..documents.document import Chunk
from ..layers.tracing import Array
from ..models.parallel import single_threaded_blas
from ..retrieval.ranking import blocks
from ..retrieval.retrievers import RETRIEVERS
from ..settings import Configuration
from .answers import AnswerRow
from .bootstrap import N_RESAMPLES, draws, level_interval, means, percentile_interval
from .metrics import METRICS, Metric, Retrieved, first_relevant, reciprocal_of, tokens_to_first
from .questions import Question
from .spans import SpanMetrics, best_chunks, span_metrics

BM25 = "bm25"
SEED = 0  # of the resamples, the same for all configurations
RIGHT = "right"  # the metric of answers
# The metrics of a search, and that of answers, whose values come with them.
ANSWERED = Metric(
    lambda found: np.zeros(0),
    "Answered rightly",
    "Share of the questions with an answer, of those that were answered, whose answer is right: what is "
    "shown holds the known answer, or the words found are of the labelled passage.",
    unit="answers",
    at_k=False,
)
MEASURES = ChainMap({RIGHT: ANSWERED}, METRICS)


@dataclass(frozen=True)
class SweepRow:
    """A configuration and its results."""

    configuration: Configuration  # the settings, with the ``k`` of the metrics' names
    n_chunks: int  # number of chunks and questions
    n_questions: int
    metrics: Mapping[str, float]  # mean over the questions, by the names of `METRICS`
    # ends of the 95 % bootstrap interval of each mean
    intervals: Mapping[str, tuple[float, float]] = field(repr=False)
    # values of every question, ``(n_questions,)``, by metric; `QuestionValues` in a sweep
    values: Mapping[str, tuple[float, ...]] = field(repr=False)
    seconds: float  # time of this row, without work shared with earlier rows
    index_bytes: int  # bytes of the index: 32-bit vectors of the chunks, entries of BM25's index, or both
    # time to score all chunks for one question, on average and without embedding it; None in rows of earlier
    # versions
    search_seconds: float | None = None
    # the answers to a sample of the questions, or to all; none where they were not answered
    answers: tuple[AnswerRow, ...] = field(default=(), repr=False)

    @property
    def n_answers(self) -> int:
        """How many questions were answered."""
        return len(self.answers)

    def with_answers(self, answers: Sequence[AnswerRow]) -> "SweepRow":
        """Return the row with answers, and `RIGHT` among its metrics where a question has an answer."""
        own = tuple(float(each.right) for each in answers if each.question.is_answerable)
        answered = replace(self, answers=tuple(answers))
        if not own:
            return answered
        share = level_interval(np.array(own))
        return replace(
            answered,
            metrics={**self.metrics, RIGHT: share.estimate},
            intervals={**self.intervals, RIGHT: (share.low, share.high)},
            values=ChainMap({RIGHT: own}, self.values),  # type: ignore[arg-type]  # nothing is written to it
        )


@dataclass(frozen=True, eq=False)  # equal if the values are equal, like any mapping
class QuestionValues(Mapping[str, tuple[float, ...]]):
    """Values of several metrics for every question, ``(n_questions,)`` each, in little memory.

    Most values repeat: a question without a hit has 0 in every metric, and ranks are small. So each distinct
    number is stored once, and its index in one or two bytes for each occurrence; nothing is rounded.
    """

    names: tuple[str, ...]  # the metrics' names
    distinct: Array = field(repr=False)  # the distinct values, float64 ``(n_distinct,)``
    # index of each value in these, ``(n_metrics, n_questions)`` of the smallest unsigned type
    places: Array = field(repr=False)

    @classmethod
    def of(cls, names: Sequence[str], values: Array) -> "QuestionValues":
        """Compress the values ``(n_questions, n_metrics)`` of metrics."""
        columns = np.asarray(values, np.float64)
        bits = columns.T.ravel().view(np.int64)  # -0.0 and 0.0 differ in their bits
        distinct, places = np.unique(bits, return_inverse=True)
        smallest = np.min_scalar_type(max(len(distinct) - 1, 0))
        return cls(tuple(names), distinct.view(np.float64), places.astype(smallest).reshape(columns.T.shape))

    def __getitem__(self, name: str) -> tuple[float, ...]:
        """Return a metric's values; raise `KeyError` for an unknown name."""
        if name not in self.names:
            raise KeyError(name)
        return tuple(self.distinct[self.places[self.names.index(name)]].tolist())

    def __iter__(self) -> Iterator[str]:
        """Iterate over the metrics' names."""
        return iter(self.names)

    def __len__(self) -> int:
        """Return the number of metrics."""
        return len(self.names)


class Ranked(NamedTuple):
    """A retriever's best chunks for a question, and where the first relevant one is."""

    best: list[int]  # numbers of the best chunks, best first, up to the largest k
    relevant: list[bool]  # whether each of them is relevant
    n_relevant: int  # of all chunks
    reciprocal_rank: float  # 1 over the rank of the first relevant chunk
    tokens_read: float  # tokens of the chunks up to that one; see `tokens_to_first`


def ranked(scores: Array, relevant: Array, depth: int, n_tokens: Array) -> list[Ranked]:
    """Rank the ``depth`` best chunks for each question by scores ``(n_questions, n_chunks)``.

    Which are relevant has that shape, too; their tokens are ``(n_chunks,)``.
    """
    found = list[Ranked]()
    for rows in blocks(len(scores)):
        best = best_chunks(scores[rows], depth)
        first = first_relevant(scores[rows], relevant[rows])
        ranks, read = reciprocal_of(first).tolist(), tokens_to_first(first, n_tokens).tolist()
        for own, right, rank, n_read in zip(best, relevant[rows], ranks, read, strict=True):
            found.append(Ranked(own.tolist(), right[own].tolist(), int(right.sum()), rank, n_read))
    return found


def retrieved(ranked: Sequence[Ranked], k: int, spans: Sequence[SpanMetrics] = ()) -> Retrieved:
    """Return the first ``k`` chunks of every question, in a matrix as small as metrics at ``k`` allow.

    The first ``k`` columns hold the relevance of the best chunks, the rest all other relevant ones:
    ``(n_questions, k + n)``.
    """
    found = np.zeros((len(ranked), k), bool)
    for row, each in zip(found, ranked, strict=True):
        row[: len(each.best[:k])] = each.relevant[:k]
    n_missed = np.array([each.n_relevant for each in ranked]) - found.sum(axis=1)  # (n_questions,)
    missed = np.arange(n_missed.max()) < n_missed[:, None]
    relevant = np.hstack([found, missed])
    scores = np.broadcast_to(-np.arange(relevant.shape[1]), relevant.shape)
    reciprocal_ranks = np.array([each.reciprocal_rank for each in ranked])
    return Retrieved(scores, relevant, k, reciprocal_ranks, spans, [each.tokens_read for each in ranked])


def retrieves_every_chunk(row: SweepRow) -> bool:
    """Whether all chunks are retrieved, so that the recall is 1; by words only, one in common is needed."""
    retriever = RETRIEVERS[row.configuration.retriever]
    return row.configuration.k >= row.n_chunks and (retriever.uses_vectors or retriever.reads_all)


def values_at(
    ranked: Sequence[Ranked], chunks: Sequence[Chunk], questions: Sequence[Question], k: int
) -> Array:
    """Compute every metric of every question: ``(n_questions, n_metrics)`` in the order of `METRICS`.

    The first ``k`` chunks of every question are compared with its answers, character by character, too.
    """
    n_read = [chunk.end - chunk.start for chunk in chunks]
    spans = [
        span_metrics(
            [chunks[row] for row, fits in zip(each.best[:k], each.relevant, strict=False) if fits],
            sum(n_read[row] for row in each.best[:k]),
            question,
        )
        for each, question in zip(ranked, questions, strict=True)
    ]
    found = retrieved(ranked, k, spans)
    return np.column_stack([metric.function(found) for metric in METRICS.values()])


def resamples(n_questions: int) -> Array:
    """Return how often each question is drawn in each resample, uint8 ``(n_resamples, n_questions)``."""
    return np.concatenate([each.astype(np.uint8) for each in draws(n_questions, N_RESAMPLES, SEED)])


def intervals_of(values: Array, counts: Array) -> dict[str, tuple[float, float]]:
    """Return each metric's mean interval from ``(n_questions, n_metrics)``, as `level_interval` does."""
    with single_threaded_blas():  # for products so small, further threads cost more than they save
        drawn_means = [means(values)(counts[rows].astype(np.float64)) for rows in blocks(len(counts))]
    replicates = np.concatenate(drawn_means)  # (n_resamples, n_metrics)
    found = {}
    for name, column, drawn in zip(METRICS, values.T, replicates.T, strict=True):
        is_share = np.isin(column, (0, 1)).all()
        one = level_interval(column) if is_share else percentile_interval(column.mean(), drawn)
        found[name] = one.low, one.high
    return found
