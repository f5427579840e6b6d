"""Tuning the reader to questions with short answers, tested on those that were left out of training."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import streamlit as st

from engine import Encoder
from engine.documents.document import Document
from engine.evaluation.answers import AnswerQuestion
from engine.generation.answering import ask
from engine.models.reader import Reader
from engine.settings import answer_settings
from engine.training.reading.loop import ReadingSettings
from engine.training.reading.own_questions import MIN_QUESTIONS, TunedReader, own_question, tune_reader
from engine.training.search.cross_validation import is_better, is_worse
from engine.weights.catalog import DEFAULT_ENCODER
from engine.wording import counted
from pages.improve.tuning.results import interval, show_questions, show_verdict
from pages.improve.tuning.tuning import show_training, stage_progress
from ui.chunk_settings import Cut, cut_values
from ui.corpus import index_to_ask
from ui.jobs import Job, start_job
from ui.models import load_reader, shared_encoder, shared_reader, use_reader
from ui.questions.answers import answer_set_picker
from ui.setting_values import settings_in_use
from ui.text import escape_markdown
from ui.widgets import download, slider

ABOUT = (
    "Questions with known answers are asked with the app's settings, and the reader's last layers learn "
    "where in the passages the answers stand. It is tested on questions that were left out of training, and "
    "the app keeps the reader it has unless these gain."
)
N_FOLDS = 5
# On two cores: to read the passages of a question once in training, and to find and read them.
TRAINED_S, FOUND_S = 0.13, 0.2
WINDOW = 256  # tokens of a passage that are read at once


@dataclass(frozen=True)
class ReaderRequest:
    """What to train on, and how."""

    n_last: int
    n_epochs: int
    documents: tuple[str, ...]
    questions: tuple[AnswerQuestion, ...] = field(repr=False)
    cut: Cut

    @property
    def settings(self) -> ReadingSettings:
        """How the layers are trained: at the rate that the reader was, falling from the first tenth on."""
        return ReadingSettings(
            crops=(WINDOW,) * self.n_epochs, n_warmup=5, decay_share=0.9, n_last=self.n_last
        )

    @property
    def seconds(self) -> float:
        """Seconds of the training on the machine that estimates were measured on."""
        # Each training but the last leaves a fold out: together they read each question `N_FOLDS` times.
        return len(self.questions) * (N_FOLDS * self.n_epochs * TRAINED_S + FOUND_S)


@dataclass(frozen=True)
class ReaderOutcome:
    """A training, and how many of the questions nothing could be learnt from."""

    tuned: TunedReader
    n_left_out: int


def show_reader_tuning(documents: Sequence[Document], encoder: Encoder, cut: Cut) -> None:
    """Draw the questions, the settings, the progress of a training, and its results."""
    st.write(ABOUT)
    _, questions = answer_set_picker(documents)
    shipped, reason = shared_reader()
    if shipped is None:
        st.warning(escape_markdown(f"There is no reader to train: {reason}"), icon=":material/cloud_off:")
        return
    if len(questions) < MIN_QUESTIONS:
        st.info(
            f"Questions with known answers: {len(questions)}. Training needs at least {MIN_QUESTIONS}, "
            "better 100: choose another set above, or upload one.",
            icon=":material/label:",
        )
        return
    left, right = st.columns(2)
    n_epochs = slider(
        "Epochs", range(1, 9), 2, "tuning-reader-epochs", "Rounds over all questions.", place=left
    )
    n_last = slider(
        "Layers",
        range(1, 4),
        1,
        "tuning-reader-layers",
        "How many of the reader's last layers change, with the head that scores starts and ends.",
        place=right,
    )
    names = tuple(document.name for document in documents)
    request = ReaderRequest(n_last, n_epochs, names, tuple(questions), cut)
    reason = f"Trains {N_FOLDS} times with a part of the questions left out, and then on all."
    begin = partial(start, request, documents, encoder, shipped)
    rest = ", and then shows whether the reader answers better"
    if (found := show_training("reader-tuning", request, reason, begin, rest)) is not None:
        show_outcome(found)


def start(request: ReaderRequest, documents: Sequence[Document], encoder: Encoder, shipped: Reader) -> None:
    """Start a training on the passages that the app's settings find; these are embedded first."""
    values = settings_in_use(encoder) | cut_values(request.cut) | {"write": False}
    settings = answer_settings(values)
    index, null_scores = index_to_ask(documents, encoder, request.cut, values["pooling"], values["retriever"])
    base = shared_encoder()
    base = base if base.name == DEFAULT_ENCODER else Encoder.load(DEFAULT_ENCODER)

    def work(job: Job[ReaderOutcome]) -> ReaderOutcome:
        report = stage_progress(job)
        found = []
        for number, asked in enumerate(request.questions):
            report("Finding the passages", number, len(request.questions))
            answer = ask(asked.text, index, encoder, None, settings, null_scores, reader=shipped)
            found.append(own_question(asked, answer.retrieved.hits))
        usable = [own for own in found if own]
        tuned = tune_reader(
            shipped,
            base,
            usable,
            request.settings,
            N_FOLDS,
            lambda done, total: report("Training", done, total),
        )
        return ReaderOutcome(tuned, len(found) - len(usable))

    cost = "reader-tuning", request.seconds
    start_job("reader-tuning", work, request=request, page="improve/tuning", cost=cost)


def show_outcome(found: ReaderOutcome) -> None:
    """Draw whether the reader got better, the questions that changed, and the choice of the reader in use."""
    tuned, comparison = found.tuned, found.tuned.comparison
    numbers = (
        f"F1 of questions that were not trained on goes from {tuned.before.mean():.3f} to "
        f"{tuned.after.mean():.3f} ({interval(comparison)})"
    )
    helps = is_better(comparison)
    said = f"{'It harms' if is_worse(comparison) else 'No gain beyond noise'}: the reader stays as it is"
    show_verdict(f"**{'It helps beyond noise' if helps else said}.** {numbers}.", helps, comparison)
    if found.n_left_out:
        st.caption(
            f"{counted(found.n_left_out, 'question')} left out: their answer has several parts, or is in "
            "none of the passages that are found."
        )
    show_questions([own.asked.text for own in tuned.questions], tuned.before, tuned.after, "F1")
    is_used = load_reader()[0] is tuned.reader
    with st.container(horizontal=True):
        if is_used:
            st.button(
                "Use the reader from before",
                key="tuning-reader-back",
                icon=":material/undo:",
                on_click=use_reader,
                args=(None,),
            )
        elif helps:
            st.button(
                "Answer with the trained reader",
                key="tuning-reader-use",
                type="primary",
                icon=":material/check:",
                on_click=use_reader,
                args=(tuned.reader,),
                help="On all pages, until this page is reloaded.",
            )
        download(
            "Download the trained reader",
            lambda: reader_file(tuned.reader),
            "reader.safetensors",
            "11 MB. `Reader.load(Path(…))` of the engine reads it, and `export-reader` makes a folder for "
            "transformers of it.",
        )
    if is_used:
        st.caption(":material/check: All pages answer with this reader, until this page is reloaded.")


def reader_file(reader: Reader) -> bytes:
    """Return the content of a reader's file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "reader.safetensors"
        reader.save(path)
        return path.read_bytes()
