"""Cross-validation of tuning: every question is scored by a model that was not trained on it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...evaluation.metrics import METRICS, Retrieved, at_depth
from ...evaluation.significance import Comparison, compare
from ...layers.tracing import Array
from ...weights.fetch import Progress
from .folds import Fold, LabelledTexts

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
    choice: str  # hyper-parameters chosen without the test questions, in words


@dataclass(frozen=True)
class Spread:
    """Wang and Isola's measures (2020) of test questions and their chunks; lower is better for both."""

    alignment: float
    uniformity: float

    @classmethod
    def of(cls, question_vectors: Array, chunk_vectors: Array, relevant: Array) -> "Spread":
        """Measure the alignment of questions with their chunks, and the uniformity of the questions."""
        return cls(alignment(question_vectors, chunk_vectors, relevant), uniformity(question_vectors))


@dataclass(frozen=True)
class CrossValidated:
    """Cosines of each question with every chunk, ``(n_questions, n_chunks)``, by models not trained on it."""

    before: Array = field(repr=False)
    after: Array = field(repr=False)
    spreads: tuple[tuple[Spread, Spread], ...]  # of each fold, before and after
    losses: tuple[tuple[Losses, Losses], ...]  # of each fold: training and validation
    choices: tuple[str, ...]  # of each fold


# Trains on a fold, and reports parts done and parts in all.
FoldTrainer = Callable[[Fold, Progress], FoldResult]


def cross_validate(
    question_vectors: Array,
    chunk_vectors: Array,
    labelled: LabelledTexts,
    folds: Sequence[Fold],
    fit: FoldTrainer,
    on_progress: Progress | None = None,
) -> CrossValidated:
    """Train on each fold and score the questions that it left out, which are all, each once.

    Vectors are those of the model before tuning, rows of length 1; ``on_progress`` has 100 parts a fold.
    """
    before = question_vectors @ chunk_vectors.T  # (n_questions, n_chunks)
    after = np.empty_like(before)
    spreads, losses, choices = [], [], []
    for number, fold in enumerate(folds):

        def report(done: int, total: int, n_before: int = number) -> None:
            if on_progress is not None:
                on_progress(100 * n_before + 100 * done // max(1, total), 100 * len(folds))

        fitted = fit(fold, report)
        after[fold.test] = fitted.question_vectors @ fitted.chunk_vectors.T
        relevant = labelled.relevant[fold.test]
        spreads.append(
            (
                Spread.of(question_vectors[fold.test], chunk_vectors, relevant),
                Spread.of(fitted.question_vectors, fitted.chunk_vectors, relevant),
            )
        )
        losses.append((fitted.losses, fitted.validation_losses))
        choices.append(fitted.choice)
        report(1, 1)
    return CrossValidated(before, after, tuple(spreads), tuple(losses), tuple(choices))


def alignment(question_vectors: Array, chunk_vectors: Array, relevant: Array) -> float:
    """Mean of ``|q - c|^2`` over all pairs of a question and a relevant chunk, 0 to 4; NaN without a pair.

    ``align_loss`` of the paper with exponent 2. Vectors are ``(n_questions, d_model)`` and
    ``(n_chunks, d_model)``, rows of length 1; ``relevant`` is bool ``(n_questions, n_chunks)``.
    """
    questions, chunks = np.nonzero(relevant)
    if not len(questions):
        return float("nan")
    apart = question_vectors[questions] - chunk_vectors[chunks]  # (n_pairs, d_model)
    return float(np.square(apart).sum(axis=1).mean())


def uniformity(vectors: Array) -> float:
    """Log of the mean of ``exp(-2 |x - y|^2)`` over all pairs: 0 if all vectors are equal, -4 at best.

    ``uniform_loss`` with t = 2, of ``(n, d_model)``, rows of length 1; NaN for fewer than two.
    """
    first, second = np.triu_indices(len(vectors), 1)
    if not len(first):
        return float("nan")
    squares = 2 - 2 * (vectors @ vectors.T)[first, second]  # |x - y|^2
    return float(np.log(np.exp(-2 * squares).mean()))


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
