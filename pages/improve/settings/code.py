"""The command line and the Python script that measure an experiment again."""

import os
import shlex
from collections.abc import Sequence
from pathlib import PurePath

from engine.documents.loaders import BUNDLED_CORPUS
from engine.evaluation.embedding_server import SERVER_KEY, is_server
from engine.evaluation.grid import grid
from engine.evaluation.questions import questions_about
from engine.settings import SWEPT, Configuration
from pages.improve.settings.runs import Experiment
from ui.documents import bundled_names
from ui.questions.sets import bundled_questions

DOCUMENTS, COLLECTIONS, QUESTIONS = "PATH/TO/DOCUMENTS", "PATH/TO", "questions.jsonl"
MOST_NAMED = 50  # documents; a command that names more is too long to copy


def values_of(cells: Sequence[Configuration]) -> dict[str, list[object]]:
    """Return the distinct values of each setting, in the order of the cells.

    No limit beside others is that of a model which takes none, and `fitting` gives it that again.
    """
    values = {axis: list(dict.fromkeys(getattr(cell, axis) for cell in cells)) for axis in SWEPT}
    limits = [limit for limit in values["max_tokens"] if limit is not None]
    return values | {"max_tokens": limits or [None]}


def command_line(experiment: Experiment) -> str:
    """Return the command that measures the grid, and one for a baseline that is not part of it."""
    baseline, *others = experiment.cells
    cells = others or [baseline]
    lines = [sweep_command(experiment, cells)]
    if not has_baseline(experiment.cells):
        lines += ["# the baseline, the settings the app had:", sweep_command(experiment, [baseline])]
    names = own_documents(experiment)
    if names and len(experiment.documents) > MOST_NAMED:
        lines.insert(
            0, f"# {DOCUMENTS} holds the {len(names):,} documents that were searched, and no others:"
        )
    return "\n".join(lines)


def has_baseline(cells: Sequence[Configuration]) -> bool:
    """Whether the baseline, the first cell, is part of the grid of the others."""
    baseline, *others = cells
    return baseline in grid(**values_of(others or [baseline])).cells


def sweep_command(experiment: Experiment, cells: Sequence[Configuration]) -> str:
    """Return the command that measures all combinations of the cells' values."""
    options = source_options(experiment)
    options += [] if asks_bundled(experiment) else ["--questions", QUESTIONS]
    for axis, values in values_of(cells).items():
        # The default of max_tokens is written as 0.
        if values != [None] and not (
            axis in ("prompts", "precision") and values == [getattr(Configuration(), axis)]
        ):
            options += [f"--{axis.replace('_', '-')}", ",".join(str(value or 0) for value in values)]
    return shlex.join(["python", "-m", "engine", "sweep", *options])


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


def python_lines(experiment: Experiment) -> str:
    """Return a script that measures the same cells."""
    baseline, *others = experiment.cells
    models = list(dict.fromkeys(cell.model for cell in experiment.cells))
    axes = "\n".join(f"    {key}={found!r}," for key, found in values_of(others or [baseline]).items())
    questions = "" if asks_bundled(experiment) else f'Path("{QUESTIONS}")'
    key, imports = "", ""
    if any(map(is_server, models)):
        key, imports = f', api_key=os.environ.get("{SERVER_KEY}", "")', "import os\n"
    return f"""{imports}from pathlib import Path

from engine.documents.loaders import BUNDLED_CORPUS, load_corpus
from engine.evaluation.checks import measurable
from engine.evaluation.grid import fitting, grid
from engine.evaluation.library_model import load_model
from engine.evaluation.question_files import parse_beir_zip
from engine.evaluation.questions import load_questions
from engine.evaluation.sweep import sweep
from engine.settings import Configuration

names = {sorted(experiment.documents)!r}
found = {documents_expression(experiment)}
documents = [document for document in found if document.name in names]
questions = measurable(load_questions({questions}), documents)
models = {{name: load_model(name{key}) for name in {models!r}}}
baseline = {baseline!r}
cells = fitting(grid(
{axes}
), models).cells
for row in sweep(documents, questions, [baseline, *cells], models):
    print(row.cell, row.metrics["mrr"], row.intervals["mrr"])
"""


def documents_expression(experiment: Experiment) -> str:
    """Return the expression that reads the documents: files of a folder, and packed collections."""
    packed = collections(experiment)
    parts = [
        f"parse_beir_zip({name!r}, Path({f'{COLLECTIONS}/{name}'!r}).read_bytes()).document"
        for name in packed
    ]
    if len(packed) < len(experiment.documents):
        folder = f'Path("{DOCUMENTS}")' if own_documents(experiment) else "BUNDLED_CORPUS"
        parts.insert(0, f"*load_corpus({folder})")
    return f"[{', '.join(parts)}]"


def collections(experiment: Experiment) -> list[str]:
    """Return the names of packed collections; in other archives, each member is a document."""
    return [name for name in experiment.documents if PurePath(name).suffix.lower() == ".zip"]


def own_documents(experiment: Experiment) -> list[str]:
    """Return the documents that are files: none if all are bundled, else all, bundled ones included.

    The user has to copy the bundled ones into the same folder.
    """
    found = [name for name in experiment.documents if name not in collections(experiment)]
    return [] if set(found) <= bundled_names() else found


def asks_bundled(experiment: Experiment) -> bool:
    """Whether the questions are the bundled ones about the documents."""
    return list(experiment.questions) == questions_about(bundled_questions(), experiment.documents)
