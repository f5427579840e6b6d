"""Files that an experiment goes on with: never a pipe or a device, and never half a file."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from engine.evaluation.sweep_store import resume
from pages.improve.settings.experiments import begin
from tests.experiments import experiment
from tests.hostile.child import in_child
from ui.server_settings import WORKSPACES


@pytest.mark.parametrize("path", ["/dev/full", "/dev/zero", "/dev/null", "pipe", "folder"])
def test_what_is_no_ordinary_file_is_refused(tmp_path, path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    outcome = in_child(resume, Path(tmp_path / path), "stamp", seconds=10, megabytes=500)
    assert outcome.error == "InputError"
    assert "it is no ordinary file" in outcome.message


def test_a_file_of_30_gigabytes_is_refused(tmp_path):
    with (tmp_path / "sweep").open("wb") as file:
        file.truncate(30 * 10**9)
    outcome = in_child(resume, tmp_path / "sweep", "stamp", megabytes=500)
    assert outcome.error == "InputError"
    assert "the most of a sweep" in outcome.message


def test_a_crash_while_an_experiment_goes_on_keeps_its_rows(tmp_path, monkeypatch):
    monkeypatch.setenv(WORKSPACES, str(tmp_path))
    one = experiment()
    path = begin(one)
    before = path.read_bytes()

    def crash(number):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", crash)  # a moment before all is on the disk
    with pytest.raises(KeyboardInterrupt):
        begin(replace(one, rows=one.rows[:1]))
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
