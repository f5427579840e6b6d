"""Experiments: a grid over documents and questions with its rows, and the background job that measures them.

They are kept in the session's workspace and on disk. On disk, next to the session's work, they are written
row by row, so that no crash and no reload loses them. A file's first line describes the experiment, each
further line is a row; one that a crash cut off is ignored.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import streamlit as st
from pydantic import TypeAdapter

from engine.atomic_write import remove_abandoned, write_atomically
from engine.documents.document import Document
from engine.errors import UNREADABLE, GlassboxError, InputError
from engine.evaluation.answers import AnswerQuestion
from engine.evaluation.embedding_server import is_server
from engine.evaluation.library_model import load_model
from engine.evaluation.questions import DRAFTED, Question, question_fields, to_question
from engine.evaluation.sweep import Part, SweepInputs, by_name, sweep
from engine.evaluation.sweep_answers import Answering
from engine.evaluation.sweep_row import SweepRow
from engine.evaluation.sweep_store import KeptParts, append, file_content, read_line, read_row, row_fields
from engine.generation.settings import DEFAULT_ANSWER, AnswerSettings
from engine.generation.writer import Writer
from engine.retrieval.embedding_model import Model
from engine.settings import SETTINGS, SWEPT, Configuration
from engine.storage.workspace import SavedRun
from engine.wording import counted, some_of
from ui.corpus import vectors_of
from ui.data_folder import EXPERIMENTS, kept_folder
from ui.documents import chosen_documents
from ui.jobs import Job, adopted_job, current_job, drop_job, follow_progress, start_job
from ui.models import load_decoder, load_encoder, load_reader
from ui.questions.kept import workspace
from ui.server_settings import ENCODER, WORKSPACES, check_source
from ui.setting_values import apply_settings
from ui.text import escape_markdown, joined, show_error

KIND = "sweep"  # marks the runs of a workspace that are experiments
SUFFIX = ".jsonl"
MOST_NAMED = 10  # documents
JOB = "experiment"  # the name of the session's job
NOTHING_MEASURED = (
    "The run was stopped before its first configuration was measured: run the grid again; texts that were "
    "embedded are not embedded again"
)
ANSWERS = TypeAdapter(tuple[tuple[AnswerQuestion, ...], AnswerSettings])


@dataclass(frozen=True)
class Experiment:
    """A grid over documents and questions, and its rows so far."""

    name: str  # its name, given by the user, and when it began (ISO 8601)
    time: str
    documents: tuple[str, ...]  # names of the documents
    corpus: str  # the `digest` of their texts, which identifies them
    questions: tuple[Question, ...] = field(repr=False)  # the questions asked in every configuration
    configurations: tuple[Configuration, ...] = field(repr=False)  # the settings, the baseline first
    rows: tuple[SweepRow, ...] = field(default=(), repr=False)  # the measured rows, the baseline first
    # those that were answered in every configuration, and how
    answered: tuple[AnswerQuestion, ...] = field(default=(), repr=False)
    answer_settings: AnswerSettings = DEFAULT_ANSWER
    n_removed: int = 0  # configurations of settings that this version does not have: they are left out
    n_damaged: int = 0  # rows that were left out

    @property
    def is_whole(self) -> bool:
        """Whether every configuration is measured."""
        return len(self.rows) == len(self.configurations)

    @property
    def n_drafted(self) -> int:
        """How many of the questions nobody has read."""
        return sum(question.status == DRAFTED for question in self.questions)

    @property
    def key(self) -> str:
        """Unique among all experiments."""
        return f"{self.time} {self.name}"

    @property
    def title(self) -> str:
        """Its name and the time it began, for a list."""
        lacks = ""
        if self.n_removed:
            lacks = f", without {counted(self.n_removed, 'configuration')} of removed settings"
        if self.n_damaged:
            lacks += f", without {counted(self.n_damaged, 'damaged row')}"
        return f"{self.name}, {self.time.replace('T', ' ')}{lacks}"

    def words(self, configuration: Configuration) -> str:
        """Say the settings of a configuration in which the experiment's differ."""
        return configuration_words(configuration, varied(self.configurations))


def digest(documents: Sequence[Document]) -> str:
    """Hash the names and texts of documents."""
    texts = sha256()
    for document in documents:
        for part in (document.name, document.text):
            texts.update(sha256(part.encode("utf-8", "surrogatepass")).digest())
    return texts.hexdigest()


