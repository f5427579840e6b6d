"""A training in a background thread, and its buttons: train, pause, resume, reset, save and load."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import ClassVar

import streamlit as st

from engine.atomic_write import write_atomically
from engine.errors import GlassboxError, InputError
from ui.data_folder import may_write, model_file
from ui.jobs import Job, announce
from ui.server_settings import limits
from ui.text import show_error

KEEP_S = 5.0  # between two checkpoints that are kept
REDRAW_S = 2.0  # between two drawings of a training


@dataclass(kw_only=True)
class BackgroundTraining(ABC):
    """A training whose steps run in a job, if it was ever started.

    Its checkpoint is kept every few seconds, unless it was deleted, in the file ``kept_in``, if any; the last
    time was ``kept_at``, by `monotonic`.
    """

    page: ClassVar[str]  # the folder of the page that draws it
    job: Job[None] | None = None
    deleted: bool = False
    kept_in: Path | None = None
    kept_at: float = 0.0

    @property
    def running(self) -> bool:
        """Whether the job is running, also while it is pausing."""
        return self.job is not None and not self.job.done

    @property
    def pausing(self) -> bool:
        """Whether the job was asked to stop and has not ended yet."""
        return self.job is not None and not self.job.done and self.job.stopped

    @property
    def job_error(self) -> str | None:
        """The message of the error that ended the job, if any."""
        if self.job is not None and self.job.done:
            try:
                self.job.result()
            except GlassboxError as error:
                return str(error)
        return None

    @property
    @abstractmethod
    def share(self) -> float:
        """How much of the training is done."""

    @property
    @abstractmethod
    def kept_name(self) -> str:
        """The name under which the checkpoint is kept."""

    def run(self, work: Callable[[Job[None]], None]) -> None:
        """Run steps in a job; they call `keep_if_due` in between."""
        self.kept_in, self.kept_at = model_file(self.kept_name), monotonic()

        def work_and_keep(job: Job[None]) -> None:
            try:
                work(job)
            finally:
                self.keep()

        self.job = Job(work_and_keep)
        announce(self.page, self.job, lambda: self.share)

    def keep_if_due(self) -> None:
        """Keep the checkpoint if the last one is `KEEP_S` old."""
        if monotonic() - self.kept_at > KEEP_S:
            self.keep()

    def keep(self) -> None:
        """Keep the checkpoint, if the session's work is kept."""
        if self.kept_in is not None and not self.deleted and may_write(self.kept_in):
            write_kept(self.kept_in, self.checkpoint_file()[1]())
        self.kept_at = monotonic()

    def stop(self) -> None:
        """End the job after its current step."""
        if self.job is not None:
            self.job.stop()

    def pause(self) -> None:
        """Respond to the button that pauses the training."""
        self.stop()

    @abstractmethod
    def checkpoint_file(self) -> tuple[str, Callable[[], bytes]]:
        """Return the name of a checkpoint file, and a function that returns its content."""


