import json
from dataclasses import replace

import numpy as np
import pytest

from engine.errors import InputError
from engine.evaluation.sweep_store import append, line_of
from pages.improve.settings.experiments import begin, known_experiments, remove
from tests.experiments import experiment
from ui.server_settings import OFF, WORKSPACES


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(WORKSPACES, str(tmp_path))
    return tmp_path / "experiments"


def begun(one, n_rows):
    """What a crash leaves of an experiment after so many rows."""
    file = begin(replace(one, rows=()))
    for row in one.rows[:n_rows] if file is not None else ():
        append(file, row)
    return replace(one, rows=one.rows[:n_rows])


@pytest.mark.parametrize("n_rows", [1, 3, 5])
def test_what_was_measured_before_a_crash_is_there_again(folder, n_rows):
    one = begun(experiment("a run \N{BUTTERFLY} / .."), n_rows)
    assert known_experiments() == {one.key: one}
    assert known_experiments(but=one.key) == {}  # it runs


def test_what_a_crash_or_a_second_session_left_counts_once(folder):
    one = begun(experiment(), 3)
    [path] = folder.iterdir()
    append(path, one.rows[1])
    assert known_experiments() == {one.key: one}
    begun(one, 3)
    path.write_bytes(path.read_bytes()[:-20])
    assert known_experiments() == {one.key: replace(one, rows=one.rows[:2])}
    begin(replace(one, rows=experiment().rows[:2]))  # goes on with it
    assert path.read_bytes().endswith(b"\n")
    append(begin(replace(one, rows=())), experiment().rows[2])
    assert known_experiments() == {}  # without the baseline there is nothing to compare with


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"{}\n", b"[1]\n", b'{"time": 1}\nnot a row\n'])
def test_what_is_no_experiment_is_left_out(folder, content):
    one = begun(experiment(), 2)
    (folder / "other.jsonl").write_bytes(content)
    assert known_experiments() == {one.key: one}


IMPOSSIBLE = (
    {"n_chunks": -1, "n_questions": 59, "seconds": np.inf, "index_bytes": np.nan, "search_seconds": 1e18},
    {"values": {"mrr": [2.0] * 60}, "metrics": {"mrr": np.nan}, "intervals": {"mrr": [0.6, 0.4]}},
    {"values": {"mrr": [0.0] * 60}, "configuration": {"k": 0}},
)


@pytest.mark.parametrize(("key", "value"), [pair for some in IMPOSSIBLE for pair in some.items()])
def test_a_row_that_nothing_measures_is_left_out_and_told(folder, key, value):
    one = begun(experiment(), 3)
    [path] = folder.iterdir()
    lines = path.read_bytes().splitlines(keepends=True)
    row = json.loads(lines[2])
    row[key] = row[key] | value if isinstance(value, dict) else value
    path.write_bytes(b"".join([*lines[:2], line_of(row), lines[3]]))
    [found] = known_experiments().values()
    assert found.rows == (one.rows[0], one.rows[2])
    assert found.title.endswith(", without 1 damaged row")


def test_the_newest_comes_first_and_a_deleted_one_is_gone(folder):
    old, new = (begun(experiment("x", time=f"2026-01-0{day}T03:04:05"), 2) for day in (1, 2))
    assert list(known_experiments()) == [new.key, old.key]
    remove(new)
    assert list(known_experiments()) == [old.key]
    assert len(list(folder.iterdir())) == 1


def test_without_a_folder_nothing_is_written_and_one_that_cannot_be_written_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(WORKSPACES, OFF)
    begun(experiment(), 2)
    assert known_experiments() == {}
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv(WORKSPACES, str(tmp_path / "file"))
    with pytest.raises(InputError, match=r"experiments cannot be kept in .*: make it writable"):
        begin(experiment())


def test_what_a_killed_writer_left_of_any_experiment_is_removed_when_one_begins(folder):
    begun(experiment("one"), 1)
    [path] = folder.iterdir()
    left = folder / f".{path.name}.ab12_xyz"
    left.write_bytes(b"half")
    begun(experiment("another"), 1)
    assert not left.exists()
    assert len(list(folder.iterdir())) == 2
