"""A tuning that runs in a thread of its own, and may be stopped."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

import numpy as np
import streamlit as st

from engine import Encoder
from engine.documents.document import Chunk, Document
from engine.errors import GlassboxError
from engine.evaluation.questions import Question, relevance
from engine.training.adapter import N_EPOCHS
from engine.training.fine_tune import FineTuning
from engine.training.folds import Labelled
from engine.training.tuning import Task, Tuned, tune
from ui.chunk_settings import Cut
from ui.corpus import index_documents
from ui.jobs import Job

STATE = "tuning"


class Stopped(GlassboxError):
    """The user ended the work."""


@dataclass(frozen=True)
class Request:
    """What is to be tuned and how; ``depth`` is 0 for the adapter, else the number of last layers."""

    depth: int
    n_folds: int
    n_epochs: int
    documents: tuple[str, ...]
    questions: tuple[Question, ...] = field(repr=False)
    cut: Cut

    @property
    def settings(self) -> FineTuning | None:
        """How the last layers are fine-tuned, None for the adapter."""
        return FineTuning(n_last=self.depth, n_epochs=self.n_epochs) if self.depth else None


@dataclass
class Running:
    """A tuning, how far it is, and its job."""

    request: Request
    labelled: Labelled
    stage: str = "Beginning"
    share: float = 0.0
    job: Job[Tuned] = field(init=False)

    def tell(self, stage: str, done: int, total: int) -> None:
        """Take in how far the work is; end it where the user wants that."""
        self.stage, self.share = stage, done / max(1, total)
        if self.job.stopped:
            raise Stopped("the training was stopped before its end: nothing was changed")


def labelled_chunks(questions: Sequence[Question], chunks: Sequence[Chunk]) -> Labelled:
    """Return the questions that a chunk answers, with the chunks."""
    relevant = relevance(questions, chunks)
    answered = np.flatnonzero(relevant.any(axis=1))
    return Labelled(
        tuple(questions[number].text for number in answered.tolist()),
        tuple(chunk.text for chunk in chunks),
        tuple(PurePath(chunk.document).stem for chunk in chunks),
        relevant[answered],
    )


def start(request: Request, documents: Sequence[Document], encoder: Encoder) -> None:
    """Begin a tuning; the chunks are embedded first, if they were not yet."""
    index = index_documents(documents, encoder, request.cut)
    labelled = labelled_chunks(request.questions, index.chunks)
    running = Running(request, labelled)

    def work(job: Job[Tuned]) -> Tuned:
        running.job = job  # which may begin before the caller has it
        running.tell("Embedding the questions", 0, 1)
        asked = encoder.encode(labelled.questions)
        task = Task(labelled, encoder, asked, index.vectors, request.cut.max_tokens)
        return tune(task, request.settings, request.n_folds, request.n_epochs or N_EPOCHS, running.tell)

    running.job = Job(work)
    st.session_state[STATE] = running


def current() -> Running | None:
    """Return the session's tuning, running or done."""
    return st.session_state.get(STATE)
