"""Tuning on labelled questions: cross-validated by question and document, then trained on everything."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ...errors import InputError
from ...layers.tracing import Array
from ...models.encoder import Encoder
from ...retrieval.bm25 import Bm25
from ...weights.fetch import Progress
from ..backward.encoder import with_parameters
from .contrastive import TrainingTexts
from .cross_validation import CrossValidated, MetricChange, cross_validate, metric_changes, should_keep
from .fine_tune import FineTuning, fine_tune, fine_tuning_trainer
from .folds import Fold, LabelledTexts, folds_by_document, folds_by_question
from .frozen_layers import run_frozen_layers

HARD_DEPTH = 20  # hard negatives taken from the top of each of two rankings, cosine and BM25
# Called with the name of the stage, parts done and parts in all.
StageProgress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class TuningData:
    """Labelled texts, the encoder, and its vectors of them before tuning."""

    labelled: LabelledTexts
    encoder: Encoder
    question_vectors: Array = field(repr=False)  # ``(n, d_model)``, rows of length 1, as of the chunks
    chunk_vectors: Array = field(repr=False)
    max_tokens: int | None = None  # token limit that the chunks were embedded with


@dataclass(frozen=True)
class Tuned:
    """A tuned model and its cross-validation."""

    encoder: Encoder = field(repr=False)  # trained on all questions
    n_epochs: int  # of that training, chosen by held-out questions
    by_question: CrossValidated = field(repr=False)
    question_metrics: tuple[MetricChange, ...]  # before and after, cross-validated by question
    # and by document; empty where no such folds can be made
    document_metrics: tuple[MetricChange, ...]  # and by document
    keep: bool  # whether the gain is beyond noise, as `should_keep` says


def tune(
    task: TuningData, settings: FineTuning, n_folds: int, on_progress: StageProgress | None = None
) -> Tuned:
    """Cross-validate by question and by document, then train in the same way on all questions."""

    def report(what: str) -> Progress:
        return lambda done, total: on_progress(what, done, total) if on_progress is not None else None

    labelled = task.labelled
    folds = folds_by_question(labelled, n_folds)
    try:
        document_folds = folds_by_document(labelled, n_folds)
    except InputError:  # too few documents, or nothing left to train on
        document_folds = []
    vectors, encoder = (task.question_vectors, task.chunk_vectors), task.encoder
    asked = run_frozen_layers(encoder, labelled.questions, settings.n_last)
    chunks = run_frozen_layers(
        encoder, labelled.chunks, settings.n_last, task.max_tokens, report("Running the frozen layers")
    )
    rankings = [vectors[0] @ vectors[1].T, Bm25(labelled.chunks).scores(labelled.questions)]
    negatives = hard_negatives(rankings, labelled.relevant, HARD_DEPTH)
    texts = TrainingTexts(asked, chunks, labelled.relevant, negatives)
    fit = fine_tuning_trainer(encoder, texts, settings)
    by_question = cross_validate(*vectors, folds, fit, report("Testing on new questions"))
    question_metrics = metric_changes(by_question.before, by_question.after, labelled.relevant)
    document_metrics: list[MetricChange] = []
    if document_folds:
        what = report("Testing on new documents")
        by_document = cross_validate(*vectors, document_folds, fit, what)
        document_metrics = metric_changes(by_document.before, by_document.after, labelled.relevant)
    everything = Fold(*(np.arange(n) for n in (len(vectors[0]), 0, len(vectors[1]))))
    tuned = fine_tune(encoder, texts, everything, settings, report("Training on all questions"))
    found_by_document = document_metrics[0].comparison if document_metrics else None
    keep = should_keep(question_metrics[0].comparison, found_by_document)
    return Tuned(
        replace(encoder, weights=with_parameters(encoder.weights, tuned.params)),
        tuned.n_epochs,
        by_question,
        tuple(question_metrics),
        tuple(document_metrics),
        keep,
    )


def hard_negatives(rankings: list[Array], relevant: Array, depth: int) -> list[Array]:
    """Return the places of chunks that are not relevant among the ``depth`` best of any ranking.

    Rankings, with scores above 0, and ``relevant`` are ``(n_questions, n_chunks)``; a question may have none.
    """
    found = []
    for row, right in enumerate(relevant):
        best: set[int] = set()
        for scores in rankings:
            wrong = np.where(right, -np.inf, scores[row])
            first = np.argsort(-wrong, kind="stable")[:depth]
            best.update(first[wrong[first] > 0].tolist())
        found.append(np.array(sorted(best), np.int64))
    return found