def write_kept(file: Path, content: bytes) -> None:
    """Write a checkpoint, whole or not at all.

    Raises
    ------
    InputError
        It cannot be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, content)
    except OSError as error:
        raise InputError(f"the model cannot be kept in {file.parent} ({error.strerror})") from error


def restore_kept(name: str, load: Callable[[bytes], object]) -> GlassboxError | None:
    """Load the checkpoint kept by an earlier session, once; return the error if it failed."""
    tried: set[str] = st.session_state.setdefault("restored-models", set())
    file = model_file(name)
    if name in tried or file is None or not file.is_file():
        return None
    tried.add(name)
    try:
        with st.spinner("Opening the model that was trained here…", show_time=True):
            load(file.read_bytes())
    except OSError as error:
        return InputError(f"the model kept in {file} cannot be read ({error.strerror})")
    except GlassboxError as error:
        return error
    return st.rerun()


def delete(training: BackgroundTraining, reset: Callable[[], None]) -> None:
    """Delete a training and its kept checkpoint."""
    training.deleted = True
    reset()
    if (file := model_file(training.kept_name)) is not None:
        file.unlink(missing_ok=True)


def draw_live(training: BackgroundTraining, draw: Callable[[], None]) -> None:
    """Draw a training; while it runs, again every `REDRAW_S` seconds, and at its end rerun the page."""
    if not training.running:
        draw()
        return

    @st.fragment(run_every=REDRAW_S)
    def redraw() -> None:
        if not training.running:
            st.rerun()
        draw()

    redraw()


def show_training_buttons(
    training: BackgroundTraining | None,
    key: str,
    kept_name: str,
    train: Callable[[], object],
    resume: Callable[[], None] | None,
    reset: Callable[[], None],
    load: Callable[[bytes], object],
    can_resume: bool = True,
) -> None:
    """Draw the buttons of a training, or of none; ``key`` is the prefix of their keys.

    Where there is none, the one that an earlier session kept under ``kept_name`` is loaded.
    Without ``resume`` its button is left out, without ``can_resume`` disabled. The message of a
    `GlassboxError` of ``train`` or ``load`` is shown.
    """
    failure = restore_kept(kept_name, load) if training is None else None
    with st.container(horizontal=True, vertical_alignment="center", key=f"{key}-buttons"):
        if training is None:
            failure = show_train_button(train, key) or failure
        else:
            if training.running:
                st.button(
                    "Pausing…" if training.pausing else "Pause",
                    key=f"{key}-pause",
                    icon=":material/pause:",
                    disabled=training.pausing,
                    on_click=training.pause,
                    help="Nothing is lost.",
                )
            else:
                if resume is not None:
                    st.button(
                        "Resume",
                        key=f"{key}-resume",
                        icon=":material/resume:",
                        type="primary",
                        disabled=not can_resume,
                        on_click=resume,
                        help="Continue from the pause, with the steps and the learning rate in the settings.",
                    )
                show_download(training, key)
            reason = "Delete this model, so that another can be trained."
            st.button(
                "Reset",
                key=f"{key}-reset",
                icon=":material/restart_alt:",
                on_click=delete,
                args=(training, reset),
                help=reason,
            )
        is_running = training is not None and training.running
        with st.popover("Load a checkpoint", icon=":material/upload:", disabled=is_running):
            show_upload(load, key)
    if failure is not None:
        show_error(failure)


def show_train_button(train: Callable[[], object], key: str) -> GlassboxError | None:
    """Draw the button that starts a training, then reruns the page; return the error if it failed."""
    reason = "Start from random weights."
    # Not a callback: it would get the settings of the previous run of the page.
    if st.button("Train", key=f"{key}-train", icon=":material/play_arrow:", type="primary", help=reason):
        try:
            train()
        except GlassboxError as error:
            return error
        st.rerun()
    return None


def show_download(training: BackgroundTraining, key: str) -> None:
    """Draw the button that saves a training as a checkpoint."""
    file_name, content = training.checkpoint_file()
    st.download_button(
        "Checkpoint",
        content,
        file_name=file_name,
        mime="application/octet-stream",
        icon=":material/download:",
        on_click="ignore",
        key=f"{key}-checkpoint",
        help="Weights, optimiser state, sizes, vocabulary and progress, in one file.",
    )


def show_upload(load: Callable[[bytes], object], key: str) -> None:
    """Draw the box that passes a checkpoint file to ``load``, then reruns the page; show its error."""
    file = st.file_uploader(
        "Checkpoint",
        type="safetensors",
        key=f"{key}-file",
        max_upload_size=limits().workspace_mb,
        help="A file saved here. It includes the model's sizes and vocabulary; if there is a model "
        "already, they must be the same.",
    )
    reason = "Continue from this checkpoint."
    pressed = st.button("Load", key=f"{key}-load", disabled=file is None, help=reason)
    if pressed and file is not None:
        try:
            with st.spinner("Reading the checkpoint…", show_time=True):
                load(file.getvalue())
        except GlassboxError as error:
            show_error(error)
            return
        st.rerun()
