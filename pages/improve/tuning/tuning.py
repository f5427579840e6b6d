"""Tuning the search to labelled questions, tested on questions and documents left out of training."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePath
from typing import Any

import numpy as np
import streamlit as st

from engine import Encoder
from engine.documents.document import Document
from engine.errors import GlassboxError
from engine.evaluation.questions import Question, relevance
from engine.training.search.fine_tune import FineTuning
from engine.training.search.folds import LabelledTexts
from engine.training.search.tuning import StageProgress, TuningData, tune
from engine.wording import counted, readable_time
from pages.improve.tuning.results import KEPT_NAME, Outcome, model_zip, show_kept, show_results
from ui.chunk_settings import Cut
from ui.corpus import index_documents
from ui.data_folder import model_file, write_model
from ui.jobs import Job, current_job, follow_progress, foreseen, start_job
from ui.models import is_other_family
from ui.widgets import slider

MIN_QUESTIONS = 10  # folds of fewer are too small to test on
TRAINED_S = 0.025  # to learn from a question once, by one layer
MAX_LAYERS = 3  # training more does not fit in memory


class Stopped(GlassboxError):
    """The user stopped the tuning."""


@dataclass(frozen=True)
class Request:
    """What to tune, and how."""

    settings: FineTuning
    n_folds: int
    documents: tuple[str, ...]
    questions: tuple[Question, ...] = field(repr=False)
    cut: Cut

    @property
    def seconds(self) -> float:
        """Seconds of the training on the machine that estimates were measured on."""
        n_rounds = (2 * self.n_folds - 1) * self.settings.n_epochs  # over all questions
        return len(self.questions) * n_rounds * self.settings.n_last * TRAINED_S


def stage_progress(job: Job[Any]) -> StageProgress:
    """Return how a training reports its stages to a job; it raises `Stopped` once the job should end."""

    def report(stage: str, done: int, total: int) -> None:
        job.report(done, total, f"{stage}: {done / max(1, total):.0%}")
        if not job.take_turn():
            raise Stopped("the training was stopped before its end: nothing was changed")

    return report


def start(request: Request, documents: Sequence[Document], encoder: Encoder) -> None:
    """Start a tuning on the questions that some chunk answers; chunks without vectors are embedded first."""
    index = index_documents(documents, encoder, request.cut, "mean")
    relevant = relevance(request.questions, index.chunks)
    answered = np.flatnonzero(relevant.any(axis=1))
    labelled = LabelledTexts(
        tuple(request.questions[number].text for number in answered.tolist()),
        tuple(index.texts),
        tuple(PurePath(chunk.document).stem for chunk in index.chunks),
        relevant[answered],
    )
    file = model_file(KEPT_NAME, ".zip")

    def work(job: Job[Outcome]) -> Outcome:
        report = stage_progress(job)
        report("Embedding the questions", 0, 1)
        asked = index.encoder(encoder).encode_query(labelled.questions, pooling="mean")
        task = TuningData(labelled, encoder, asked, index.vectors, request.cut.max_tokens)
        tuned = tune(task, request.settings, request.n_folds, report)
        not_kept = write_model(file, lambda: model_zip(tuned))
        return Outcome(labelled, tuned, not_kept)

    cost = "tuning", request.seconds
    start_job("tuning", work, request=request, page="improve/tuning", cost=cost)


def show_training(name: str, request: Any, reason: str, begin: Callable[[], None], rest: str) -> Any:
    """Draw the button that begins a training, its price and progress; return what the last found, or None.

    ``rest`` ends the sentence that says, before the first one, what it learns from.
    """
    job, questions = current_job(name), counted(len(request.questions), "question")
    is_busy = job is not None and not job.done
    with st.container(horizontal=True, vertical_alignment="center"):
        is_pressed = st.button(
            "Train",
            key=f"{name}-train",
            type="primary",
            icon=":material/model_training:",
            disabled=is_busy,
            help=reason,
        )
        seconds = readable_time(foreseen(name, request.seconds))
        st.caption(f"{questions}, about {seconds}", width="content")
    if is_pressed:
        begin()
        st.rerun()  # with the button greyed out
    if job is None:
        words = f"Nothing is trained yet. Train learns from {questions}{rest}."
        st.info(words, icon=":material/school:")
        return None
    if is_busy:
        follow_progress(job, name, "Ends the training. Nothing is changed by it.")
        return None
    if job.request != request:
        st.caption(
            ":material/history: These are the results of the last training; settings, questions or "
            "documents have changed since. Press Train for new ones."
        )
    return job.result()


def show_tuning(
    documents: Sequence[Document], questions: Sequence[Question], encoder: Encoder, cut: Cut
) -> None:
    """Draw the settings, the progress of a training on labelled questions, and its results."""
    if is_other_family(encoder, "Training"):
        return
    asked = tuple(question for question in questions if question.references)
    if len(asked) < MIN_QUESTIONS or not documents:
        st.info(
            f"Questions with a known passage: {len(asked)}. Tuning needs at least "
            f"{MIN_QUESTIONS}, better 50: choose another set above, upload one, or label passages on the "
            "page “Questions”.",
            icon=":material/label:",
        )
        return
    request = tuning_settings(documents, asked, encoder, cut)
    reason = "Trains once for every fold, twice over (by question and by document), and then on everything."
    n_about = len({question.corpus_id for question in asked})
    rest = f" about {counted(n_about, 'document')}, and then shows whether the search is better"
    found = show_training("tuning", request, reason, partial(start, request, documents, encoder), rest)
    if found is not None:
        show_results(found)
    elif current_job("tuning") is None:
        show_kept()


def tuning_settings(
    documents: Sequence[Document], questions: tuple[Question, ...], encoder: Encoder, cut: Cut
) -> Request:
    """Draw the settings of a tuning."""
    left, middle, right = st.columns(3)
    reason = (
        "The number of parts that the questions are divided into; each is tested with a model trained on the "
        "others."
    )
    n_folds = slider("Folds", range(2, 11), 5, "tuning-folds", reason, place=left)
    reason = "Rounds over all questions. Training stops when questions held out of it get no better."
    default = FineTuning().n_epochs
    n_epochs = slider("Epochs, at most", range(1, 21), default, "tuning-epochs", reason, place=middle)
    layers = range(1, min(MAX_LAYERS, encoder.config.n_layers) + 1)
    reason = "How many of the encoder's last layers change; the outputs of the others are computed once."
    n_last = slider("Layers", layers, 1, "tuning-layers", reason, place=right)
    names = tuple(document.name for document in documents)
    return Request(FineTuning(n_last=n_last, n_epochs=n_epochs), n_folds, names, questions, cut)
