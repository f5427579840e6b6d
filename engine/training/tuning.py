"""Tuning from labelled questions to a verdict: cross-validated both ways, then trained on everything."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from engine.errors import InputError
from engine.layers.tracing import Array
from engine.models.encoder import Encoder
from engine.retrieval.bm25 import Bm25
from engine.training.adapter import N_EPOCHS, Adapter, adapter_fit, fit_adapter
from engine.training.cross_validation import CrossValidated, cross_validate
from engine.training.fine_tune import FineTuning, fine_tune, fine_tuning_fit, tuned_encoder
from engine.training.folds import Fold, Labelled, folds_by_document, folds_by_question
from engine.training.frozen_layers import freeze
from engine.training.hard_negatives import hard_negatives
from engine.training.verdict import Judged, judge, should_keep
from engine.weights.fetch import Progress

HARD_DEPTH = 20  # places of the cosines' and of BM25's ranking that hard negatives are drawn from
# Called with what is being done, parts done and parts in all.
Report = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Task:
    """What tuning begins with: texts, what is relevant, and their vectors by the model as it is.

    ``question_vectors`` and ``chunk_vectors`` are ``(n, d_model)``, rows of length 1; ``max_tokens`` is what
    the encoder read of a chunk.
    """

    labelled: Labelled
    encoder: Encoder
    question_vectors: Array = field(repr=False)
    chunk_vectors: Array = field(repr=False)
    max_tokens: int | None = None


@dataclass(frozen=True)
class Tuned:
    """A tuned model and what cross-validation says of it.

    Attributes
    ----------
    encoder, adapter
        Trained on all questions: an encoder as it was with an adapter for questions, or a fine-tuned one.
    choice
        What was chosen for that training, in words.
    by_question, by_document
        The cross-validations, and their metrics; by document None where ``no_documents`` says why.
    keep
        Whether the gain is beyond noise, as `should_keep` says.
    """

    encoder: Encoder = field(repr=False)
    adapter: Adapter | None = field(repr=False)
    choice: str
    by_question: CrossValidated = field(repr=False)
    by_document: CrossValidated | None = field(repr=False)
    question_metrics: tuple[Judged, ...]
    document_metrics: tuple[Judged, ...]
    no_documents: str
    keep: bool


def tune(
    task: Task,
    settings: FineTuning | None,
    n_folds: int,
    n_epochs: int = N_EPOCHS,
    on_progress: Report | None = None,
    seed: int = 0,
) -> Tuned:
    """Cross-validate by question and by document, and train on all questions what was judged so.

    Parameters
    ----------
    task
        Texts, labels and vectors.
    settings
        How the last layers are fine-tuned; None trains an adapter, for at most ``n_epochs``.
    n_folds
        Folds by question, and at most so many by document.
    on_progress
        Told how far it is; what it raises ends the work.
    seed
        Of the folds.

    Raises
    ------
    InputError
        There are too few questions for the folds, or a setting is out of its range.
    """

    def report(what: str) -> Progress:
        return lambda done, total: on_progress(what, done, total) if on_progress is not None else None

    labelled = task.labelled
    folds = folds_by_question(labelled, n_folds, seed)
    try:
        document_folds, no_documents = folds_by_document(labelled, n_folds, seed), ""
    except InputError as error:
        document_folds, no_documents = [], str(error)
    vectors = task.question_vectors, task.chunk_vectors
    adapter, encoder = None, task.encoder
    if settings is None:
        fit = adapter_fit(*vectors, labelled, n_epochs, seed)
    else:
        asked = freeze(encoder, labelled.questions, settings.n_last)
        chunks = freeze(
            encoder, labelled.chunks, settings.n_last, task.max_tokens, report("Running the frozen layers")
        )
        rankings = [vectors[0] @ vectors[1].T, Bm25(labelled.chunks).scores(labelled.questions)]
        negatives = hard_negatives(rankings, labelled.relevant, HARD_DEPTH)
        fit = fine_tuning_fit(encoder, asked, chunks, labelled, negatives, settings)
    by_question = cross_validate(*vectors, labelled, folds, fit, report("Testing on new questions"))
    by_document = None
    if document_folds:
        what = report("Testing on new documents")
        by_document = cross_validate(*vectors, labelled, document_folds, fit, what)
    last = report("Training on all questions")
    if settings is None:
        fitted = fit_adapter(*vectors, labelled.relevant, n_epochs, seed, last)
        adapter, choice = fitted.adapter, f"ridge {fitted.ridge:g}, {fitted.n_epochs} epochs"
    else:
        everything = Fold(*(np.arange(n) for n in (len(vectors[0]), 0, len(vectors[1]))))
        tuned = fine_tune(encoder, asked, chunks, labelled.relevant, negatives, everything, settings, last)
        encoder, choice = tuned_encoder(encoder, tuned.params), f"{tuned.n_epochs} epochs"
    question_metrics = judge(by_question.before, by_question.after, labelled.relevant)
    document_metrics = (
        judge(by_document.before, by_document.after, labelled.relevant) if by_document is not None else []
    )
    return Tuned(
        encoder,
        adapter,
        choice,
        by_question,
        by_document,
        tuple(question_metrics),
        tuple(document_metrics),
        no_documents,
        should_keep(
            question_metrics[0].comparison, document_metrics[0].comparison if document_metrics else None
        ),
    )
