"""What a killed writer of a whole file leaves is removed by the next one, and nothing of a living one."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from engine import atomic_write as module
from engine.atomic_write import atomic_file, remove_abandoned, write_atomically

WRITER = """
import sys
from pathlib import Path
from engine.atomic_write import atomic_file
with atomic_file(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    sys.stdin.read()
"""
needs_locks = pytest.mark.skipif(not module.CAN_LOCK, reason="no locks")


@pytest.fixture
def writer(tmp_path):
    """Another process in the middle of writing."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path / "a")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b"writing\n"
    yield process
    process.kill()
    process.communicate()


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@needs_locks
def test_what_a_killed_writer_left_is_removed_by_the_next_one(tmp_path, writer):
    writer.kill()
    writer.wait()
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"half"]
    write_atomically(tmp_path / "b", b"of another file")
    assert len(content(tmp_path)) == 2
    write_atomically(tmp_path / "a", b"whole")
    assert content(tmp_path) == {"a": b"whole", "b": b"of another file"}


@needs_locks
def test_a_writer_at_work_keeps_its_file_and_the_last_one_counts(tmp_path, writer):
    write_atomically(tmp_path / "a", b"whole")
    assert sorted(content(tmp_path).values()) == [b"half", b"whole"]
    writer.communicate(b"")
    assert content(tmp_path) == {"a": b"half"}


@needs_locks
def test_writers_at_once_never_take_each_others_file_for_an_abandoned_one(tmp_path):
    path = tmp_path / "a"

    def write(number):
        for _ in range(100):
            write_atomically(path, bytes([number]) * 1000)

    with ThreadPoolExecutor() as pool:
        list(pool.map(write, range(4)))  # which raises what any of them does
    assert set(content(tmp_path)) == {"a"}
    assert len(set(path.read_bytes())) == 1


def test_other_hidden_files_are_left_alone(tmp_path):
    for name in (".a.jsonl.swp", ".a.jsonl", ".b.jsonl.12345678", ".a.jsonl.ABCDEFGH", "a.jsonl.abcdefgh"):
        (tmp_path / name).touch()
    before = content(tmp_path)
    remove_abandoned(tmp_path, "a.jsonl")
    assert content(tmp_path) == before


def test_an_error_leaves_the_old_file_alone(tmp_path):
    write_atomically(tmp_path / "a", b"old")

    def fail():
        with atomic_file(tmp_path / "a") as file:
            file.write(b"new")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert content(tmp_path) == {"a": b"old"}
