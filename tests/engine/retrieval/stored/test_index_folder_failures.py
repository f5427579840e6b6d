"""Crashes, full disks, damage, and several programs at one folder."""

import errno
import os
import shutil
from pathlib import Path
from threading import Thread

import pytest

from engine import atomic_write
from engine.documents.splitters import Splitting
from engine.errors import DocumentError
from engine.retrieval import index_choice
from engine.retrieval.stored import index_folder as folders
from engine.retrieval.stored.index_update import update_index
from tests.indexes import names_in, sign
from tests.text_files import write_files

SETTINGS = folders.IndexSettings("the model", Splitting(chunk_tokens=32), pooling="idf", index_kind="hnsw")
OLD, NEW = "A hive has one queen.", "The tower was finished in 1891. The keeper sold the honey."


class KilledError(BaseException):
    """The process is gone: nothing that it would have done after this happens."""


class FileSystem:
    """Counts what is done to files, and fails at the n-th operation: of a full disk only that one."""

    def __init__(self, monkeypatch, n, dies):
        self.left, self.dies = n, dies
        for owner, name in (
            (atomic_write, "NamedTemporaryFile"),
            (Path, "mkdir"),
            (os, "fsync"),
            (Path, "replace"),
            (shutil, "rmtree"),
        ):
            monkeypatch.setattr(owner, name, self.failing(getattr(owner, name)))

    def failing(self, operation):
        def counted(*arguments, **settings):
            self.left -= 1
            if self.left < 0 and self.dies:
                raise KilledError
            if self.left == -1:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return operation(*arguments, **settings)

        return counted


def update(corpus, folder, encoder, rebuild=False):
    return update_index(corpus, folder, encoder, SETTINGS, rebuild=rebuild)


@pytest.fixture(autouse=True)
def _any_size_has_an_index(monkeypatch):
    """So that the files of a folder are all there."""
    monkeypatch.setattr(index_choice, "FEWEST_CHUNKS", 0)


@pytest.fixture
def corpus(tmp_path):
    return write_files(tmp_path / "corpus", {"a.txt": OLD})


@pytest.fixture
def folder(corpus, encoder, tmp_path):
    update(corpus, tmp_path / "index", encoder)
    return tmp_path / "index"


@pytest.fixture
def newer(corpus, encoder, tmp_path, folder):
    """The content of another state, which is not in the folder."""
    (corpus / "a.txt").write_text(NEW)
    return update(corpus, tmp_path / "other", encoder).stored


def text_in(folder):
    [document] = folders.open_index(folder).documents
    return document.text


@pytest.mark.parametrize("dies", [False, True], ids=["full disk", "killed"])
def test_a_failure_at_any_operation_leaves_the_old_state_or_the_new_one(folder, newer, dies, monkeypatch):
    older, states, reasons = folders.open_index(folder), set(), set()
    for n in range(200):
        with monkeypatch.context() as patched:
            system = FileSystem(patched, n, dies)
            try:
                with folders.locked(folder):
                    folders.save_index(folder, newer)
            except (DocumentError, KilledError) as error:
                reasons.add(str(error))
        states.add(text := text_in(folder))
        assert text in (OLD, NEW)
        if not dies:  # one state may not have been removed
            assert len(names_in(folder) - {folders.read_manifest(folder)["state"]}) <= 1
        if system.left >= 0:
            break
        with folders.locked(folder):  # the next writer, after which nothing is left of the one that failed
            folders.save_index(folder, older)
        assert names_in(folder) == {folders.read_manifest(folder)["state"]}
    assert n > 12
    assert states == {OLD, NEW}
    [reason] = reasons
    assert reason == "" if dies else "(No space left on device); an index that was whole before" in reason


def test_a_second_writer_is_told_at_once(folder, corpus, encoder):
    errors = []

    def second():
        try:
            update(corpus, folder, encoder, rebuild=True)
        except DocumentError as error:
            errors.append(str(error))

    with folders.locked(folder):
        thread = Thread(target=second)
        thread.start()
        thread.join()
    [error] = errors
    assert error.startswith(f"{folder} is being written by another program: wait until it is done")
    assert text_in(folder) == OLD


@pytest.mark.parametrize(
    ("part", "how"),
    [
        ("files.jsonl", "changed"),
        ("vectors.npy", "cut"),
        ("ann.npy", "missing"),
        *((folders.MANIFEST, how) for how in ("changed", "cut", "missing")),
    ],
)
def test_a_damaged_file_is_refused_with_a_way_out(folder, corpus, encoder, part, how):
    state = "" if part == folders.MANIFEST else folders.read_manifest(folder)["state"]
    path = folder / state / part
    content = path.read_bytes()
    if how == "missing":
        path.unlink()
    elif how == "cut":
        path.write_bytes(content[:-9])
    else:
        changed = bytearray(content)
        changed[len(content) // 2] ^= 1
        path.write_bytes(changed)
    with pytest.raises(DocumentError, match=r"holds no index|is damaged \(.+\): index the corpus again"):
        folders.open_index(folder)
    if (part, how) != (folders.MANIFEST, "missing"):
        with pytest.raises(DocumentError, match="--rebuild"):
            update(corpus, folder, encoder)
    update(corpus, folder, encoder, rebuild=True)
    assert text_in(folder) == OLD


def test_a_folder_of_an_earlier_version_is_indexed_anew(folder, corpus, encoder):
    manifest = folders.read_manifest(folder) | {"version": 2, "parts": {}}
    sign(folder, manifest)
    (folder / "vectors-0123abcd.npy").write_bytes(b"of version 2")
    with pytest.raises(DocumentError, match="written by an older version"):
        update(corpus, folder, encoder)
    update(corpus, folder, encoder, rebuild=True)
    assert text_in(folder) == OLD
    assert names_in(folder) == {folders.read_manifest(folder)["state"]}


@pytest.mark.parametrize("content", ["", "[]", "[" * 100_000])
def test_a_manifest_that_is_no_object_is_refused(folder, content):
    (folder / folders.MANIFEST).write_text(content)
    with pytest.raises(DocumentError, match="damaged"):
        folders.open_index(folder)


def test_a_folder_of_other_files_is_left_alone(corpus, encoder, tmp_path):
    write_files(tmp_path / "photos", {"cat-01234567.json": "cat"})
    with pytest.raises(DocumentError, match=r"holds cat-01234567\.json and no index: give a new folder"):
        update(corpus, tmp_path / "photos", encoder)
    assert [path.name for path in (tmp_path / "photos").iterdir()] == ["cat-01234567.json"]


def test_a_first_run_that_fails_leaves_no_folder(encoder, tmp_path):
    corpus, out = write_files(tmp_path / "corpus", {"a.pdf": "no PDF"}), tmp_path / "index"
    with pytest.raises(DocumentError, match="no PDF"):
        update_index(corpus, out, encoder, SETTINGS)
    assert not out.exists()


def test_a_file_in_the_place_of_the_folder_is_refused(corpus, encoder, tmp_path):
    (tmp_path / "index").write_text("no folder")
    with pytest.raises(DocumentError, match="cannot be read or written"):
        update(corpus, tmp_path / "index", encoder)
