"""The metrics of a search: one table of all that the app and the command line report.

A metric is a mean over questions. The functions of rankings take ``scores`` and ``relevant``, both
``(n_questions, n_chunks)``, and return the value of each question, ``(n_questions,)``. Relevance is binary. A
question without any relevant chunk counts as 0. Equal scores keep the order of the chunks, as in a stable
sort; a chunk with the score ``-inf`` or NaN was not found. Each raises `InputError` for a ``k`` below 1; a
``k`` beyond the number of chunks takes all of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..errors import InputError
from ..installed import row_of
from ..layers.tracing import Array
from .spans import SpanMetrics

READ_TOKENS = 1024  # of the passages that a language model may read


def ranked(scores: Array, relevant: Array, k: int | None = None) -> Array:
    """Relevance of the ``k`` best chunks in the order of their scores: ``(n_questions, k)``."""
    check_places(k)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(relevant & (scores > -np.inf), order, axis=1)


class FirstRelevant(NamedTuple):
    """The first relevant chunk of each question, and which chunks come before it: see `first_relevant`."""

    before: Array  # bool ``(n_questions, n_chunks)``
    column: Array  # ``(n_questions,)``
    is_found: Array  # ``(n_questions,)``


def first_relevant(scores: Array, relevant: Array) -> FirstRelevant:
    """Find the first relevant chunk of each question by comparing scores, without sorting them."""
    n_questions, n_chunks = scores.shape
    if not n_chunks:
        return FirstRelevant(
            np.zeros((n_questions, 0), bool), np.zeros(n_questions, int), np.zeros(n_questions, bool)
        )
    own = np.where(relevant & (scores > -np.inf), scores, -np.inf)
    column = own.argmax(axis=1)[:, None]
    score = np.take_along_axis(own, column, axis=1)
    before = (scores > score) | ((scores == score) & (np.arange(n_chunks) < column))
    return FirstRelevant(before, column[:, 0], score[:, 0] > -np.inf)


def reciprocal_rank(scores: Array, relevant: Array, k: int | None = None) -> Array:
    """1 over the rank of the first relevant chunk, 0 where none is among the first ``k``."""
    check_places(k)
    return reciprocal_of(first_relevant(scores, relevant), k)


def reciprocal_of(first: FirstRelevant, k: int | None = None) -> Array:
    """1 over the rank of each question's first relevant chunk, as `reciprocal_rank`."""
    rank = 1 + first.before.sum(axis=1)
    is_counted = first.is_found if k is None else first.is_found & (rank <= k)
    return np.where(is_counted, 1 / rank, 0.0)


def tokens_to_first(first: FirstRelevant, n_tokens: Array) -> Array:
    """Tokens of all chunks up to the first relevant one, with it, or infinity: ``(n_questions,)``."""
    read = [
        n_tokens[row].sum() + n_tokens[column] if found else np.inf
        for row, column, found in zip(*first, strict=True)
    ]
    return np.array(read, float)


def hit_rate(scores: Array, relevant: Array, k: int) -> Array:
    """1 where a relevant chunk is among the first ``k``, else 0."""
    return ranked(scores, relevant, k).any(axis=1).astype(float)


def precision(scores: Array, relevant: Array, k: int) -> Array:
    """Share of the first ``k`` places that hold a relevant chunk; empty places count too."""
    return ranked(scores, relevant, k).sum(axis=1) / k


def recall(scores: Array, relevant: Array, k: int) -> Array:
    """Share of the relevant chunks that is among the first ``k``."""
    return ranked(scores, relevant, k).sum(axis=1) / np.maximum(relevant.sum(axis=1), 1)


def ndcg(scores: Array, relevant: Array, k: int) -> Array:
    """Discounted gain of the first ``k`` over the best there could be (Järvelin and Kekäläinen 2002)."""
    found = ranked(scores, relevant, k)
    discounts = 1 / np.log2(np.arange(2, found.shape[1] + 2))  # (k,)
    ideal = np.cumsum([0, *discounts])[np.minimum(relevant.sum(axis=1), len(discounts))]  # (n_questions,)
    return found @ discounts / np.where(ideal > 0, ideal, 1)


def check_places(k: int | None) -> None:
    """Raise `InputError` for a ``k`` below 1."""
    if k is not None and k < 1:
        raise InputError(f"k is {k}: judge 1 place or more")


@dataclass(frozen=True)
class Retrieved:
    """The first ``k`` chunks of every question: the argument of every metric's function."""

    scores: Array  # ``(n_questions, n_chunks)``; the first ``k`` by score count
    relevant: Array
    k: int  # number of chunks retrieved
    reciprocal_ranks: Array  # 1 over the rank of the first relevant chunk, ``(n_questions,)``
    # for each question the shares of characters found, where chunks and answers are spans of text
    spans: Sequence[SpanMetrics] = ()
    tokens_to_first: Sequence[float] = ()  # `tokens_to_first`, where the chunks' tokens are counted

    @classmethod
    def of(cls, scores: Array, relevant: Array, k: int) -> "Retrieved":
        """Take the first ``k`` chunks by their scores; a first relevant chunk beyond them has no rank."""
        return cls(scores, relevant, k, reciprocal_rank(scores, relevant, k))


@dataclass(frozen=True)
class Metric:
    """One metric of a search, greater where it is better."""

    # from `Retrieved` to the value of each question, ``(n_questions,)``
    function: Callable[[Retrieved], Array]
    label: str  # how the app shows it, and one sentence on what it is
    help: str
    unit: str = "chunks"  # what it counts
    at_k: bool = True  # whether it depends on ``k``, so that values at different ``k`` are not compared


def at_depth(name: str, k: int) -> str:
    """Return a metric's name or label with its k: ``"ndcg@k" -> "ndcg@10"``, ``"mrr" -> "mrr@10"``."""
    return f"{name.removesuffix('@k')}@{k}"


# By the names in saved runs, exports and JSON, with their rows in data/metrics.csv.
METRICS: dict[str, Metric] = {
    "mrr": Metric(lambda found: found.reciprocal_ranks, **row_of("metrics.csv", "mrr"), at_k=False),
    "hit_rate@k": Metric(
        lambda found: hit_rate(found.scores, found.relevant, found.k), **row_of("metrics.csv", "hit_rate@k")
    ),
    "found_at_equal_reading": Metric(
        lambda found: (np.asarray(found.tokens_to_first) <= READ_TOKENS).astype(float),
        **row_of("metrics.csv", "found_at_equal_reading", tokens=f"{READ_TOKENS:,}"),
        at_k=False,
    ),
    "recall@k": Metric(
        lambda found: recall(found.scores, found.relevant, found.k), **row_of("metrics.csv", "recall@k")
    ),
    "precision@k": Metric(
        lambda found: precision(found.scores, found.relevant, found.k), **row_of("metrics.csv", "precision@k")
    ),
    "ndcg@k": Metric(
        lambda found: ndcg(found.scores, found.relevant, found.k), **row_of("metrics.csv", "ndcg@k")
    ),
    "span_recall@k": Metric(
        lambda found: np.array([span.recall for span in found.spans]),
        **row_of("metrics.csv", "span_recall@k"),
    ),
    "span_precision@k": Metric(
        lambda found: np.array([span.precision for span in found.spans]),
        **row_of("metrics.csv", "span_precision@k"),
    ),
    "span_iou@k": Metric(
        lambda found: np.array([span.iou for span in found.spans]), **row_of("metrics.csv", "span_iou@k")
    ),
}