def content_of(experiment: Experiment) -> dict[str, Any]:
    """Return the description of an experiment, without its rows, in JSON types."""
    return {
        "kind": KIND,
        "documents": list(experiment.documents),
        "corpus": experiment.corpus,
        "questions": [question_fields(question) for question in experiment.questions],
        "answers": ANSWERS.dump_python((experiment.answered, experiment.answer_settings), mode="json"),
        "cells": [asdict(one) for one in experiment.configurations],  # as in former versions
    }


def to_experiment(time: str, name: str, content: Mapping[str, Any]) -> Experiment:
    """Read the description that `content_of` wrote: an experiment without rows."""
    every = tuple(Configuration(**fields) for fields in content["cells"])
    known = tuple(one for one in every if is_known(one))
    none: tuple[tuple[AnswerQuestion, ...], AnswerSettings] = ((), DEFAULT_ANSWER)
    answered, settings = ANSWERS.validate_python(content["answers"]) if "answers" in content else none
    return Experiment(
        name,
        time,
        tuple(content["documents"]),
        content["corpus"],
        tuple(to_question(fields, "a question of the run") for fields in content["questions"]),
        known,
        answered=answered,
        answer_settings=settings,
        n_removed=len(every) - len(known),
    )


def is_known(configuration: Configuration) -> bool:
    """Whether this version has all choices of a configuration."""
    return all(SETTINGS[key].allows(getattr(configuration, key)) for key in SWEPT if SETTINGS[key].choices)


def to_run(experiment: Experiment) -> SavedRun:
    """Return an experiment as a run of a workspace, in JSON types."""
    rows = [row_fields(row) for row in experiment.rows]
    return SavedRun(experiment.name, experiment.time, {**content_of(experiment), "rows": rows})


def session_experiments() -> dict[str, Experiment]:
    """Return the experiments of the session by their keys, the newest first; damaged ones are left out."""
    found = {}
    for run in reversed([run for run in workspace().runs if run.content.get("kind") == KIND]):
        try:
            experiment = opened(run.time, run.name, len(run.content["rows"]), run.content)
        except UNREADABLE:
            continue
        found[experiment.key] = experiment
    return found


@st.cache_resource(max_entries=32, show_spinner=False, scope="session")
def opened(time: str, name: str, n_rows: int, _content: Mapping[str, Any]) -> Experiment:
    """Read an experiment from a run's content; cached by its key and number of rows."""
    rows = list[SweepRow]()
    for fields in _content["rows"]:
        with suppress(*UNREADABLE):
            rows.append(read_row(fields))
    return with_rows(to_experiment(time, name, _content), rows, len(_content["rows"]) - len(rows))


def with_rows(begun: Experiment, measured: Sequence[SweepRow], n_damaged: int) -> Experiment:
    """Return an experiment with its rows, none without the baseline, which the others are compared with.

    Where a configuration was measured twice, the later row counts.
    """
    known = begun.configurations
    for row in measured:
        is_own = row.configuration in known or not is_known(row.configuration)
        n_damaged += row.n_questions != len(begun.questions) or not is_own
    rows = {row.configuration: row for row in measured if row.n_questions == len(begun.questions)}
    if not rows.keys() & set(known[:1]):
        known = ()
    return replace(begun, rows=tuple(rows[one] for one in known if one in rows), n_damaged=n_damaged)


def keep(experiment: Experiment) -> None:
    """Put an experiment into the session's workspace, replacing an earlier state of it."""
    drop(experiment)
    st.session_state["workspace"] = replace(workspace(), runs=(*workspace().runs, to_run(experiment)))


def drop(experiment: Experiment) -> None:
    """Remove an experiment from the session's workspace."""
    own = (experiment.time, experiment.name)
    left = tuple(run for run in workspace().runs if (run.time, run.name) != own)
    st.session_state["workspace"] = replace(workspace(), runs=left)


def experiment_file(key: str) -> Path | None:
    """Return the file of an experiment, None where none are kept; its name is a hash of the key."""
    if (folder := kept_folder()) is None:
        return None
    return folder / EXPERIMENTS / (sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:24] + SUFFIX)


