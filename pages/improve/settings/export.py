"""The downloads of an experiment, and the command that measures it again."""

import json
import os
import shlex
from collections.abc import Sequence
from html import escape
from pathlib import PurePath

import streamlit as st

from engine.documents.loaders import BUNDLED_CORPUS
from engine.evaluation.grid import grid
from engine.evaluation.questions import question_fields, questions_about, to_jsonl
from engine.evaluation.sweep_row import MEASURES
from engine.evaluation.sweep_store import to_csv, to_json
from engine.installed import PROGRAM
from engine.settings import SWEPT, Configuration
from pages.improve.settings.experiments import Experiment, configuration_words, models_named
from ui.documents import bundled_names
from ui.export_as_code import code_button, export_as_code
from ui.questions.sets import bundled_questions
from ui.report import Report, element, facts, paragraph
from ui.widgets import download

METHOD = (
    "Intervals are 95 %, by drawing the questions again (bootstrap). A configuration is better or worse "
    "where a paired randomisation test has p below 0.05, corrected for the number of configurations "
    "(Westfall and Young's step-down max-T)."
)
DOCUMENTS, COLLECTIONS, QUESTIONS = "PATH/TO/DOCUMENTS", "PATH/TO", "questions.jsonl"
MOST_NAMED = 50  # documents; a command that names more is too long to copy


def show_export(report: Report, experiment: Experiment, metric: str, configuration: Configuration) -> None:
    """Draw the downloads of an experiment; one of its configurations can be taken to another library.

    To the ``report`` of what is drawn above it adds how that was measured.
    """
    st.header("Take it away")
    rows, stem = experiment.rows, "experiment-" + experiment.time.replace(":", "").replace("T", "-")
    command = command_line(experiment)
    about = {
        "Began": experiment.time.replace("T", " "),
        "Questions": f"{len(experiment.questions):,}",
        "Configurations": f"{len(rows):,} measured of {len(experiment.configurations):,}",
        "Documents": ", ".join(experiment.documents),
        "SHA-256 of the documents": experiment.corpus,
        "Baseline (the app's settings then)": configuration_words(experiment.configurations[0]),
        "Metric": f"{MEASURES[metric].label}: {MEASURES[metric].help}",
    }
    report.parts += [element("h2", "How it was measured"), facts(about), paragraph(METHOD, faint=True)]
    report.parts += [element("h2", "To measure it again"), element("pre", escape(command))]
    with st.container(horizontal=True):
        download("CSV", lambda: to_csv(rows), f"{stem}.csv", "A line for every configuration.")
        whole = "Every configuration with its intervals, and its values for every question."
        download("JSON", lambda: as_json(experiment), f"{stem}.json", whole)
        asked = "The questions, in the format that the command below reads."
        download("Questions", lambda: to_jsonl(experiment.questions), QUESTIONS, asked)
        report.button("experiment", experiment.name)
    with st.container(horizontal=True, vertical_alignment="center"):
        if code_button("experiment-export-as-code"):
            [model] = models_named([configuration.model]).values()
            export_as_code(configuration, model, parent_tokens=0)
        st.caption("Of the row that is selected, or else recommended.")
    with st.expander("The command that measures it again", icon=":material/terminal:"):
        st.caption("In the folder of the app:")
        st.code(command, language="bash", wrap_lines=True)


def as_json(experiment: Experiment) -> str:
    """Return every row, and its values for every question, as JSON."""
    rows, questions = experiment.rows, [question_fields(question) for question in experiment.questions]
    values = [dict(row.values) for row in rows]
    return json.dumps({**to_json(rows), "questions": questions, "values": values}, ensure_ascii=False)


def values_of(configurations: Sequence[Configuration]) -> dict[str, list[object]]:
    """Return the distinct values of each setting, in the order of the configurations.

    Among other limits, None is that of a model which takes none, and `fitting` gives it that again.
    """
    values = {key: list(dict.fromkeys(getattr(one, key) for one in configurations)) for key in SWEPT}
    limits = [limit for limit in values["max_tokens"] if limit is not None]
    return values | {"max_tokens": limits or [None]}


def command_line(experiment: Experiment) -> str:
    """Return the command that measures the grid, and one for a baseline that is not part of it."""
    baseline, *others = experiment.configurations
    lines = [sweep_command(experiment, others or [baseline])]
    if not has_baseline(experiment.configurations):
        lines += ["# the baseline, the settings the app had:", sweep_command(experiment, [baseline])]
    names = own_documents(experiment)
    if names and len(experiment.documents) > MOST_NAMED:
        lines.insert(
            0, f"# {DOCUMENTS} holds the {len(names):,} documents that were searched, and no others:"
        )
    return "\n".join(lines)


def has_baseline(configurations: Sequence[Configuration]) -> bool:
    """Whether the baseline, the first configuration, is part of the grid of the others."""
    baseline, *others = configurations
    return baseline in grid(**values_of(others or [baseline])).configurations


def sweep_command(experiment: Experiment, configurations: Sequence[Configuration]) -> str:
    """Return the command that measures all combinations of their values."""
    options = source_options(experiment)
    if list(experiment.questions) != questions_about(bundled_questions(), experiment.documents):
        options += ["--questions", QUESTIONS]
    unsaid = ("max_tokens", "prompts", "precision", "context")
    defaults = {key: [getattr(Configuration(), key)] for key in unsaid}
    for key, values in values_of(configurations).items():
        if values != defaults.get(key):  # the model's own limit is written as 0
            options += [f"--{key.replace('_', '-')}", ",".join(str(value or 0) for value in values)]
    return f"{PROGRAM} {shlex.join(['sweep', *options])}"


def source_options(experiment: Experiment) -> list[str]:
    """Return the options that name the documents."""
    own, packed = own_documents(experiment), collections(experiment)
    options = []
    if own:
        options += ["--corpus", DOCUMENTS]
    elif packed and len(packed) < len(experiment.documents):
        options += ["--corpus", os.path.relpath(BUNDLED_CORPUS, BUNDLED_CORPUS.parent.parent)]
    for name in packed:
        options += ["--beir", f"{COLLECTIONS}/{name}"]
    of_folder = set(experiment.documents) - set(packed)
    is_whole = of_folder in (set(), bundled_names())
    if not is_whole and len(experiment.documents) <= MOST_NAMED:
        for name in experiment.documents:
            options += ["--document", name]
    return options


def collections(experiment: Experiment) -> list[str]:
    """Return the names of packed collections; in other archives, each member is a document."""
    return [name for name in experiment.documents if PurePath(name).suffix.lower() == ".zip"]


def own_documents(experiment: Experiment) -> list[str]:
    """Return the documents that are files: none if all are bundled, else all, bundled ones included.

    The user has to copy the bundled ones into the same folder.
    """
    found = [name for name in experiment.documents if name not in collections(experiment)]
    return [] if set(found) <= bundled_names() else found
