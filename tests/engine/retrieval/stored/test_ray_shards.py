"""Shards that workers of Ray write: two of them on this machine, one that is killed, a run that goes on."""

import errno
import os
import signal
import socket
import sys
import time
from dataclasses import replace
from threading import Thread

import numpy as np
import pytest

from engine.documents.document import Chunk
from engine.documents.splitters import Splitting
from engine.errors import DocumentError, InputError
from engine.kernels.primitives import prepare_compiled
from engine.models.encoder import Encoder
from engine.retrieval.embedding_model import embedding_spec
from engine.retrieval.stored import ray_shards
from engine.retrieval.stored.index_folder import SHARDS, Build, IndexSettings, open_index
from engine.retrieval.stored.index_rows import IndexedFile
from engine.retrieval.stored.index_update import index_by_cluster, update_index
from engine.retrieval.stored.ray_shards import LOCAL, Cluster, ShardWriter, row_of, shards_of
from tests.text_files import write_files

SETTINGS = IndexSettings("all-MiniLM-L6-v2", Splitting("fixed", 32, 0))
CLUSTER = Cluster(LOCAL, Encoder.load, 2)
SENTENCES = ("A hive has one queen.", "The keeper sold the honey.", "The tower was finished in 1891.")


@pytest.fixture
def corpus(tmp_path):
    texts = {
        f"{number}.txt": " ".join(f"{SENTENCES[(number + n) % 3]} Note {n}." for n in range(40 + number))
        for number in range(6)
    }
    return write_files(tmp_path / "corpus", texts)


@pytest.fixture(scope="module")
def _ray():
    """Ray on two cores of this machine, started once."""
    pytest.importorskip("ray.data", reason="pip install -r requirements-cluster.txt")
    with ray_shards.ray_cluster(CLUSTER):
        yield


@pytest.fixture
def _a_file_a_shard(monkeypatch):
    monkeypatch.setattr(ray_shards, "SHARD_BYTES", 1)


def by_ray(corpus, folder, encoder, settings=SETTINGS, **options):
    return update_index(corpus, folder, encoder, settings, CLUSTER, **options)


def assert_same(folder, other):
    index, expected = open_index(folder).index, open_index(other).index
    assert index.chunks == expected.chunks
    assert index.spec == expected.spec
    np.testing.assert_array_equal(index.vectors, expected.vectors)


def kill_one(folder, killed):
    """Kill the first worker that has begun a shard."""
    deadline = time.monotonic() + 60
    while not killed and time.monotonic() < deadline:
        for path in (folder / SHARDS).glob("*.attempts"):
            lines = path.read_text().split()
            if lines and not path.with_suffix(".npz").exists():
                os.kill(int(lines[0]), signal.SIGKILL)
                killed.append(path)
                return
        time.sleep(0.01)


@pytest.mark.nightly
@pytest.mark.usefixtures("_ray", "_a_file_a_shard")
def test_two_workers_of_which_one_is_killed_make_the_index_of_one_process(corpus, folder, encoder, tmp_path):
    prepare_compiled().join()
    shown, killed = [], []
    killer = Thread(target=kill_one, args=(folder, killed))
    killer.start()
    made = by_ray(corpus, folder, encoder, on_progress=lambda *counts: shown.append(counts))
    killer.join()
    assert killed
    alone = update_index(corpus, tmp_path / "alone", encoder, SETTINGS)
    texts = alone.stored.index.texts
    assert (made.new, made.embedded_chunks) == (6, len(texts))  # equal texts lie in several shards
    assert alone.embedded_chunks == len(set(texts))
    assert shown == [(n, 6) for n in range(1, 7)]
    assert_same(folder, tmp_path / "alone")
    assert not (folder / SHARDS).exists()


