"""Experiments on this machine's disk, written as they are measured: no crash and no reload loses them.

They are kept where workspaces are, in the folder that the owner of the machine has named for them. A file's
first line says what was measured, each line behind it is a row; a line that a crash cut off is passed over.
"""

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import streamlit as st

from engine.errors import InputError
from engine.evaluation.sweep_row import SweepRow
from engine.evaluation.sweep_store import append, line_of, row_line, to_row
from ui.corpus import WORKSPACES
from ui.experiment_runs import Experiment, content_of, drop, session_experiments, to_experiment

FOLDER = None if WORKSPACES is None else WORKSPACES / "experiments"
SUFFIX = ".jsonl"


def begin(experiment: Experiment) -> None:
    """Write what an experiment is of, and the rows that it has.

    Raises
    ------
    InputError
        It cannot be written.
    """
    if FOLDER is None:
        return
    head = line_of({"time": experiment.time, "name": experiment.name, **content_of(experiment)})
    try:
        FOLDER.mkdir(parents=True, exist_ok=True)
        file_of(experiment).write_bytes(head + b"".join(map(row_line, experiment.rows)))
    except OSError as error:
        raise InputError(
            f"experiments cannot be kept in {FOLDER} ({error.strerror}): make it writable, or start the app "
            "without GLASSBOX_WORKSPACES"
        ) from error


def add(experiment: Experiment, row: SweepRow) -> None:
    """Write one more row of an experiment that was begun."""
    if FOLDER is not None:
        append(file_of(experiment), row)


def known_experiments(but: str | None = None) -> dict[str, Experiment]:
    """Return the experiments of the session and of the disk by their keys, the newest first.

    Without the one of the key ``but``, which is running.
    """
    on_disk = {one.key: one for one in kept_experiments(but) if one.rows}
    found = sorted((on_disk | session_experiments()).values(), key=lambda one: one.time, reverse=True)
    return {one.key: one for one in found if one.key != but}


def remove(experiment: Experiment) -> None:
    """Delete an experiment, from the session and from the disk."""
    drop(experiment)
    if FOLDER is not None:
        file_of(experiment).unlink(missing_ok=True)


def kept_experiments(but: str | None) -> list[Experiment]:
    """Return the experiments on disk; what is no file of one is left out."""
    if FOLDER is None or not FOLDER.is_dir():
        return []
    found = []
    for path in sorted(FOLDER.glob(f"*{SUFFIX}")):
        if but is not None and path == FOLDER / file_name(but):
            continue  # it grows at the moment
        try:
            found.append(read(path, path.stat().st_mtime_ns))
        except (OSError, AttributeError, LookupError, TypeError, ValueError):
            continue
    return found


@st.cache_resource(max_entries=32, show_spinner="Opening the experiments of before…")
def read(path: Path, changed: int) -> Experiment:
    """Read a file; of a cell that was measured twice the later row counts."""
    content = path.read_bytes()
    head, *lines = content[: content.rfind(b"\n")].split(b"\n")
    about = json.loads(head)
    begun = to_experiment(about["time"], about["name"], about)
    rows = {row.cell: row for row in (to_row(json.loads(line)) for line in lines)}
    if begun.cells[0] not in rows:
        return begun  # without the baseline there is nothing to compare with
    return replace(begun, rows=tuple(rows[cell] for cell in begun.cells if cell in rows))


def file_of(experiment: Experiment) -> Path:
    """Where an experiment is kept."""
    assert FOLDER is not None  # asked by whoever calls
    return FOLDER / file_name(experiment.key)


def file_name(key: str) -> str:
    """Name the file of an experiment by its key, which may hold any character."""
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:24] + SUFFIX
