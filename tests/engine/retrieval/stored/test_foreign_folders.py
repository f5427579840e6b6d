"""Index folders that somebody else made: signed as ours are, and refused where they hold something else."""

import json
import os
import shutil
import sys
from dataclasses import replace

import numpy as np
import pytest

from engine.documents.splitters import Splitting
from engine.errors import DocumentError
from engine.generation.passage_search import retrieve
from engine.generation.settings import SearchSettings
from engine.retrieval import index as index_module
from engine.retrieval import index_choice
from engine.retrieval.embedding_model import embed_query
from engine.retrieval.relevance import null_scores_of
from engine.retrieval.retrievers import index_scores
from engine.retrieval.stored import checked_files, index_folder, index_rows
from engine.retrieval.stored.index_folder import MANIFEST, IndexSettings, open_index, read_manifest
from engine.retrieval.stored.index_update import update_index
from engine.weights.download import file_sha256
from tests.indexes import sign
from tests.text_files import write_files

DAMAGED = r"is damaged \(.+\): index the corpus again"
TEXTS = {"a.txt": "A hive has one queen.", "b.md": "# Tower\n\nThe tower was finished in 1891."}


@pytest.fixture(scope="module")
def made(tmp_path_factory, encoder):
    """A folder with every kind of file."""
    root = tmp_path_factory.mktemp("foreign")
    settings = IndexSettings("the model", Splitting(chunk_tokens=32), 64, pooling="idf", index_kind="hnsw")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(index_choice, "FEWEST_CHUNKS", 0)
        update_index(write_files(root / "corpus", TEXTS), root / "index", encoder, settings)
    return root / "index"


@pytest.fixture
def folder(made, tmp_path):
    shutil.copytree(made, tmp_path / "index")
    return tmp_path / "index"


def state_of(folder):
    return folder / read_manifest(folder)["state"]


def signed(folder, **changes):
    """Write the manifest for the files that are there."""
    manifest = read_manifest(folder) | changes
    state = folder / manifest["state"]
    files = {path.name: file_sha256(path) for path in sorted(state.iterdir()) if path.is_file()}
    manifest["files"] = manifest["files"] | files
    sign(folder, manifest)


def at(place, value):
    def change(array):
        array = array.copy()
        array[place] = value
        return array

    return change


def test_the_folder_itself_is_read(made):
    assert len(open_index(made).index.chunks) == 2


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("vectors", at((0, 0), np.nan)),
        ("vectors", at((0, 0), np.inf)),
        ("vectors", lambda array: array * 3),
        ("vectors", lambda array: (array * 100).astype(np.int8)),
        ("vectors", lambda array: array.astype(np.float64)),
        ("vectors", lambda array: array[:1]),
        ("vectors", lambda array: array[:, :8]),
        ("vectors", lambda array: array[0]),
        ("unrelated", at((0, 0), np.nan)),
        ("unrelated", lambda array: array[:, :8]),
        ("idf", at(0, np.nan)),
        ("idf", lambda array: array[None]),
        ("starts", lambda array: array[:-1]),
        ("starts", at(-1, 10**6)),
        ("starts", at(0, 1)),
        ("starts", at(1, -1)),
        ("starts", lambda array: array.astype(float)),
        ("rows", at(0, 2)),
        ("rows", at(0, -1)),
        ("rows", lambda array: array[:-1]),
        ("rows", lambda array: array[None]),
        ("impacts", at(0, np.inf)),
        ("impacts", lambda array: array[1:]),
        ("ann", lambda array: array[: len(array) // 2]),
        ("ann", lambda array: array[:0]),
        ("ann", lambda array: array.astype(np.int64)),
    ],
)
def test_arrays_of_other_values_and_shapes_are_refused(folder, name, change):
    path = state_of(folder) / f"{name}.npy"
    np.save(path, change(np.load(path)))
    signed(folder)
    with pytest.raises(DocumentError, match=r"is damaged \(it.+\): index the corpus again"):
        open_index(folder)


def with_row(folder, change):
    """Change the JSON of the first file of the corpus."""
    path = state_of(folder) / "files.jsonl"
    first, *others = path.read_text().split("\n")
    row = json.loads(first)
    change(row)
    path.write_text("\n".join([json.dumps(row), *others]))
    signed(folder)