@pytest.mark.nightly
@pytest.mark.usefixtures("_ray", "_a_file_a_shard")
def test_only_what_changed_is_embedded_and_a_stopped_run_goes_on(corpus, folder, encoder, tmp_path):
    prepare_compiled().join()
    update_index(corpus, folder, encoder, SETTINGS)
    changed = {"2.txt": "Knead the dough."}
    write_files(corpus, changed | {name: f"Let it rest: {name}." for name in ("new.txt", "other.txt")})
    (corpus / "4.txt").unlink()
    before = [document.name for document in open_index(folder).documents]

    def stop(done, total):
        assert total == 3
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        by_ray(corpus, folder, encoder, on_progress=stop)
    assert [document.name for document in open_index(folder).documents] == before
    n_done = len(list((folder / SHARDS).glob("*.npz")))
    assert n_done >= 1
    lines = []
    made = by_ray(corpus, folder, encoder, say=lines.append)
    assert f"{n_done} of 3 shards were embedded before" in lines
    assert (made.new, made.changed, made.deleted, made.embedded_chunks) == (2, 1, 1, 3 - n_done)
    update_index(corpus, tmp_path / "alone", encoder, SETTINGS)
    assert_same(folder, tmp_path / "alone")
    assert by_ray(corpus, folder, encoder).unchanged == 7


@pytest.fixture
def writer(corpus, folder, encoder, monkeypatch):
    """A worker in this process, its shard's row, and the file that it writes."""
    monkeypatch.setattr(ray_shards, "limit_cores", lambda n: None)
    (folder / SHARDS).mkdir(parents=True)
    digest = ray_shards.sha256((corpus / "0.txt").read_bytes()).hexdigest()
    spec = embedding_spec(encoder, SETTINGS.pooling, None)
    paths = {"0.txt": corpus / "0.txt"}
    [shard] = shards_of([IndexedFile("0.txt", digest)], paths, spec, SETTINGS)
    batch = {name: [value] for name, value in row_of(shard, paths).items()}
    return ShardWriter(lambda: encoder, spec, SETTINGS, folder), batch, shard.path(folder)


def error_of(worker, row):
    [error] = worker(row)["error"]
    assert "\n" not in error
    return error


def test_a_shard_is_written_whole_and_read_again(writer):
    worker, row, path = writer
    assert error_of(worker, row) == ""
    [file] = ray_shards.shard_files(path)
    assert (file.name, len(file.chunks)) == ("0.txt", len(ray_shards.shard_vectors(path)))
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(DocumentError, match=r"was damaged .*, and is removed: start again"):
        ray_shards.shard_files(path)
    assert not path.exists()


def test_a_file_that_changed_since_is_told(writer, corpus):
    worker, row, path = writer
    (corpus / "0.txt").write_text("Others words.")
    assert error_of(worker, row).endswith("0.txt changed while the corpus was read: start again")
    assert not path.exists()


def test_a_disk_that_is_too_small_for_all_vectors_is_told(folder, encoder, monkeypatch):
    file = IndexedFile("a.txt", "0" * 64, chunks=(Chunk("a.txt", 0, 4, "Bees", 3),))
    folder.mkdir()

    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(DocumentError, match="No space left on device"):
        index_by_cluster([file], {}, None, Build(folder, encoder, SETTINGS), CLUSTER)
    assert [path.name for path in folder.iterdir()] == [SHARDS]


def test_a_worker_with_another_model_is_told(writer, encoder):
    worker, row, path = writer
    worker._load = lambda: replace(encoder, compiled=not encoder.compiled)
    assert "install the same model on all machines" in error_of(worker, row)
    assert not path.exists()


def test_a_shard_that_ends_its_workers_is_given_up(writer):
    worker, row, _ = writer
    for _ in range(ray_shards.ATTEMPTS):
        assert error_of(worker, row) == ""
    assert error_of(worker, row).startswith("3 workers ended while they embedded 0.txt: give them more")


def test_a_head_that_is_not_there_is_one_line(corpus, folder, encoder):
    pytest.importorskip("ray.data")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    for named in (address, f"ray://{address}"):
        with pytest.raises(DocumentError, match=rf"Ray \({named}\) failed \(.*refused\): see that") as error:
            update_index(corpus, folder, encoder, SETTINGS, replace(CLUSTER, address=named))
        assert "\n" not in str(error.value)
    assert {path.name for path in folder.iterdir()} <= {".lock", SHARDS}


def test_what_cannot_be_done_is_told(corpus, folder, encoder, monkeypatch):
    with pytest.raises(InputError, match=r"pooling idf weighs words by all chunks.*leave out --ray"):
        by_ray(corpus, folder, encoder, replace(SETTINGS, pooling="idf"))
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"not installed: pip install -r requirements-cluster\.txt"):
        by_ray(corpus, folder, encoder)
