"""An experiment that runs in a thread of its own, and may be stopped and gone on with."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic

import streamlit as st

from engine.documents.document import Document
from engine.errors import GlassboxError
from engine.evaluation.library_model import Model
from engine.evaluation.sweep import by_name, sweep
from engine.evaluation.sweep_row import SweepRow
from engine.retrieval.vector_cache import VectorCache
from ui.answer import escape_markdown
from ui.corpus import bundled_names, chosen_documents, listed, session_vectors, shared_vectors
from ui.experiment_files import FOLDER, add, begin
from ui.experiment_models import models_named
from ui.experiment_runs import Experiment, digest, keep
from ui.experiment_words import readable_time
from ui.jobs import Job

REDRAW_S = 1.0
TELLING = 0.02  # of a grid: before it is done, how long the rest takes is anybody's guess


@dataclass
class Running:
    """An experiment and how far it is.

    Attributes
    ----------
    begun
        The experiment as it was begun, with rows where it goes on.
    rows
        What was measured; the job's thread adds to them.
    n_done
        Cells that are done, with a part of the next ones.
    since
        When it was begun, by `monotonic`.
    job
        The work.
    """

    begun: Experiment
    rows: list[SweepRow]
    n_done: float
    since: float = field(default_factory=monotonic)
    job: Job[None] = field(init=False)

    @property
    def experiment(self) -> Experiment:
        """The experiment with what was measured so far."""
        return replace(self.begun, rows=tuple(self.rows))

    @property
    def seconds_left(self) -> float | None:
        """How long the rest takes at the pace so far, None where that cannot be told yet."""
        n_cells, n_before = len(self.begun.cells), len(self.begun.rows)
        share = (self.n_done - n_before) / (n_cells - n_before)
        return (monotonic() - self.since) * (1 - share) / share if share > TELLING else None


def start(experiment: Experiment, documents: Sequence[Document], models: Mapping[str, Model]) -> None:
    """Begin to measure an experiment, or go on with it."""
    bundled = bundled_names()
    shared = all(document.name in bundled for document in documents)
    cache = shared_vectors() if shared else session_vectors()
    running = Running(experiment, list(experiment.rows), len(experiment.rows))
    begin(experiment)

    def work(job: Job[None]) -> None:
        for row in rows_of(running, documents, models, cache, job):
            running.rows.append(row)
            add(experiment, row)

    state = st.session_state
    running.job = Job(work)
    state["experiment"], state["experiment-shown"] = running, experiment.key
    state["experiments-tab"] = "Results"
    state.pop("experiment-error", None)


def rows_of(
    running: Running,
    documents: Sequence[Document],
    models: Mapping[str, Model],
    cache: VectorCache,
    job: Job[None],
) -> Iterator[SweepRow]:
    """Measure what is missing, the baseline before all others."""
    begun = running.begun

    def tell(n_done: float, _: int) -> None:
        running.n_done = n_done

    for cells in (begun.cells[:1], begun.cells):
        yield from sweep(
            documents,
            begun.questions,
            cells,
            models,
            cache,
            tell,
            lambda: job.stopped,
            [row for row in running.rows if row.cell in set(cells)],
        )


def running() -> Running | None:
    """Return what runs in this session; what has ended is kept among the session's runs, and runs no more."""
    state = st.session_state
    now: Running | None = state.get("experiment")
    if now is None or not now.job.done:
        return now
    try:
        now.job.result()
    except GlassboxError as error:
        state["experiment-error"] = str(error)
    if now.rows:
        keep(now.experiment)
    elif now.job.stopped:
        state["experiment-error"] = (
            f"{now.begun.name} was stopped before its first cell was measured: run the grid again, and "
            "what was embedded is not embedded again"
        )
    del state["experiment"]
    return None


def show_running() -> None:
    """Draw how far the experiment is that runs, if any, and why the last one failed, if it did."""
    if (now := running()) is not None:
        st.fragment(show_progress, run_every=REDRAW_S)(now)
    if error := st.session_state.get("experiment-error"):
        st.error(escape_markdown(error), icon=":material/error:")


def show_progress(now: Running) -> None:
    """Draw how far an experiment is, and the button that stops it; runs the page again when it has ended."""
    if now.job.done:
        st.rerun()
    n_cells, left = len(now.begun.cells), now.seconds_left
    words = "counting the time left…" if left is None else f"about {readable_time(left)} left"
    with st.container(border=True, key="experiment-progress"):
        bar, button = st.columns([5, 1], vertical_alignment="center")
        bar.progress(
            min(now.n_done / n_cells, 1.0),
            f"{escape_markdown(now.begun.name)}: {len(now.rows):,} of {n_cells:,} cells, {words}",
        )
        button.button(
            "Stopping…" if now.job.stopped else "Stop",
            key="experiment-stop",
            icon=":material/stop_circle:",
            disabled=now.job.stopped,
            on_click=now.job.stop,
            width="stretch",
            help="Ends the run. What is measured stays, and the run can be gone on with later.",
        )
        if FOLDER is None:
            st.caption("It ends when this page is closed or loaded anew, and what was measured goes with it.")


def show_resume(experiment: Experiment) -> None:
    """Say how much of an experiment is measured, and offer to go on with it where nothing else runs."""
    words, button = st.columns([4, 1], vertical_alignment="center")
    words.caption(
        f"{len(experiment.rows):,} of {len(experiment.cells):,} cells are measured; verdicts are of these."
    )
    if st.session_state.get("experiment") is None:
        button.button(
            "Go on",
            key="experiment-resume",
            icon=":material/resume:",
            on_click=resume,
            args=(experiment,),
            width="stretch",
            help="Measures the cells that are missing.",
        )


def in_order(documents: Sequence[Document], names: Sequence[str]) -> list[Document]:
    """Return the documents of these names, in the names' order."""
    named = {document.name: document for document in documents}
    return [named[name] for name in names if name in named]


def resume(experiment: Experiment) -> None:
    """Go on with an experiment, where its documents are those that are chosen now."""
    state, documents = st.session_state, by_name(chosen_documents())
    if digest(documents) != experiment.corpus:
        if digest(in_order(documents, experiment.documents)) == experiment.corpus:
            state["experiment-error"] = (
                f"{experiment.name} took its documents in the order of their upload, and they are now taken "
                "in the order of their names, which changes what stands first of equal scores: run its grid "
                "again"
            )
            return
        state["experiment-error"] = (
            f"{experiment.name} searched {listed(experiment.documents)}, and now other documents, or "
            "others of these names, are chosen: choose the same in the sidebar to go on with it"
        )
        return
    try:
        models = models_named(dict.fromkeys(cell.model for cell in experiment.cells))
        start(experiment, documents, models)
    except GlassboxError as error:
        state["experiment-error"] = str(error)
