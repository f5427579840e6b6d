"""Files that an experiment goes on with: never a pipe or a device, and never half a file."""

import os
from pathlib import Path

import pytest

from engine.evaluation.sweep_store import resume
from tests.hostile.child import in_child


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