def begin(experiment: Experiment) -> Path | None:
    """Write the description of an experiment and what is measured; return the file, if there may be one.

    Raises `InputError` where it cannot be written.
    """
    if (file := experiment_file(experiment.key)) is None:
        return None
    parts = kept_parts(file)
    head = {"time": experiment.time, "name": experiment.name, **content_of(experiment)}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        remove_abandoned(file.parent, f"*{SUFFIX}")
        # Written to another name and renamed: a crash keeps the rows of the run that is resumed.
        write_atomically(file, file_content(head, experiment.rows, parts))
    except OSError as error:
        raise InputError(
            f"experiments cannot be kept in {file.parent} ({error.strerror}): make it writable, or start the "
            f"app with {WORKSPACES}=off"
        ) from error
    return file


def known_experiments(but: str | None = None) -> dict[str, Experiment]:
    """Return the experiments of the session and of the disk by their keys, the newest first.

    ``but`` is the key of the running one, which is left out.
    """
    on_disk = {one.key: one for one in kept_experiments(but) if one.rows or one.n_damaged}
    newest = sorted((on_disk | session_experiments()).values(), key=lambda one: one.time, reverse=True)
    return {one.key: one for one in newest if one.key != but}


def kept_experiments(but: str | None = None) -> list[Experiment]:
    """Return the experiments on disk; unreadable files are left out."""
    if (folder := kept_folder()) is None:
        return []
    found = []
    for path in sorted((folder / EXPERIMENTS).glob(f"*{SUFFIX}")):
        if but is not None and path == experiment_file(but):
            continue  # it is being written
        with suppress(OSError, *UNREADABLE):
            found.append(read(path, path.stat().st_mtime_ns))
    return found


@st.cache_resource(max_entries=32, show_spinner="Opening earlier experiments…")
def read(path: Path, changed: int) -> Experiment:
    """Read a file."""
    head, rows, _, n_damaged = lines_of(path)
    about = json.loads(head)
    return with_rows(to_experiment(about["time"], about["name"], about), rows, n_damaged)


def lines_of(path: Path) -> tuple[bytes, list[SweepRow], dict[str, Part], int]:
    """Read a file: its first line, rows, and parts of rows, and how many lines are damaged."""
    content, rows, parts, n_damaged = path.read_bytes(), list[SweepRow](), dict[str, Part](), 0
    head, *lines = content[: content.rfind(b"\n")].split(b"\n")
    for line in lines:
        try:
            read_line(line, rows, parts)
        except UNREADABLE:
            n_damaged += 1
    return head, rows, parts, n_damaged


def kept_parts(path: Path) -> dict[str, Part]:
    """Return the parts of rows in a file, none where it cannot be read."""
    with suppress(OSError):
        return lines_of(path)[2]
    return {}


@st.cache_resource(max_entries=4, show_spinner=False, scope="session")
def session_parts(key: str) -> dict[str, Part]:
    """Return the parts of an experiment's rows, for a session without a file."""
    return {}


def remove(experiment: Experiment) -> None:
    """Delete an experiment, from the session and from the disk."""
    drop(experiment)
    if (file := experiment_file(experiment.key)) is not None:
        file.unlink(missing_ok=True)


def shared_questions(first: Experiment, second: Experiment) -> tuple[list[int], list[int]]:
    """Return the places, in each of two experiments, of the questions that both asked.

    Raises `InputError` where there is none, or the experiments searched different documents.
    """
    if first.corpus != second.corpus:
        raise InputError(
            f"{first.name} and {second.name} searched different documents: how hard a question is "
            "depends on the documents, so compare runs of the same ones"
        )
    places = {question: place for place, question in enumerate(second.questions)}
    shared = [
        (place, places[question]) for place, question in enumerate(first.questions) if question in places
    ]
    if not shared:
        raise InputError(
            f"{first.name} and {second.name} have no question in common: compare runs of one question set"
        )
    return [own for own, _ in shared], [other for _, other in shared]


