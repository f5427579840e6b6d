"""Trainings of the encoder-decoder in a background thread: started, paused, resumed, loaded and reset."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from engine.training.language.seq2seq_checkpoint import read_training, training_bytes
from engine.training.language.seq2seq_loop import Recipe, Training, train
from engine.training.language.tasks import Task
from ui.jobs import Job
from ui.training import BackgroundTraining

STATE = "seq2seq-trainings"


@dataclass
class TrainingSession(BackgroundTraining):
    """A training of the encoder-decoder in a background thread."""

    training: Training

    page = "learn/translator"

    @property
    def share(self) -> float:
        """How much of the training is done."""
        return self.training.moments.n_updates / self.training.recipe.n_steps

    @property
    def kept_name(self) -> str:
        """The name under which the checkpoint is kept."""
        return kept_name(self.training.task)

    @property
    def error(self) -> str | None:
        """The reason why the training cannot continue, if any."""
        return self.training.failure or self.job_error

    def resume(self) -> None:
        """Train in a new job until the last step or a pause."""

        def work(job: Job[None]) -> None:
            for _ in train(self.training):
                self.keep_if_due()
                if not job.take_turn():
                    return

        self.run(work)

    def checkpoint_file(self) -> tuple[str, Callable[[], bytes]]:
        """Return the name of a checkpoint file, and a function that returns its content."""
        n_updates = self.training.moments.n_updates
        return f"seq2seq-step-{n_updates}.safetensors", lambda: training_bytes(self.training)


def kept_name(task: Task) -> str:
    """Return the name under which the checkpoint of a task's training is kept."""
    return re.sub(r"\W+", "-", f"translator {task.name}".lower())


def trainings() -> dict[str, TrainingSession]:
    """Return this session's trainings by the name of their task."""
    return st.session_state.setdefault(STATE, {})


def start(task: Task, recipe: Recipe) -> None:
    """Start a training of a task; pause all others of the session."""
    trainings()[task.name] = TrainingSession(Training(task, recipe))
    resume(task.name)


def load(content: bytes, task: Task) -> None:
    """Replace the training of a task by a checkpoint, which must have the same sizes.

    Raises
    ------
    GlassboxError
        The file is not a checkpoint, or belongs to another task or model.
    """
    now = trainings().get(task.name)
    training = read_training(content, task, None if now is None else now.training.config)
    trainings()[task.name] = TrainingSession(training)


def resume(name: str) -> None:
    """Resume the training of a task; pause all others of the session, since they share the processor."""
    for other, session in trainings().items():
        if other != name:
            session.stop()
    if not (session := trainings()[name]).running:
        session.resume()


def reset(name: str) -> None:
    """Delete the training of a task."""
    trainings().pop(name).stop()
