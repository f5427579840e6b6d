"""Vectors of an index in Milvus: milvus-lite in this process, and as a server in another."""

import csv
import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import asdict, replace
from threading import Timer

import numpy as np
import pytest

from engine.documents.loaders import BUNDLED_CORPUS, BUNDLED_INDEX
from engine.documents.splitters import Splitting
from engine.errors import DocumentError, InputError
from engine.generation.passage_search import retrieve
from engine.generation.settings import SearchSettings
from engine.retrieval.embedding_model import encode_by
from engine.retrieval.relevance import null_scores_by
from engine.retrieval.stored import milvus_store
from engine.retrieval.stored.index_folder import IndexSettings, open_index
from engine.retrieval.stored.index_update import update_index
from engine.retrieval.stored.milvus_store import MilvusVectors, client_of, milvus_uri, new_collection, release
from engine.storage.workspace import import_workspace

pytest.importorskip("pymilvus", reason="pip install -r requirements-cluster.txt")
pytest.importorskip("milvus_lite")

SETTINGS = IndexSettings("the model", Splitting("fixed", 16, 0))


def at(store, index_kind="auto"):
    return replace(SETTINGS, store=store, index_kind=index_kind)


OLD, NEW = "A hive has one queen.", "The tower was finished in 1891. The keeper sold the honey."


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "corpus").mkdir()
    for name, text in (("a.txt", OLD), ("b.txt", NEW)):
        (tmp_path / "corpus" / name).write_text(text)
        os.utime(tmp_path / "corpus" / name, (1e9, 1e9))
    return tmp_path / "corpus"


@pytest.fixture
def uri(tmp_path):
    path = str(tmp_path / "vectors.db")
    yield path
    release(path)


@pytest.fixture
def stored(corpus, folder, encoder, uri):
    """The folder of an index whose vectors are in the file of ``uri``."""
    update_index(corpus, folder, encoder, at(f"milvus:{uri}"))
    return folder


def collections(uri):
    with client_of(uri) as client:
        found = client.list_collections()
    release(uri)
    return found


def test_milvus_finds_what_faiss_flat_finds_in_the_bundled_corpus(encoder, uri):
    index = import_workspace(BUNDLED_INDEX.name, BUNDLED_INDEX.read_bytes()).index
    milvus = new_collection(uri, index.vectors)
    milvus.write(index.vectors)
    with (BUNDLED_CORPUS.parent / "questions.csv").open(encoding="utf-8", newline="") as file:
        questions = [row["question"] for row in csv.DictReader(file)][:30]
    vectors = encode_by(index.spec, "query", questions, encoder)
    for k in (1, 10, len(index.chunks)):
        scores, rows = milvus.nearest(vectors, k)
        expected_scores, expected = index.nearest(vectors, k)
        np.testing.assert_allclose(scores, expected_scores, atol=1e-6)
        # Of two chunks with one score, to rounding, either may come first.
        is_tie = np.abs(np.diff(expected_scores, append=-2)) < 1e-6
        assert (rows == expected)[~(is_tie | np.roll(is_tie, 1, axis=1))].all()
    some = [5, 0, 5, len(index.chunks) - 1]
    np.testing.assert_array_equal(milvus.fetch(some), index.vectors[some])
    np.testing.assert_array_equal(milvus.fetch_all(), index.vectors)


def test_search_finds_the_same_by_either_place_of_the_vectors(corpus, tmp_path, stored, encoder):
    update_index(corpus, tmp_path / "flat", encoder, SETTINGS)
    assert not list(stored.glob("*/vectors.npy"))
    for retriever in ("dense", "weighted"):
        found = []
        for path in (tmp_path / "flat", stored):
            opened = open_index(path)
            scores = null_scores_by(opened.index, opened.unrelated)
            search = SearchSettings(3, retriever=retriever)
            found.append(retrieve("Who sold the honey?", opened.index, encoder, search, scores))
        flat, milvus = found
        assert [hit.chunk for hit in milvus.hits] == [hit.chunk for hit in flat.hits]
        scores = [[hit.score for hit in each.hits] for each in found]
        np.testing.assert_allclose(*scores, atol=1e-6)
        np.testing.assert_allclose(milvus.null_scores.bests, flat.null_scores.bests, atol=1e-6)
        np.testing.assert_allclose(milvus.null_scores.pairs, flat.null_scores.pairs, atol=1e-6)


def test_vectors_move_between_milvus_and_the_folder_without_being_embedded(corpus, stored, encoder, uri):
    vectors = open_index(stored).index.vectors
    back = update_index(corpus, stored, encoder, at("folder"))
    assert (back.embedded_chunks, back.stored.settings.uri, collections(uri)) == (0, "", [])
    np.testing.assert_array_equal(open_index(stored).index.vectors, vectors)
    there = update_index(corpus, stored, encoder, at(f"milvus:{uri}"))
    assert (there.embedded_chunks, len(collections(uri))) == (0, 1)
    np.testing.assert_array_equal(open_index(stored).index.vectors, vectors)


