"""A decoder trained from scratch on the chosen documents."""

from collections.abc import Callable, Sequence
from math import prod

import streamlit as st

from engine.documents.document import Document
from engine.errors import GlassboxError, InputError
from engine.models.small_decoder import SmallDecoderConfig
from engine.models.small_decoder_params import parameter_shapes
from engine.training.language.small_decoder_loop import TrainingSettings
from engine.wording import counted, readable_time
from pages.learn.decoder.live import show_progress
from pages.learn.decoder.reader import show_reader_training
from pages.learn.decoder.session import (
    KEPT_NAME,
    Choice,
    TrainingSession,
    begin,
    current,
    delete,
    restore,
    resume,
    training_seconds,
)
from pages.learn.decoder.settings import POSITIONS, choose
from pages.learn.decoder.write import show_writing_on
from ui.data_folder import model_file
from ui.documents import document_picker
from ui.jobs import foreseen
from ui.server_settings import limits
from ui.text import escape_markdown, show_error
from ui.widgets import download

REDRAW_S = 2.0  # between two drawings of a training


def show_decoder_training(documents: Sequence[Document]) -> None:
    """Draw the settings, the buttons, the training's progress, and generation with the model."""
    st.write(
        "A small GPT learns to write like your documents, on this machine; all gradients "
        "are computed by hand-written code."
    )
    if not documents:
        st.info("There is nothing to learn from: choose at least one document in the sidebar.")
        return
    session = current()
    choice = choose(made=session is not None, running=session is not None and session.running)
    show_buttons(session, choice, documents)
    if session is None:
        st.info(
            "Nothing is trained yet. **Train** starts from random weights; losses, samples and attention "
            "appear here as the model learns.",
            icon=":material/school:",
        )
        _show_plan(choice, documents)
        return
    if session.diverged:
        st.error(f"Training diverged: {escape_markdown(session.diverged)}.", icon=":material/trending_up:")
    elif session.job is not None and session.job.error:
        show_error(session.job.error)
    config, names = session.state.config, {value: name for name, value in POSITIONS.items()}
    n_parameters = sum(array.size for array in session.state.params.values())
    norm = "before" if config.norm_first else "after"
    st.caption(
        f"{n_parameters:,} parameters: {config.n_layers} × {config.n_heads} heads, width "
        f"{config.d_model}, context {config.context}, {names[config.positions]} positions, normalised {norm} "
        f"each part. {session.n_tokens:,} tokens of {config.vocab_size:,} different ones; they are in a file "
        "and are read window by window."
    )
    draw_live(session)
    show_writing_on(session)


def show_buttons(session: TrainingSession | None, choice: Choice, documents: Sequence[Document]) -> None:
    """Draw the buttons of a training, or of none; where there is none, the one that was kept is loaded."""

    def load(content: bytes) -> None:
        restore(content, choice, documents)

    failure = restore_kept(load) if session is None else None
    with st.container(horizontal=True, vertical_alignment="center", key="lab-decoder-buttons"):
        if session is None:
            # Not a callback: it would get the settings of the previous run of the page.
            if st.button(
                "Train",
                key="lab-decoder-train",
                icon=":material/play_arrow:",
                type="primary",
                help="Start from random weights.",
            ):
                try:
                    with st.spinner("Learning the vocabulary and counting tokens…", show_time=True):
                        resume(begin(choice, documents), choice.settings)
                    st.rerun()
                except GlassboxError as error:
                    failure = error
        else:
            show_session_buttons(session, choice.settings)
        is_running = session is not None and session.running
        with st.popover("Load a checkpoint", icon=":material/upload:", disabled=is_running):
            show_upload(load)
    if failure is not None:
        show_error(failure)


