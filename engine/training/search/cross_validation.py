"""Cross-validation of tuning: every question is scored by a model that was not trained on it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.layers.tracing import Array
from engine.training.search.alignment import alignment, uniformity
from engine.training.search.folds import Fold, LabelledTexts
from engine.weights.fetch import Progress

Losses = tuple[tuple[int, float], ...]  # epochs, and the loss after each


@dataclass(frozen=True)
class FoldResult:
    """Vectors of a model tuned on one fold.

    Attributes
    ----------
    question_vectors
        Vectors of the fold's test questions, rows of length 1.
    chunk_vectors
        Vectors of all chunks, rows of length 1.
    losses, validation_losses
        Loss by epoch on the questions trained on, and on those held out for early stopping.
    choice
        Hyper-parameters chosen without the test questions, in words.
    """

    question_vectors: Array = field(repr=False)
    chunk_vectors: Array = field(repr=False)
    losses: Losses
    validation_losses: Losses
    choice: str


@dataclass(frozen=True)
class Spread:
    """Wang and Isola's two measures on the test questions of a fold; lower is better for both."""

    alignment: float
    uniformity: float


@dataclass(frozen=True)
class CrossValidated:
    """Scores of every question by a model that was not trained on it.

    Attributes
    ----------
    before, after
        Cosines with every chunk, ``(n_questions, n_chunks)``.
    spreads
        Of each fold, before and after.
    losses
        Of each fold, by epoch: training loss and validation loss.
    choices
        Hyper-parameters that each fold chose without its test questions, in words.
    """

    before: Array = field(repr=False)
    after: Array = field(repr=False)
    spreads: tuple[tuple[Spread, Spread], ...]
    losses: tuple[tuple[Losses, Losses], ...]
    choices: tuple[str, ...]


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
    """Train on each fold and score the questions that it left out.

    Vectors are those of the model before tuning, rows of length 1: ``(n_questions, d_model)`` and
    ``(n_chunks, d_model)``. The test questions of the folds cover all questions, each once. ``on_progress``
    is called with parts done and parts in all, 100 a fold.
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
                spread(question_vectors[fold.test], chunk_vectors, relevant),
                spread(fitted.question_vectors, fitted.chunk_vectors, relevant),
            )
        )
        losses.append((fitted.losses, fitted.validation_losses))
        choices.append(fitted.choice)
        report(1, 1)
    return CrossValidated(before, after, tuple(spreads), tuple(losses), tuple(choices))


def spread(question_vectors: Array, chunk_vectors: Array, relevant: Array) -> Spread:
    """Alignment of questions with their chunks, and uniformity of the questions."""
    return Spread(alignment(question_vectors, chunk_vectors, relevant), uniformity(question_vectors))
