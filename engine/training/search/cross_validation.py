"""Cross-validation of tuning: every question is scored by a model that was not trained on it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...evaluation.metrics import METRICS, Retrieved, at_depth
from ...evaluation.significance import Comparison, compare
from ...layers.tracing import Array
from ...weights.fetch import Progress
from .folds import Fold

DEPTH = 10  # of the rankings that the metrics see
JUDGED_BY = ("ndcg@k", "recall@k", "mrr")  # the first decides, fixed beforehand
MAIN = at_depth(METRICS[JUDGED_BY[0]].label, DEPTH)
ALPHA = 0.05  # the p-value below which a difference counts
Losses = tuple[tuple[int, float], ...]  # epochs, and the loss after each


@dataclass(frozen=True)
class FoldResult:
    """Vectors of a model tuned on one fold, rows of length 1."""

    question_vectors: Array = field(repr=False)  # of the fold's test questions
    chunk_vectors: Array = field(repr=False)  # of all chunks
    losses: Losses  # on the questions trained on
    validation_losses: Losses  # on those held out for early stopping


@dataclass(frozen=True)
class CrossValidated:
    """Cosines of each question with every chunk, ``(n_questions, n_chunks)``, by models not trained on it."""

    before: Array = field(repr=False)
    after: Array = field(repr=False)
    losses: tuple[tuple[Losses, Losses], ...]  # of each fold: training and validation


# Trains on a fold, and reports parts done and parts in all.
FoldTrainer = Callable[[Fold, Progress], FoldResult]


def cross_validate(
    question_vectors: Array,
    chunk_vectors: Array,
    folds: Sequence[Fold],
    fit: FoldTrainer,
    on_progress: Progress | None = None,
) -> CrossValidated:
    """Train on each fold and score the questions that it left out, which are all, each once.

    Vectors are those of the model before tuning, rows of length 1; ``on_progress`` has 100 parts a fold.
    """
    before = question_vectors @ chunk_vectors.T  # (n_questions, n_chunks)
    after = np.empty_like(before)
    losses = []
    for number, fold in enumerate(folds):

        def report(done: int, total: int, n_before: int = number) -> None:
            if on_progress is not None:
                on_progress(100 * n_before + 100 * done // max(1, total), 100 * len(folds))

        fitted = fit(fold, report)
        after[fold.test] = fitted.question_vectors @ fitted.chunk_vectors.T
        losses.append((fitted.losses, fitted.validation_losses))
        report(1, 1)
    return CrossValidated(before, after, tuple(losses))


@dataclass(frozen=True)
class MetricChange:
    """A metric of every question before and after, ``(n_questions,)``, and their comparison."""

    metric: str
    before: Array = field(repr=False)
    after: Array = field(repr=False)
    comparison: Comparison


def metric_changes(before: Array, after: Array, relevant: Array) -> list[MetricChange]:
    """Compare two score matrices ``(n_questions, n_chunks)`` of the same questions by each metric."""
    changes = []
    for metric in map(METRICS.__getitem__, JUDGED_BY):
        first, second = (metric.function(Retrieved.of(each, relevant, DEPTH)) for each in (before, after))
        label = at_depth(metric.label, DEPTH)
        changes.append(MetricChange(label, first, second, compare(first, second)))
    return changes


def is_better(comparison: Comparison) -> bool:
    """Whether a difference is a gain beyond noise: its 95 % interval and its test both say so."""
    return comparison.low > 0 and comparison.p_value < ALPHA


def is_worse(comparison: Comparison) -> bool:
    """Whether a difference is a loss beyond noise."""
    return comparison.high < 0 and comparison.p_value < ALPHA


def should_keep(by_question: Comparison, by_document: Comparison | None) -> bool:
    """Whether the tuned model is better beyond noise on new questions, and no worse on new documents."""
    return is_better(by_question) and not (by_document is not None and is_worse(by_document))