def show_session_buttons(session: TrainingSession, settings: TrainingSettings) -> None:
    """Draw the buttons of a training, which is resumed with the settings."""
    if session.running:
        st.button(
            "Pausing…" if session.pausing else "Pause",
            key="lab-decoder-pause",
            icon=":material/pause:",
            disabled=session.pausing,
            on_click=session.pause,
            help="Nothing is lost.",
        )
    else:
        st.button(
            "Resume",
            key="lab-decoder-resume",
            icon=":material/resume:",
            type="primary",
            disabled=session.state.n_updates >= settings.n_steps,
            on_click=resume,
            args=(session, settings),
            help="Continue from the pause, with the steps and the learning rate in the settings.",
        )
        download(
            "Checkpoint",
            session.checkpoint.to_bytes,
            f"small-decoder-step-{session.state.n_updates}.safetensors",
            "Weights, optimiser state, sizes, vocabulary and progress, in one file.",
            "lab-decoder-checkpoint",
        )
    st.button(
        "Reset",
        key="lab-decoder-reset",
        icon=":material/restart_alt:",
        on_click=delete,
        args=(session,),
        help="Delete this model, so that another can be trained.",
    )


def restore_kept(load: Callable[[bytes], object]) -> GlassboxError | None:
    """Load the checkpoint kept by an earlier session, once; return the error if it failed."""
    file = model_file(KEPT_NAME)
    if "lab-decoder-restored" in st.session_state or file is None or not file.is_file():
        return None
    st.session_state["lab-decoder-restored"] = True
    try:
        with st.spinner("Opening the model that was trained here…", show_time=True):
            load(file.read_bytes())
    except OSError as error:
        return InputError(f"the model kept in {file} cannot be read ({error.strerror})")
    except GlassboxError as error:
        return error
    return st.rerun()


def show_upload(load: Callable[[bytes], object]) -> None:
    """Draw the box that passes a checkpoint file to ``load``, then reruns the page; show its error."""
    file = st.file_uploader(
        "Checkpoint",
        type="safetensors",
        key="lab-decoder-file",
        max_upload_size=limits().workspace_mb,
        help="A file saved here. It includes the model's sizes and vocabulary; if there is a model "
        "already, they must be the same.",
    )
    reason = "Continue from this checkpoint."
    pressed = st.button("Load", key="lab-decoder-load", disabled=file is None, help=reason)
    if pressed and file is not None:
        try:
            with st.spinner("Reading the checkpoint…", show_time=True):
                load(file.getvalue())
        except GlassboxError as error:
            show_error(error)
            return
        st.rerun()


def draw_live(session: TrainingSession) -> None:
    """Draw a training; while it runs, again every `REDRAW_S` seconds, and at its end rerun the page."""
    if not session.running:
        show_progress(session)
        return

    @st.fragment(run_every=REDRAW_S)
    def redraw() -> None:
        if not session.running:
            st.rerun()
        show_progress(session)

    redraw()


def _show_plan(choice: Choice, documents: Sequence[Document]) -> None:
    """Draw the sizes of the corpus and of the model that would be trained."""
    text = "".join(document.text for document in documents)
    characters = len(set(text))
    vocab_size = characters + choice.keep_unknown if choice.kind == "characters" else choice.vocab_size
    config = SmallDecoderConfig(max(vocab_size, 1), **choice.sizes)
    n_parameters = sum(map(prod, parameter_shapes(config).values()))
    seconds = training_seconds(n_parameters, choice.settings.n_steps * choice.batch_size * config.context)
    price = f"about {readable_time(foreseen('training', seconds))}; it can be paused"
    st.caption(
        f"Corpus: {len(text):,} characters, {characters:,} different ones, in "
        f"{counted(len(documents), 'document')}, chosen in the sidebar. Model: {n_parameters:,} parameters, "
        f"trained in {choice.settings.n_steps:,} steps of {choice.batch_size * config.context:,} tokens, "
        f"{price}."
    )


with st.sidebar:
    documents = document_picker()
show_decoder_training(documents)
show_reader_training()
