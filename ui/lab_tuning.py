"""Tuning the search to labelled questions, with a guard against fooling oneself."""

from collections.abc import Sequence

import streamlit as st

from engine import Encoder
from engine.documents.document import Document
from engine.errors import GlassboxError
from engine.evaluation.questions import Question
from engine.training.adapter import N_EPOCHS
from engine.training.fine_tune import FineTuning
from ui.answer import escape_markdown
from ui.chunk_settings import Cut
from ui.lab_tuning_results import show_results
from ui.lab_tuning_running import Request, Running, current, start

REDRAW_S = 1.0
FEWEST = 10  # questions: fewer say nothing in folds
ADAPTER, LAYERS = "Adapter", "Last layers"
MOST_LAYERS = 3  # whose training fits in memory beside all else


def show_purpose() -> None:
    """Say what tuning does, and what is judged."""
    st.write(
        "Teach the search your labelled questions: each is pulled towards the chunks that answer it and "
        "pushed away from the rest ([InfoNCE](https://arxiv.org/abs/1807.03748)). What counts is judged on "
        "questions, and on documents, that were left out of training, and unless the gain is more than "
        "noise the original stays."
    )


def show_tuning(
    documents: Sequence[Document], questions: Sequence[Question], encoder: Encoder, cut: Cut
) -> None:
    """Draw the settings, the training while it runs, and what came of it.

    Parameters
    ----------
    documents
        Those that are searched.
    questions
        Labelled questions about them.
    encoder
        The model to tune; it stays as it is.
    cut
        How the documents are cut.
    """
    asked = tuple(question for question in questions if question.references)
    if len(asked) < FEWEST or not documents:
        st.info(
            f"There are {len(asked)} labelled questions about these documents, and tuning needs at least "
            f"{FEWEST}, better 50: choose another set above, upload one, or label passages on the Documents "
            "page.",
            icon=":material/label:",
        )
        return
    request = choose(documents, asked, encoder, cut)
    running = current()
    busy = running is not None and not running.job.done
    if st.button(
        "Train",
        key="tuning-train",
        type="primary",
        icon=":material/model_training:",
        disabled=busy,
        help="Trains once for every fold, twice over (by question and by document), and then on everything.",
    ):
        try:
            start(request, documents, encoder)
            st.rerun()  # with the button greyed out
        except GlassboxError as error:
            st.error(escape_markdown(str(error)), icon=":material/error:")
    if running is None:
        st.info(
            f"Nothing is trained yet. Train learns from {len(asked):,} labelled questions about "
            f"{len(documents):,} {'document' if len(documents) == 1 else 'documents'}, and then says whether "
            "the search is better for it.",
            icon=":material/school:",
        )
    elif not running.job.done:
        st.fragment(show_progress, run_every=REDRAW_S)(running)
    else:
        show_end(running, request)


def choose(
    documents: Sequence[Document], questions: tuple[Question, ...], encoder: Encoder, cut: Cut
) -> Request:
    """Draw the settings."""
    depth = st.segmented_control(
        "What is trained",
        [ADAPTER, LAYERS],
        default=ADAPTER,
        required=True,
        key="tuning-depth",
        persist_state="session",
        help=f"- **{ADAPTER}**: one matrix that question vectors are multiplied by. Takes seconds; the "
        f"index stays as it is.\n- **{LAYERS}**: the end of the encoder itself, by hand-written backward "
        "passes. Takes minutes, and documents have to be embedded again.",
    )
    columns = st.columns(3)
    n_folds = columns[0].slider(
        "Folds",
        2,
        10,
        5,
        key="tuning-folds",
        persist_state="session",
        help="The questions are dealt into so many parts; each is tested by a model trained on the others.",
    )
    if depth == ADAPTER:
        n_epochs = columns[1].slider(
            "Epochs, at most",
            5,
            100,
            N_EPOCHS,
            5,
            key="tuning-adapter-epochs",
            persist_state="session",
            help="Rounds over all questions. Where to stop is chosen by questions held out of training.",
        )
        n_last = 0
    else:
        n_epochs = columns[1].slider(
            "Epochs, at most",
            1,
            20,
            FineTuning().n_epochs,
            key="tuning-layer-epochs",
            persist_state="session",
            help="Rounds over all questions. Training stops when questions held out of it get no better.",
        )
        n_last = columns[2].slider(
            "Layers",
            1,
            min(MOST_LAYERS, encoder.config.n_layers),
            1,
            key="tuning-layers",
            persist_state="session",
            help="How many of the encoder's last layers change; the others are run once, and kept.",
        )
    names = tuple(document.name for document in documents)
    return Request(n_last, n_folds, n_epochs, names, questions, cut)


def show_progress(running: Running) -> None:
    """Draw how far a training is, and the button that stops it; runs the page again when it has ended."""
    if running.job.done:
        st.rerun()
    with st.container(border=True, key="tuning-progress"):
        bar, button = st.columns([5, 1], vertical_alignment="center")
        bar.progress(min(running.share, 1.0), f"{running.stage}: {running.share:.0%}")
        button.button(
            "Stopping…" if running.job.stopped else "Stop",
            key="tuning-stop",
            icon=":material/stop_circle:",
            disabled=running.job.stopped,
            on_click=running.job.stop,
            width="stretch",
            help="Ends the training. Nothing is changed by it.",
        )


def show_end(running: Running, request: Request) -> None:
    """Draw the results of a training that has ended, or why there are none."""
    try:
        tuned = running.job.result()
    except GlassboxError as error:
        st.error(escape_markdown(str(error)), icon=":material/error:")
        return
    if running.request != request:
        st.caption(
            ":material/history: These are the results of the last training; settings, questions or documents "
            "have changed since. Press Train for new ones."
        )
    show_results(running, tuned)
