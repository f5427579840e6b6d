"""A tuning in a background thread, which may be stopped."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

import numpy as np

from engine import Encoder
from engine.documents.document import Document
from engine.errors import GlassboxError
from engine.evaluation.questions import Question, relevance
from engine.training.search.fine_tune import FineTuning
from engine.training.search.folds import LabelledTexts
from engine.training.search.tuning import Tuned, TuningData, tune
from pages.improve.tuning.outcome import KEPT_NAME, model_zip
from ui.chunk_settings import Cut
from ui.corpus import index_documents
from ui.data_folder import model_file, write_model
from ui.jobs import Job, start_job


class Stopped(GlassboxError):
    """The user stopped the tuning."""


@dataclass(frozen=True)
class Request:
    """What to tune, and how; ``depth`` is 0 for the adapter, else the number of last layers."""

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


@dataclass(frozen=True)
class Outcome:
    """A tuning, the texts it learnt from, and why the tuned model could not be kept, if so."""

    labelled: LabelledTexts
    tuned: Tuned
    not_kept: str = ""


def start(request: Request, documents: Sequence[Document], encoder: Encoder) -> None:
    """Start a tuning on the questions that some chunk answers; chunks without vectors are embedded first."""
    index = index_documents(documents, encoder, request.cut, "mean")
    relevant = relevance(request.questions, index.chunks)
    answered = np.flatnonzero(relevant.any(axis=1))
    labelled = LabelledTexts(
        tuple(request.questions[number].text for number in answered.tolist()),
        tuple(chunk.text for chunk in index.chunks),
        tuple(PurePath(chunk.document).stem for chunk in index.chunks),
        relevant[answered],
    )
    file = model_file(KEPT_NAME, ".zip")

    def work(job: Job[Outcome]) -> Outcome:
        def report(stage: str, done: int, total: int) -> None:
            job.report(done, total, f"{stage}: {done / max(1, total):.0%}")
            if not job.take_turn():
                raise Stopped("the training was stopped before its end: nothing was changed")

        report("Embedding the questions", 0, 1)
        asked = index.encoder(encoder).encode_query(labelled.questions, pooling="mean")
        task = TuningData(labelled, encoder, asked, index.vectors, request.cut.max_tokens)
        tuned = tune(task, request.settings, request.n_folds, request.n_epochs, report)
        not_kept = write_model(file, lambda: model_zip(tuned))
        return Outcome(labelled, tuned, not_kept)

    start_job("tuning", work, request=request, page="improve/tuning")
