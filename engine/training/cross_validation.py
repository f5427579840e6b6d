"""Cross-validation of a tuning: every question is scored by a model that was not trained on it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.layers.tracing import Array
from engine.training.alignment import alignment, uniformity
from engine.training.folds import Fold, Labelled
from engine.weights.fetch import Progress

Losses = tuple[tuple[int, float], ...]  # epochs, and the loss after each


@dataclass(frozen=True)
class Fitted:
    """What a tuned model makes of a fold.

    Attributes
    ----------
    question_vectors
        Of the fold's test questions, rows of length 1.
    chunk_vectors
        Of all chunks, rows of length 1.
    losses, validation_losses
        The loss by epoch, on what was trained on and on what was held out within it.
    choice
        What was chosen without the test questions, in words.
    """

    question_vectors: Array = field(repr=False)
    chunk_vectors: Array = field(repr=False)
    losses: Losses
    validation_losses: Losses
    choice: str


@dataclass(frozen=True)
class Spread:
    """Wang and Isola's two measures of the test questions of a fold; less is better for both."""

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
        Of each fold, by epoch: on what was trained on, and on what was held out within it.
    choices
        What each fold chose without its test questions, in words.
    """

    before: Array = field(repr=False)
    after: Array = field(repr=False)
    spreads: tuple[tuple[Spread, Spread], ...]
    losses: tuple[tuple[Losses, Losses], ...]
    choices: tuple[str, ...]


# Train on a fold; report steps done and steps in all.
Fit = Callable[[Fold, Progress], Fitted]


def cross_validate(
    question_vectors: Array,
    chunk_vectors: Array,
    labelled: Labelled,
    folds: Sequence[Fold],
    fit: Fit,
    on_progress: Progress | None = None,
) -> CrossValidated:
    """Train on each fold and score the questions that it left out.

    Parameters
    ----------
    question_vectors, chunk_vectors
        Of the model as it is, rows of length 1: ``(n_questions, d_model)``, ``(n_chunks, d_model)``.
    labelled
        Their texts and what is relevant.
    folds
        Whose test questions are all the questions, each once.
    fit
        Trains on a fold.
    on_progress
        Called with parts done and parts in all, 100 a fold.
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
    """Measure questions with their chunks, and how evenly the questions lie."""
    return Spread(alignment(question_vectors, chunk_vectors, relevant), uniformity(question_vectors))