class KilledError(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("error", [KilledError(), DocumentError("the server is gone")])
def test_a_write_that_ends_halfway_leaves_the_old_state_and_the_next_one_cleans_up(
    corpus, stored, encoder, uri, monkeypatch, error
):
    [before] = collections(uri)
    (corpus / "a.txt").write_text("Knead the dough.")
    write = MilvusVectors.write

    def ending(self, vectors):
        write(self, vectors)
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(MilvusVectors, "write", ending)
        if isinstance(error, KilledError):  # nothing that it would have done after this happens
            patched.setattr("engine.retrieval.stored.index_folder.remove_unused", lambda folder: None)
        with pytest.raises(type(error)):
            update_index(corpus, stored, encoder, SETTINGS)
    left = collections(uri)
    assert before in left
    assert len(left) == (2 if isinstance(error, KilledError) else 1)
    assert open_index(stored).documents[0].text == OLD
    update_index(corpus, stored, encoder, SETTINGS)
    assert len(collections(uri)) == 1
    assert before not in collections(uri)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda client, name: client.drop_collection(name), "its file glassbox_.* is missing"),
        (lambda client, name: client.delete(name, ids=[1]), "holds 1 of 2 vectors: .*--rebuild"),
        (
            lambda client, name: client.upsert(name, [{"row": 1, "vector": np.ones(384, np.float32)}]),
            "holds other vectors than were stored",
        ),
    ],
    ids=["dropped", "incomplete", "changed"],
)
def test_a_damaged_collection_is_refused(corpus, stored, encoder, uri, damage, message):
    with client_of(uri) as client:
        damage(client, client.list_collections()[0])
    with pytest.raises(DocumentError, match=message):
        open_index(stored).index.vectors  # noqa: B018
    assert update_index(corpus, stored, encoder, SETTINGS, rebuild=True).stored.settings.uri == uri
    assert len(collections(uri)) == 1


def test_a_file_that_is_gone_is_missing_and_not_made_anew(stored, uri):
    milvus = open_index(stored).index.source
    release(uri)
    (moved := replace(milvus, uri=f"{uri}.gone.db"))
    with pytest.raises(FileNotFoundError, match="gone"):
        moved.check()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server of Milvus in another process: its address and file, and how to start and stop it."""
    path = tmp_path_factory.mktemp("milvus") / "served.db"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = []

    def start():
        command = [sys.executable, "-m", "milvus_lite", "server", "--data-dir", str(path)]
        place = ["--host", "127.0.0.1", "--port", str(port)]
        processes.append(subprocess.Popen([*command, *place], stdout=subprocess.DEVNULL))

    def stop():
        if processes:
            processes[-1].kill()
            processes.pop().wait()

    yield f"http://127.0.0.1:{port}", path, start, stop
    stop()


@pytest.mark.nightly
def test_a_server_is_waited_for_and_told_when_it_goes_away(corpus, folder, encoder, served, monkeypatch):
    uri, path, start, stop = served
    monkeypatch.setattr(milvus_store, "CALL_S", 30)
    late = Timer(0.5, start)
    late.start()
    update_index(corpus, folder, encoder, at(f"milvus:{uri}"))
    opened = open_index(folder)
    with pytest.raises(DocumentError, match=r"served\.db is in use by another process, and milvus-lite"):
        update_index(corpus, folder, encoder, at(f"milvus:{path}"))
    monkeypatch.setattr(milvus_store, "CALL_S", 1)
    before = sorted(folder.iterdir())
    stop()
    start_s = time.monotonic()
    with pytest.raises(DocumentError, match=rf"Milvus at {uri} failed \(.+\): see that it runs") as error:
        opened.index.nearest(np.ones((1, 384), np.float32), 1)
    assert "\n" not in str(error.value)
    release(uri)
    with pytest.raises(DocumentError, match="failed"):
        open_index(folder)
    (corpus / "a.txt").write_text("Knead the dough.")
    with pytest.raises(DocumentError, match="failed"):
        update_index(corpus, folder, encoder, SETTINGS)
    assert time.monotonic() - start_s < 30
    assert sorted(folder.iterdir()) == before


def test_other_stores_are_refused():
    assert milvus_uri("milvus:http://localhost:19530") == "http://localhost:19530"
    for store in ("milvus:vectors", "faiss:x.db", "milvus:ftp://host/x.db", "milvus:~nosuchuser/x.db"):
        with pytest.raises(InputError, match="names no store"):
            milvus_uri(store)
    with pytest.raises(InputError, match="holds a password: leave it out, and set") as error:
        milvus_uri("milvus:http://me:secret@host:19530")
    assert "secret" not in str(error.value)


def test_what_milvus_cannot_do_is_told_before_anything_is_embedded(corpus, folder, encoder, uri, monkeypatch):
    with pytest.raises(InputError, match="searched exactly, not by hnsw: leave out --index-kind hnsw"):
        update_index(corpus, folder, encoder, at(f"milvus:{uri}", "hnsw"))
    with pytest.raises(InputError, match="is within the corpus"):
        update_index(corpus, folder, encoder, at(f"milvus:{corpus / 'v.db'}"))
    monkeypatch.setitem(sys.modules, "pymilvus", None)
    with pytest.raises(InputError, match=r"not installed: pip install -r requirements-cluster\.txt"):
        update_index(corpus, folder, encoder, at(f"milvus:{uri}"))
    assert not folder.exists()


def test_a_folder_names_its_collection_and_holds_no_token(stored, uri, monkeypatch):
    monkeypatch.setenv(milvus_store.TOKEN, f"{uri} root:secret")
    assert milvus_store.token_for(uri) == "root:secret"
    assert milvus_store.token_for("http://elsewhere:19530") == ""
    [name] = stored.glob("*/store.json")
    assert json.loads(name.read_text()) == asdict(open_index(stored).index.source)
    assert not any(b"secret" in path.read_bytes() for path in stored.rglob("*.*"))
