"""The lines that measure an experiment again, in Python and on the command line."""

import shlex
from collections.abc import Sequence

from engine.evaluation.grid import Cell
from ui.corpus import bundled_names
from ui.experiment_runs import Experiment
from ui.experiment_words import AXES
from ui.question_sets import bundled_questions

# The names that a setting has in `grid` and on the command line.
PLURALS = {
    "splitter": "splitters",
    "chunk_tokens": "chunk_tokens",
    "overlap": "overlaps",
    "model": "models",
    "pooling": "poolings",
    "retriever": "retrievers",
    "k": "ks",
    "max_tokens": "max_tokens",
}
DOCUMENTS, QUESTIONS = "PATH/TO/DOCUMENTS", "questions.jsonl"


def values_of(cells: Sequence[Cell]) -> dict[str, list[object]]:
    """Return the values that cells have of each setting, in the order in which they come."""
    return {axis: list(dict.fromkeys(getattr(cell, axis) for cell in cells)) for axis in PLURALS}


def command_line(experiment: Experiment) -> str:
    """Return the command that measures the grid; the baseline is a command of its own where it is no part."""
    baseline, *others = experiment.cells
    cells = others or [baseline]
    lines = [sweep_command(experiment, cells)]
    values = values_of(cells)
    if any(getattr(baseline, axis) not in values[axis] for axis in AXES):
        lines += ["# the baseline, the settings the app had:", sweep_command(experiment, [baseline])]
    return "\n".join(lines)


def sweep_command(experiment: Experiment, cells: Sequence[Cell]) -> str:
    """Return the command that measures all combinations of the values that cells have."""
    options = [] if is_bundled(experiment) else ["--corpus", DOCUMENTS]
    options += [] if asks_bundled(experiment) else ["--questions", QUESTIONS]
    for axis, values in values_of(cells).items():
        given = [str(value) for value in values if value is not None]
        if given:
            options += [f"--{axis.replace('_', '-')}", ",".join(given)]
    return shlex.join(["python", "-m", "engine", "sweep", *options])


def python_lines(experiment: Experiment) -> str:
    """Return a script that measures the same cells."""
    baseline, *others = experiment.cells
    values = values_of(others or [baseline])
    models = list(dict.fromkeys(cell.model for cell in experiment.cells))
    axes = "\n".join(f"    {PLURALS[axis]}={found!r}," for axis, found in values.items())
    corpus = "BUNDLED_CORPUS" if is_bundled(experiment) else f'Path("{DOCUMENTS}")'
    questions = "" if asks_bundled(experiment) else f'Path("{QUESTIONS}")'
    loaded = ", ".join(f"{name!r}: Encoder.load({name!r})" for name in models)
    chosen = sorted(experiment.documents)
    return f"""from pathlib import Path

from engine import Encoder
from engine.documents.loaders import BUNDLED_CORPUS, load_corpus
from engine.evaluation.grid import Cell, fitting, grid
from engine.evaluation.questions import load_questions
from engine.evaluation.sweep import sweep

names = {chosen!r}
documents = [document for document in load_corpus({corpus}) if document.name in names]
questions = load_questions({questions})
models = {{{loaded}}}
baseline = {baseline!r}
cells = fitting(grid(
{axes}
), models).cells
for row in sweep(documents, questions, [baseline, *cells], models):
    print(row.cell, row.metrics["mrr"], row.intervals["mrr"])
"""


def is_bundled(experiment: Experiment) -> bool:
    """Whether the documents are those that come with the app, and no others."""
    return set(experiment.documents) <= bundled_names()


def asks_bundled(experiment: Experiment) -> bool:
    """Whether the questions are those that come with the app."""
    return list(experiment.questions) == bundled_questions()
