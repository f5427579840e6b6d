"""An experiment that runs in a background thread, and may be stopped and resumed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic

import streamlit as st

from engine.documents.document import Document
from engine.errors import GlassboxError
from engine.evaluation.embedding_server import is_server
from engine.evaluation.library_model import load_model
from engine.evaluation.sweep import by_name, sweep
from engine.evaluation.sweep_row import SweepRow
from engine.evaluation.sweep_store import append
from engine.retrieval.embedding_model import Model
from engine.retrieval.vector_cache import VectorCache
from engine.wording import readable_time, some_of
from pages.improve.settings.files import begin
from pages.improve.settings.runs import Experiment, digest, keep
from ui.corpus import session_vectors, shared_vectors
from ui.data_folder import kept_folder
from ui.documents import bundled_names, chosen_documents
from ui.jobs import Job, announce, follow_progress
from ui.models import load_encoder
from ui.server_settings import ENCODER, check_source
from ui.text import escape_markdown, joined, show_error

MOST_NAMED = 10  # documents
MIN_SHARE = 0.02  # of a grid: below it, the time left cannot be estimated


@dataclass
class RunningExperiment:
    """An experiment with its progress and its job.

    Attributes
    ----------
    begun
        The experiment when it was started, with the rows of an earlier run where it is resumed.
    rows
        The rows so far; the job's thread appends to them.
    n_done
        Cells that are done, with a fraction for those in progress.
    expected
        Seconds that all of it was estimated to take before it began, None where a run is resumed.
    since
        When it was started, by `monotonic`.
    job
        The work.
    """

    begun: Experiment
    rows: list[SweepRow]
    n_done: float
    expected: float | None = None
    since: float = field(default_factory=monotonic)
    job: Job[None] = field(init=False)

    @property
    def experiment(self) -> Experiment:
        """The experiment with the rows so far."""
        return replace(self.begun, rows=tuple(self.rows))

    @property
    def seconds_left(self) -> float | None:
        """How long the rest takes, None where that cannot be estimated yet."""
        n_cells, n_before = len(self.begun.cells), len(self.begun.rows)
        share = (self.n_done - n_before) / (n_cells - n_before)
        return time_left(monotonic() - self.since, share, self.expected)

    def progress(self) -> tuple[float, str]:
        """Return the share of the cells that is done, and that with the time left in words, as Markdown."""
        n_cells, left = len(self.begun.cells), self.seconds_left
        words = "estimating the time left…" if left is None else f"about {readable_time(left)} left"
        name = escape_markdown(self.begun.name)
        return self.n_done / n_cells, f"{name}: {len(self.rows):,} of {n_cells:,} cells, {words}"


def time_left(elapsed: float, share: float, expected: float | None) -> float | None:
    """Return the seconds that the rest of a run takes, None where that cannot be estimated yet.

    The first cells of a run embed more texts than the rest, so its pace alone is misleading: it counts as
    much as there is of it, and the estimate from before the run, ``expected``, as much as is left.
    """
    pace = elapsed * (1 - share) / share if share > MIN_SHARE else None
    if expected is None:
        return pace
    ahead = max(0.0, expected - elapsed)
    return ahead if pace is None else share * pace + (1 - share) * ahead


def start(
    experiment: Experiment,
    documents: Sequence[Document],
    models: Mapping[str, Model],
    expected: float | None = None,
) -> None:
    """Start to measure an experiment, or resume it; ``expected`` seconds are estimated for all of it."""
    bundled = bundled_names()
    shared = all(document.name in bundled for document in documents)
    cache = shared_vectors() if shared else session_vectors()
    running = RunningExperiment(experiment, list(experiment.rows), len(experiment.rows), expected)
    file = begin(experiment)

    def work(job: Job[None]) -> None:
        for row in rows_of(running, documents, models, cache, job):
            running.rows.append(row)
            if file is not None:
                append(file, row)

    state = st.session_state
    running.job = Job(work)
    announce("improve/settings", running.job, lambda: running.n_done / len(experiment.cells))
    state["experiment"], state["experiment-shown"] = running, experiment.key
    state["experiments-tab"] = "Results"
    state.pop("experiment-error", None)


def rows_of(
    running: RunningExperiment,
    documents: Sequence[Document],
    models: Mapping[str, Model],
    cache: VectorCache,
    job: Job[None],
) -> Iterator[SweepRow]:
    """Measure the missing cells, the baseline first."""
    begun = running.begun

    def report(n_done: float, _: int) -> None:
        running.n_done = n_done

    for cells in (begun.cells[:1], begun.cells):
        yield from sweep(
            documents,
            begun.questions,
            cells,
            models,
            cache,
            report,
            lambda: not job.take_turn(),
            [row for row in running.rows if row.cell in set(cells)],
        )


def running_experiment() -> RunningExperiment | None:
    """Return the session's running experiment; one that has ended is moved to the session's runs first."""
    state = st.session_state
    now: RunningExperiment | None = state.get("experiment")
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
            f"{now.begun.name} was stopped before its first cell was measured: run the grid again; "
            "texts that were embedded are not embedded again"
        )
    del state["experiment"]
    return None


def show_running() -> None:
    """Draw the progress of the running experiment, if any, and once the error of the last one, if any."""
    if (now := running_experiment()) is not None:
        follow_progress(
            now.job,
            now.progress,
            "experiment",
            "Ends the run. What is measured stays, and the run can be resumed later.",
            "Closing or reloading this page ends the run; "
            + ("what is measured stays." if kept_folder() is not None else "its results are gone."),
        )
    if error := st.session_state.pop("experiment-error", None):
        show_error(error)


def show_resume(experiment: Experiment) -> None:
    """Draw how much of an experiment is measured, and a button that resumes it unless another one runs."""
    words, button = st.columns([4, 1], vertical_alignment="center")
    words.caption(
        f"{len(experiment.rows):,} of {len(experiment.cells):,} cells are measured; verdicts compare only "
        "these."
    )
    if st.session_state.get("experiment") is None:
        button.button(
            "Resume",
            key="experiment-resume",
            icon=":material/resume:",
            on_click=resume,
            args=(experiment,),
            width="stretch",
            help="Measures the missing cells.",
        )


def models_named(names: Iterable[str]) -> dict[str, Model]:
    """Load the models of cells by their names: the app's encoder, and others.

    Raises
    ------
    GlassboxError
        A model cannot be found or read.
    """
    encoder = load_encoder()

    def named(name: str) -> Model:
        check_source(name)
        if is_server(name):
            return model_of_server(name, st.session_state.get(server_key(name), "").strip())
        return encoder if name == ENCODER else other_model(name)

    return {name: named(name) for name in names}


@st.cache_resource(max_entries=1, show_spinner="Loading the model…")
def other_model(name: str) -> Model:
    """Load a model with the engine, or with sentence-transformers where the engine cannot."""
    return load_model(name)


def server_key(address: str) -> str:
    """Return where the session's state has the key of a server: no other server gets it."""
    return f"grid-server-key-{address}"


