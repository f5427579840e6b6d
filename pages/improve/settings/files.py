"""Experiments on disk, written row by row, so that no crash and no reload loses them.

They are kept beside the session's work, where that is kept. A file's first line describes the
experiment, each further line is a row; a line that a crash cut off is ignored.
"""

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import streamlit as st

from engine.atomic_write import remove_abandoned, write_atomically
from engine.errors import InputError
from engine.evaluation.sweep_store import line_of, row_line, to_row
from pages.improve.settings.runs import Experiment, content_of, drop, session_experiments, to_experiment
from ui.data_folder import EXPERIMENTS, kept_folder
from ui.server_settings import WORKSPACES

SUFFIX = ".jsonl"


def experiments_folder() -> Path | None:
    """Return the folder of the experiments, None where none are kept."""
    folder = kept_folder()
    return None if folder is None else folder / EXPERIMENTS


def begin(experiment: Experiment) -> Path | None:
    """Write the description of an experiment and its rows; return the file, if there may be one."""
    if (folder := experiments_folder()) is None:
        return None
    head = line_of({"time": experiment.time, "name": experiment.name, **content_of(experiment)})
    try:
        folder.mkdir(parents=True, exist_ok=True)
        remove_abandoned(folder, f"*{SUFFIX}")
        file = folder / file_name(experiment.key)
        # Written beside and renamed: a crash keeps the rows of the run that is resumed.
        write_atomically(file, head + b"".join(map(row_line, experiment.rows)))
    except OSError as error:
        raise InputError(
            f"experiments cannot be kept in {folder} ({error.strerror}): make it writable, or start the app "
            f"with {WORKSPACES}=off"
        ) from error
    return file


def known_experiments(but: str | None = None) -> dict[str, Experiment]:
    """Return the experiments of the session and of the disk by their keys, the newest first.

    ``but`` is the key of the running one, which is left out.
    """
    on_disk = {one.key: one for one in kept_experiments(but) if one.rows}
    found = sorted((on_disk | session_experiments()).values(), key=lambda one: one.time, reverse=True)
    return {one.key: one for one in found if one.key != but}


def remove(experiment: Experiment) -> None:
    """Delete an experiment, from the session and from the disk."""
    drop(experiment)
    if (folder := experiments_folder()) is not None:
        (folder / file_name(experiment.key)).unlink(missing_ok=True)


def kept_experiments(but: str | None) -> list[Experiment]:
    """Return the experiments on disk; unreadable files are left out."""
    if (folder := experiments_folder()) is None or not folder.is_dir():
        return []
    found = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        if but is not None and path == folder / file_name(but):
            continue  # it is being written
        try:
            found.append(read(path, path.stat().st_mtime_ns))
        except (OSError, AttributeError, LookupError, TypeError, ValueError):
            continue
    return found


@st.cache_resource(max_entries=32, show_spinner="Opening earlier experiments…")
def read(path: Path, changed: int) -> Experiment:
    """Read a file; where a cell was measured twice, the later row counts."""
    content = path.read_bytes()
    head, *lines = content[: content.rfind(b"\n")].split(b"\n")
    about = json.loads(head)
    begun = to_experiment(about["time"], about["name"], about)
    rows = {row.cell: row for row in (to_row(json.loads(line)) for line in lines)}
    if begun.cells[0] not in rows:
        return begun  # without the baseline there is nothing to compare with
    return replace(begun, rows=tuple(rows[cell] for cell in begun.cells if cell in rows))


def file_name(key: str) -> str:
    """Return the file name of an experiment: a hash, since its key may contain any character."""
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:24] + SUFFIX
