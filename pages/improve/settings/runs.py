"""Experiments: a grid over documents and questions with its rows, kept in the session's workspace."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from typing import Any

import streamlit as st

from engine.documents.document import Document
from engine.errors import InputError
from engine.evaluation.question_files import question_fields
from engine.evaluation.questions import Question, to_question
from engine.evaluation.sweep_row import SweepRow
from engine.evaluation.sweep_store import to_row
from engine.settings import SETTINGS, SWEPT, Configuration
from engine.storage.workspace import SavedRun
from engine.wording import counted
from ui.questions.kept import workspace

LISTS = ("intervals", "values")  # of a row, by metric
KIND = "sweep"  # marks the runs of a workspace that are experiments


@dataclass(frozen=True)
class Experiment:
    """A grid over documents and questions, and its rows so far.

    Attributes
    ----------
    name, time
        Its name, given by the user, and when it began (ISO 8601).
    documents
        Names of the documents.
    corpus
        The `digest` of their texts, which identifies them.
    questions
        The questions asked in every cell.
    cells
        The settings, the baseline first.
    rows
        The measured rows, the baseline first.
    n_removed
        Configurations of settings that this version does not have: they are left out.
    """

    name: str
    time: str
    documents: tuple[str, ...]
    corpus: str
    questions: tuple[Question, ...] = field(repr=False)
    cells: tuple[Configuration, ...] = field(repr=False)
    rows: tuple[SweepRow, ...] = field(default=(), repr=False)
    n_removed: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether every cell is measured."""
        return len(self.rows) == len(self.cells)

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
        return f"{self.name}, {self.time.replace('T', ' ')}{lacks}"


def digest(documents: Sequence[Document]) -> str:
    """Hash the names and texts of documents."""
    texts = sha256()
    for document in documents:
        for part in (document.name, document.text):
            texts.update(sha256(part.encode("utf-8", "surrogatepass")).digest())
    return texts.hexdigest()


def session_runs() -> tuple[SavedRun, ...]:
    """Return the experiments among the runs of the session's workspace, in their order."""
    return tuple(run for run in workspace().runs if run.content.get("kind") == KIND)


def session_experiments() -> dict[str, Experiment]:
    """Return the experiments of the session by their keys, the newest first; damaged ones are left out."""
    found = {}
    for run in reversed(session_runs()):
        try:
            experiment = opened(run.time, run.name, len(run.content["rows"]), run.content)
        except (LookupError, TypeError, ValueError):
            continue
        found[experiment.key] = experiment
    return found


@st.cache_resource(max_entries=32, show_spinner=False, scope="session")
def opened(time: str, name: str, n_rows: int, _content: Mapping[str, Any]) -> Experiment:
    """Read an experiment from a run's content; cached by its key and number of rows."""
    begun = to_experiment(time, name, _content)
    rows = tuple(to_row(fields) for fields in _content["rows"])
    return replace(begun, rows=tuple(row for row in rows if row.cell in begun.cells))


def to_experiment(time: str, name: str, content: Mapping[str, Any]) -> Experiment:
    """Read the description that `content_of` wrote: an experiment without rows."""
    cells = tuple(Configuration(**fields) for fields in content["cells"])
    known = tuple(cell for cell in cells if is_known(cell))
    return Experiment(
        name,
        time,
        tuple(content["documents"]),
        content["corpus"],
        tuple(to_question(fields, "a question of the run") for fields in content["questions"]),
        known,
        n_removed=len(cells) - len(known),
    )


def is_known(cell: Configuration) -> bool:
    """Whether this version has all choices of a configuration."""
    return all(SETTINGS[key].allows(getattr(cell, key)) for key in SWEPT if SETTINGS[key].choices)


def to_run(experiment: Experiment) -> SavedRun:
    """Return an experiment as a run of a workspace, in JSON types."""
    rows = [row_fields(row) for row in experiment.rows]
    return SavedRun(experiment.name, experiment.time, {**content_of(experiment), "rows": rows})


def content_of(experiment: Experiment) -> dict[str, Any]:
    """Return the description of an experiment, without its rows, in JSON types."""
    return {
        "kind": KIND,
        "documents": list(experiment.documents),
        "corpus": experiment.corpus,
        "questions": [question_fields(question) for question in experiment.questions],
        "cells": [asdict(cell) for cell in experiment.cells],
    }


def row_fields(row: SweepRow) -> dict[str, Any]:
    """Return a row in JSON types, with lists for tuples."""
    lists = {name: {key: list(found) for key, found in getattr(row, name).items()} for name in LISTS}
    return asdict(replace(row, intervals={}, values={})) | lists


def keep(experiment: Experiment) -> None:
    """Put an experiment into the session's workspace, replacing an earlier state of it."""
    drop(experiment)
    st.session_state["workspace"] = replace(workspace(), runs=(*workspace().runs, to_run(experiment)))


def drop(experiment: Experiment) -> None:
    """Remove an experiment from the session's workspace."""
    own = (experiment.time, experiment.name)
    left = tuple(run for run in workspace().runs if (run.time, run.name) != own)
    st.session_state["workspace"] = replace(workspace(), runs=left)


def shared_questions(first: Experiment, second: Experiment) -> tuple[list[int], list[int]]:
    """Return the places, in each of two experiments, of the questions that both asked."""
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
