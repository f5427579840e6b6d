"""The buttons of a training: train, pause, resume, reset, save and load."""

from collections.abc import Callable

import streamlit as st

from engine.errors import GlassboxError, InputError
from engine.training.language.small_decoder_checkpoint import checkpoint_bytes
from engine.training.language.small_decoder_loop import TrainingSettings
from pages.learn.decoder.session import KEPT_NAME, TrainingSession, delete, resume
from ui.data_folder import model_file
from ui.server_settings import limits
from ui.text import show_error

CHECKPOINT_HELP = "Weights, optimiser state, sizes, vocabulary and progress, in one file."


def show_training_buttons(
    session: TrainingSession | None,
    settings: TrainingSettings,
    train: Callable[[], object],
    load: Callable[[bytes], object],
) -> None:
    """Draw the buttons of a training, or of none; where there is none, the one that was kept is loaded.

    ``settings`` are those with which it is resumed. The message of a `GlassboxError` of ``train`` or ``load``
    is shown.
    """
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
                    train()
                    st.rerun()
                except GlassboxError as error:
                    failure = error
        else:
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
                st.download_button(
                    "Checkpoint",
                    lambda: checkpoint_bytes(session.checkpoint),
                    file_name=f"small-decoder-step-{session.state.n_updates}.safetensors",
                    mime="application/octet-stream",
                    icon=":material/download:",
                    on_click="ignore",
                    key="lab-decoder-checkpoint",
                    help=CHECKPOINT_HELP,
                )
            st.button(
                "Reset",
                key="lab-decoder-reset",
                icon=":material/restart_alt:",
                on_click=delete,
                args=(session,),
                help="Delete this model, so that another can be trained.",
            )
        is_running = session is not None and session.running
        with st.popover("Load a checkpoint", icon=":material/upload:", disabled=is_running):
            show_upload(load)
    if failure is not None:
        show_error(failure)


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