@st.cache_resource(max_entries=2, show_spinner="Asking the server…", scope="session")
def model_of_server(address: str, api_key: str) -> Model:
    """Connect to a model on a server; the key stays in this session."""
    return load_model(address, api_key=api_key)


def other_documents(experiment: Experiment, chosen: Sequence[str]) -> str:
    """Say which documents to choose, of those chosen now, for an experiment to be resumed."""
    missing = [name for name in experiment.documents if name not in chosen]
    further = [name for name in chosen if name not in experiment.documents]
    if not missing and not further:
        return (
            f"{experiment.name} searched documents of these names with other texts: add those files to "
            "resume it, or run its grid again"
        )
    changes = [f"add {some_of(missing, MOST_NAMED)}"] if missing else []
    changes += [f"leave out {some_of(further, MOST_NAMED)}"] if further else []
    return (
        f"{experiment.name} did not search the documents that are chosen now: "
        f"{joined(changes, 'and')} in the sidebar to resume it"
    )


def resume(experiment: Experiment) -> None:
    """Resume an experiment if its documents are those that are chosen now."""
    state, documents = st.session_state, by_name(chosen_documents())
    if digest(documents) != experiment.corpus:
        named = {document.name: document for document in documents}
        if digest([named[name] for name in experiment.documents if name in named]) == experiment.corpus:
            state["experiment-error"] = (
                f"{experiment.name} searched its documents in the order of their upload, and they are now "
                "searched in the order of their names, which changes the order of equal scores: run its grid "
                "again"
            )
            return
        state["experiment-error"] = other_documents(experiment, list(named))
        return
    try:
        models = models_named(dict.fromkeys(cell.model for cell in experiment.cells))
        start(experiment, documents, models)
    except GlassboxError as error:
        state["experiment-error"] = str(error)
