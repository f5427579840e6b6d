"""A training of the encoder-decoder that runs in a thread of its own, may be paused and gone on with."""

from dataclasses import dataclass

import streamlit as st

from engine.errors import GlassboxError
from engine.training.seq2seq_checkpoint import read_training
from engine.training.seq2seq_loop import Recipe, Training, train
from engine.training.tasks import Task
from ui.jobs import Job

STATE = "seq2seq-trainings"


@dataclass
class Running:
    """A training, and the job that moves it on, if it was ever started."""

    training: Training
    job: Job[None] | None = None

    @property
    def moving(self) -> bool:
        """Whether steps are being made, be it the last before a pause."""
        return self.job is not None and not self.job.done

    @property
    def pausing(self) -> bool:
        """Whether the job is to end and has not yet."""
        return self.job is not None and not self.job.done and self.job.stopped

    @property
    def error(self) -> str | None:
        """Why the training cannot go on, if it cannot."""
        if self.training.failure is not None or self.job is None or not self.job.done:
            return self.training.failure
        try:
            self.job.result()
        except GlassboxError as error:
            return str(error)
        return None

    def resume(self) -> None:
        """Make steps until the last, or a pause."""

        def work(job: Job[None]) -> None:
            for _ in train(self.training):
                if job.stopped:
                    return

        self.job = Job(work)

    def stop(self) -> None:
        """Make no more steps after the next report."""
        if self.job is not None:
            self.job.stop()


def trainings() -> dict[str, Running]:
    """Return this session's trainings by the name of their task."""
    found: dict[str, Running] = st.session_state.setdefault(STATE, {})
    return found


def start(task: Task, recipe: Recipe) -> None:
    """Begin a training of a task; any other of the session pauses."""
    pause_others(task.name)
    trainings()[task.name] = Running(Training(task, recipe))
    trainings()[task.name].resume()


def load(content: bytes, task: Task) -> None:
    """Make a checkpoint the training of a task; where there is one, its sizes must be the same.

    Raises
    ------
    GlassboxError
        It is no checkpoint, or of another task or model.
    """
    now = trainings().get(task.name)
    training = read_training(content, task, None if now is None else now.training.config)
    trainings()[task.name] = Running(training)


def resume(name: str) -> None:
    """Go on with the training of a task; any other of the session pauses."""
    pause_others(name)
    if not (running := trainings()[name]).moving:
        running.resume()


def pause_others(name: str) -> None:
    """Pause all trainings but that of one task, since they would share the processor."""
    for other, running in trainings().items():
        if other != name:
            running.stop()


def reset(name: str) -> None:
    """Forget the training of a task."""
    trainings().pop(name).stop()