def start(experiment: Experiment, inputs: SweepInputs) -> None:
    """Start to measure an experiment, or resume it: the missing configurations, the baseline first.

    Its answers are asked for as it says.
    """
    if experiment.answered:
        settings = experiment.answer_settings
        writer = Writer(load_decoder()) if settings.write else None
        if writer is not None:
            writer.check(settings)
        reader = load_reader()[0]
        asked = Answering(experiment.answered, inputs.documents, reader, settings, writer)
        inputs = replace(inputs, answering=asked)
    cache = vectors_of(inputs.documents)
    file, every = begin(experiment), experiment.configurations
    name = escape_markdown(experiment.name)
    parts = session_parts(experiment.key) if file is None else KeptParts(file, kept_parts(file))

    def work(job: Job[None]) -> None:
        def report(n_done: float, _: int) -> None:
            job.report(n_done, len(every), f"{name}: configurations {len(job.rows):,} of {len(every):,}")

        def is_stopped() -> bool:
            return not job.take_turn()

        for wanted in (every[:1], every):
            done = [row for row in job.rows if row.configuration in set(wanted)]
            of_wanted = replace(inputs, configurations=wanted)
            for row in sweep(of_wanted, cache, report, is_stopped, done, parts):
                job.rows.append(row)
                if file is not None:
                    append(file, row)

    state, folder = st.session_state, kept_folder()
    shared = None if folder is None else (JOB, folder)  # its work is found again after a reload
    start_job(JOB, work, shared, request=experiment, page="improve/settings", rows=experiment.rows)
    state["experiment-shown"], state["experiments-tab"] = experiment.key, "Results"
    state.pop("experiment-error", None)


def running_experiment() -> Experiment | None:
    """Return the session's running experiment with the rows so far; one that has ended is kept first.

    The error of that, or that it has no row, is put into the session's state.
    """
    job = current_job(JOB)
    if job is not None and job.done:
        if job.rows:
            keep(measured_so_far(job))
        if problem := job.error or ("" if job.rows else NOTHING_MEASURED):
            st.session_state["experiment-error"] = problem
        drop_job(JOB)
        job = None
    if job is None and (folder := kept_folder()) is not None:
        job = adopted_job(JOB, (JOB, folder))
    return None if job is None else measured_so_far(job)


def measured_so_far(job: Job[Any]) -> Any:
    """Return what a job is to measure with its rows so far."""
    return replace(job.request, rows=tuple(job.rows))


def show_running() -> None:
    """Draw the progress of the running experiment, if any, and once the error of the last one, if any."""
    if running_experiment() is not None and (job := current_job(JOB)) is not None:
        follow_progress(
            job,
            "experiment",
            "Ends the run. What is measured stays, and the run can be resumed later.",
            "Closing this page ends the run; what is measured stays."
            if kept_folder() is not None
            else "Closing or reloading this page ends the run; its results are gone.",
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
    """Resume an experiment if its documents are among those that are chosen now."""
    state, named = st.session_state, {document.name: document for document in chosen_documents()}
    own = [named[name] for name in experiment.documents if name in named]  # of more, where it is a sample
    documents = by_name(own)
    if digest(documents) != experiment.corpus:
        if digest(own) == experiment.corpus:
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
        inputs = SweepInputs(documents, experiment.questions, experiment.configurations, models)
        start(experiment, inputs)
    except GlassboxError as error:
        state["experiment-error"] = str(error)


def value_words(configuration: Configuration, key: str) -> str:
    """Return the value of a setting in words."""
    return SETTINGS[key].words(getattr(configuration, key))


def varied(configurations: Iterable[Configuration]) -> list[str]:
    """Return the settings in which configurations differ."""
    configurations = list(configurations)
    return [key for key in SWEPT if len({getattr(one, key) for one in configurations}) > 1]


def configuration_words(configuration: Configuration, keys: Iterable[str] = SWEPT) -> str:
    """``"Chunk size 128 · Pooling mean"``, of some settings."""
    words = (f"{SETTINGS[key].label} {value_words(configuration, key)}" for key in keys)
    return " · ".join(words) or "the only setting"


def values_in_order(configurations: Iterable[Configuration], key: str) -> list[str]:
    """Return the distinct values of a setting in words: numbers by size, others in the order given."""
    values = list(dict.fromkeys(getattr(one, key) for one in configurations))
    if all(isinstance(value, int) or value is None for value in values):
        values.sort(key=lambda value: -1 if value is None else value)
    return [SETTINGS[key].words(value) for value in values]


def apply_configuration(configuration: Configuration) -> str:
    """Set the app's own settings to a configuration; return those that its widgets could take, in words."""
    encoder = load_encoder()
    wanted = {key: getattr(configuration, key) for key in SWEPT if SETTINGS[key].has_widget}
    if not encoder.prompts.in_search:
        del wanted["prompts"]
    if configuration.max_tokens is None:
        wanted["max_tokens"] = encoder.token_limit(None)
    apply_settings(wanted, encoder.config.max_positions)
    taken = [key for key, value in wanted.items() if st.session_state.get(key) == value]
    return configuration_words(configuration, taken)