@pytest.mark.parametrize(
    "span",
    [
        [0, [0, 10**6, 5, [], None], None],
        [0, [-1, 5, 5, [], None], None],
        [0, [5, 2, 5, [], None], None],
        [0, [0, 5, -1, [], None], None],
        [7, [0, 5, 5, [], None], None],
        [-1, [0, 5, 5, [], None], None],
        [0, [0, 5, 5, [], None], [0, 10**6, 5, [], None]],
    ],
)
def test_chunks_beyond_their_document_are_refused(folder, span):
    with_row(folder, lambda row: row.update(chunks=[span]))
    with pytest.raises(DocumentError, match=r"is damaged \(.+\): index the corpus again"):
        open_index(folder)


def test_names_as_long_as_a_book_are_refused(folder):
    with_row(folder, lambda row: row["documents"][0].__setitem__("title", "t" * 10_000))
    with pytest.raises(DocumentError, match=r"a name or title in a\.txt has over 5,000 characters"):
        open_index(folder)


def test_two_documents_of_one_name_are_refused(folder):
    with_row(folder, lambda row: row["documents"][0].__setitem__("name", "b.md"))
    with pytest.raises(DocumentError, match=r"there are two documents named b\.md"):
        open_index(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2}, "an older version .format 2, this one reads 3.: index the corpus again"),
        ({"version": 4}, "a newer version .format 4, this one reads 3.: update Glassbox"),
        ({"format": "another"}, "of another program"),
        ({"files": {"../../secret": ""}}, DAMAGED),
        ({"state": "state-00000000/../../secret"}, DAMAGED),
        ({"settings": {}}, DAMAGED),
        ({"spec": {"model": "m", "pooling": "mean", "max_tokens": "many", "d_model": 384}}, DAMAGED),
        ({"effort": "much"}, DAMAGED),
        ({"languages": ["klingon"]}, DAMAGED),
        ({"languages": 5}, DAMAGED),
        ({"choice": {"kind": "hnsw"}}, DAMAGED),
        ({"choice": {"asked": "auto", "kind": "cubic", "reason": "", "measured": []}}, DAMAGED),
        ({"choice": {"asked": "auto", "kind": "flat", "reason": "", "measured": []}}, DAMAGED),
    ],
)
def test_a_manifest_of_other_values_is_refused(folder, changes, message):
    sign(folder, read_manifest(folder) | changes)
    with pytest.raises(DocumentError, match=message):
        open_index(folder)


@pytest.mark.parametrize("name", ["vectors.npy", "files.jsonl", MANIFEST])
@pytest.mark.parametrize("kind", ["pipe", "sparse"])
def test_pipes_and_files_without_an_end_are_refused(folder, name, kind):
    path = folder / name if name == MANIFEST else state_of(folder) / name
    if kind == "pipe":
        path.unlink()
        os.mkfifo(path)
    else:
        os.truncate(path, 2**40)
    with pytest.raises(DocumentError, match=r"damaged|holds no index"):
        open_index(folder)


def test_an_array_that_is_cut_while_it_is_searched_fails_alone(folder, encoder, monkeypatch):
    monkeypatch.setattr(checked_files, "IN_MEMORY", 0)
    index = open_index(folder).index
    query = embed_query("queen", index.encoder(encoder), index.spec.pooling)
    assert index.search(query, 1)
    for name, search in (
        ("vectors", lambda: index.search(query, 1)),
        ("impacts", lambda: index_scores("bm25", "queen", query, index, None)),
    ):
        os.truncate(state_of(folder) / f"{name}.npy", 10)
        with pytest.raises(DocumentError, match="a file of the index was cut while it is searched"):
            search()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system ends the process")
def test_an_array_that_is_cut_within_a_search_fails_it_alone(folder, encoder, monkeypatch):
    monkeypatch.setattr(checked_files, "IN_MEMORY", 0)
    index = replace(open_index(folder).index, ann=None)
    null_scores = null_scores_of(index, encoder)
    search = index_module.exact_nearest

    def cut_and_search(*arguments):
        os.truncate(state_of(folder) / "vectors.npy", 10)
        return search(*arguments)

    monkeypatch.setattr(index_module, "exact_nearest", cut_and_search)
    with pytest.raises(DocumentError, match="a file of the index was cut while it is searched"):
        retrieve("queen", index, encoder, SearchSettings(retriever="dense"), null_scores)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system ends the process")
def test_a_document_that_is_cut_while_it_is_read_fails_alone(folder, monkeypatch):
    monkeypatch.setattr(index_folder, "READ_WHOLE", 0)
    chunks = open_index(folder).index.chunks
    path = state_of(folder) / "files.jsonl"
    monkeypatch.setattr(index_rows, "require_whole", lambda content: os.truncate(path, 0))
    with pytest.raises(DocumentError, match="the index is damaged"):
        chunks[0]
