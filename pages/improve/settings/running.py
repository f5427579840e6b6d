"""An experiment that runs in a background thread, and may be stopped and resumed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import streamlit as st

from engine.documents.document import Document
from engine.errors import GlassboxError
from engine.evaluation.embedding_server import is_server
from engine.evaluation.library_model import load_model
from engine.evaluation.sweep import by_name, sweep
from engine.evaluation.sweep_store import append
from engine.retrieval.embedding_model import Model
from engine.wording import some_of
from pages.improve.settings.experiments import Experiment, begin, digest, keep
from ui.corpus import session_vectors, shared_vectors
from ui.data_folder import kept_folder
from ui.documents import bundled_names, chosen_documents
from ui.jobs import Job, current_job, drop_job, follow_progress, start_job
from ui.models import load_encoder
from ui.server_settings import ENCODER, check_source
from ui.text import escape_markdown, joined, show_error

MOST_NAMED = 10  # documents
JOB = "experiment"  # the name of the session's job


def start(experiment: Experiment, documents: Sequence[Document], models: Mapping[str, Model]) -> None:
    """Start to measure an experiment, or resume it: the missing configurations, the baseline first."""
    bundled = bundled_names()
    shared = all(document.name in bundled for document in documents)
    cache = shared_vectors() if shared else session_vectors()
    file, every = begin(experiment), experiment.configurations
    name = escape_markdown(experiment.name)

    def work(job: Job[None]) -> None:
        def report(n_done: float, _: int) -> None:
            job.report(n_done, len(every), f"{name}: {len(job.rows):,} of {len(every):,} configurations")

        def is_stopped() -> bool:
            return not job.take_turn()

        for wanted in (every[:1], every):
            done = [row for row in job.rows if row.configuration in set(wanted)]
            rows = sweep(documents, experiment.questions, wanted, models, cache, report, is_stopped, done)
            for row in rows:
                job.rows.append(row)
                if file is not None:
                    append(file, row)

    state = st.session_state
    start_job(JOB, work, request=experiment, page="improve/settings", rows=experiment.rows)
    state["experiment-shown"], state["experiments-tab"] = experiment.key, "Results"
    state.pop("experiment-error", None)


def running_experiment() -> Experiment | None:
    """Return the session's running experiment with the rows so far; one that has ended is kept first."""
    state, job = st.session_state, current_job(JOB)
    if job is None:
        return None
    now = measured_so_far(job)
    if not job.done:
        return now
    if job.error:
        state["experiment-error"] = job.error
    if now.rows:
        keep(now)
    elif job.stopped:
        state["experiment-error"] = (
            f"{now.name} was stopped before its first configuration was measured: run the grid again; "
            "texts that were embedded are not embedded again"
        )
    drop_job(JOB)
    return None


def measured_so_far(job: Job[None]) -> Experiment:
    """Return the experiment of a job with its rows so far."""
    experiment: Experiment = job.request
    return replace(experiment, rows=tuple(job.rows))


def show_running() -> None:
    """Draw the progress of the running experiment, if any, and once the error of the last one, if any."""
    if running_experiment() is not None and (job := current_job(JOB)) is not None:
        follow_progress(
            job,
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
        f"{len(experiment.rows):,} of {len(experiment.configurations):,} configurations are measured; "
        "verdicts compare only these."
    )
    if current_job(JOB) is None:
        button.button(
            "Resume",
            key="experiment-resume",
            icon=":material/resume:",
            on_click=resume,
            args=(experiment,),
            width="stretch",
            help="Measures the missing configurations.",
        )


def models_named(names: Iterable[str]) -> dict[str, Model]:
    """Load the models of configurations by their names: the app's encoder, and others."""
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
        models = models_named(dict.fromkeys(one.model for one in experiment.configurations))
        start(experiment, documents, models)
    except GlassboxError as error:
        state["experiment-error"] = str(error)
