"""What is measured of one cell of a grid."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.documents.document import Chunk
from engine.evaluation.bootstrap import N_RESAMPLES, draws, means, percentile_interval
from engine.evaluation.grid import Cell
from engine.evaluation.metrics import hit_rate, ndcg, precision, recall, reciprocal_rank
from engine.evaluation.questions import Question
from engine.evaluation.spans import answered_share, best_chunks
from engine.layers.tracing import Array
from engine.retrieval.bm25 import words

METRICS = (
    "mrr",
    "hit_rate@k",
    "recall@k",
    "precision@k",
    "ndcg@k",
    "span_recall@k",
    "span_precision@k",
    "span_iou@k",
)
BM25 = "bm25"
FLOAT_BYTES = INT_BYTES = 4
SEED = 0  # of the resamples, which are the same for all cells


@dataclass(frozen=True)
class SweepRow:
    """A cell and what was measured of it.

    Attributes
    ----------
    cell
        The settings; ``k`` in the names of metrics is its.
    n_chunks, n_questions
        What the metrics are of.
    metrics
        Of each of `METRICS` the mean over the questions.
    intervals
        The ends of the 95 % bootstrap interval of each mean.
    values
        Of each metric its value for every question, ``(n_questions,)``; a sweep holds them as
        `QuestionValues`.
    seconds
        Time that this row took, beyond what it shares with rows before it.
    index_bytes
        Bytes of what is searched: 32-bit vectors of the chunks, or entries of BM25's index, or both.
    """

    cell: Cell
    n_chunks: int
    n_questions: int
    metrics: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]] = field(repr=False)
    values: Mapping[str, tuple[float, ...]] = field(repr=False)
    seconds: float
    index_bytes: int


@dataclass(frozen=True)
class Ranked:
    """A retriever's best chunks for each question, best first, and where the first relevant one is.

    Attributes
    ----------
    best
        Numbers of the best chunks of each question, as many as the largest k asks for.
    relevant
        All that is relevant, bool ``(n_questions, n_chunks)``.
    reciprocal_ranks
        1 over the rank of the first relevant chunk, ``(n_questions,)``.
    """

    best: Sequence[Array]
    relevant: Array
    reciprocal_ranks: Array

    @classmethod
    def of(cls, scores: Array, relevant: Array, depth: int) -> "Ranked":
        """Rank the ``depth`` best chunks of the scores ``(n_questions, n_chunks)``."""
        return cls(best_chunks(scores, depth), relevant, reciprocal_rank(scores, relevant))

    def cut(self, k: int) -> tuple[Array, Array]:
        """Return scores and relevance that metrics up to ``k`` find as good as the whole ones.

        In the first ``k`` columns is the relevance of the best chunks, behind them all else that is
        relevant: ``(n_questions, k + n)``, twice.
        """
        found = np.zeros((len(self.best), k), bool)
        for row, relevant, best in zip(found, self.relevant, self.best, strict=True):
            row[: len(best[:k])] = relevant[best[:k]]
        n_missed = self.relevant.sum(axis=1) - found.sum(axis=1)  # (n_questions,)
        missed = np.arange(n_missed.max()) < n_missed[:, None]
        relevant = np.hstack([found, missed])
        return np.broadcast_to(-np.arange(relevant.shape[1]), relevant.shape), relevant


def takes_all(cell: Cell, n_chunks: int) -> bool:
    """Whether a cell retrieves every chunk, so that its recall is 1; BM25 finds those with a word asked."""
    return cell.k >= n_chunks and cell.retriever != BM25


def values_at(ranked: Ranked, chunks: Sequence[Chunk], questions: Sequence[Question], k: int) -> Array:
    """Take every metric of every question: ``(n_questions, n_metrics)`` in the order of `METRICS`."""
    judged = ranked.cut(k)
    at_k = [metric(*judged, k) for metric in (hit_rate, recall, precision, ndcg)]
    n_read = [chunk.end - chunk.start for chunk in chunks]
    found = [
        answered_share(
            [chunks[i] for i in best[:k] if relevant[i]], sum(n_read[i] for i in best[:k]), question
        )
        for best, relevant, question in zip(ranked.best, ranked.relevant, questions, strict=True)
    ]
    spans = [(each.recall, each.precision, each.iou) for each in found]
    return np.column_stack([ranked.reciprocal_ranks, *at_k, spans])


def resamples(n_questions: int) -> Array:
    """How often each question is drawn in each resample, ``(n_resamples, n_questions)``."""
    return np.concatenate(list(draws(n_questions, N_RESAMPLES, SEED))).astype(np.float64)


def intervals_of(values: Array, counts: Array) -> dict[str, tuple[float, float]]:
    """Return the bootstrap interval of every metric's mean, as `mean_interval` gives them.

    ``values`` are ``(n_questions, n_metrics)``, ``counts`` those of `resamples`, drawn once for all cells.
    """
    replicates = means(values)(counts)  # (n_resamples, n_metrics)
    found = [percentile_interval(*both) for both in zip(values.mean(axis=0), replicates.T, strict=True)]
    return {name: (one.low, one.high) for name, one in zip(METRICS, found, strict=True)}


def bm25_bytes(texts: Sequence[str]) -> int:
    """Bytes of BM25's index: a score and a chunk's number for each word of each chunk, a place a word."""
    found = [set(tokens) for tokens in words(texts)]
    n_words = len(set().union(*found)) if found else 0
    return (FLOAT_BYTES + INT_BYTES) * sum(map(len, found)) + INT_BYTES * (n_words + 1)
