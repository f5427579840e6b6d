import os
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from engine.documents.document import Document
from engine.documents.splitters import Splitting, split
from engine.errors import DocumentError, InputError
from engine.evaluation.embedding_server import EmbeddingServer
from engine.evaluation.library_model import LibraryModel
from engine.generation.passage_search import retrieve
from engine.generation.settings import SearchSettings
from engine.inspection.diagnosis.asking import Searched
from engine.inspection.diagnosis.diagnose import diagnose
from engine.models.prompts import Prompts
from engine.retrieval import vector_rows
from engine.retrieval.index import build_index, index_vectors
from engine.retrieval.relevance import null_scores_of
from engine.retrieval.vector_files import read_index, save_npz
from engine.retrieval.vector_rows import COLUMNS, read_rows
from engine.settings import SETTINGS
from tests.embedding_server import embedding_server

TEXT = "The lighthouse was painted grün in 1931. 🐝 Its keeper kept bees. He sold the honey in Vardholm."
DOCUMENTS = [Document("light.md", TEXT), Document("bread.md", "Knead the dough for ten minutes. Bake it.")]


@pytest.fixture(scope="module")
def index(encoder):
    return made(encoder, "off")


def made(encoder, context):
    cut = Splitting("sentences", 16, 0, context)
    chunks = [chunk for each in DOCUMENTS for chunk in split(each, encoder.tokenizer, cut)]
    return build_index(chunks, encoder, documents=DOCUMENTS)


@pytest.fixture
def npz(index, encoder, tmp_path):
    save_npz(tmp_path / "vectors.npz", index, encoder.tokenizer.ids_batch(list(index.texts)))
    return tmp_path / "vectors.npz"


def columns(index):
    return {
        "document": [chunk.document for chunk in index.chunks],
        "start": [chunk.start for chunk in index.chunks],
        "end": [chunk.end for chunk in index.chunks],
        "text": list(index.texts),
        "vector": index.vectors.tolist(),
    }


def write(path, **content):
    parquet.write_table(pa.table(content), path)
    return path


@pytest.fixture
def table(index, tmp_path):
    return write(tmp_path / "vectors.parquet", **columns(index))


@pytest.mark.parametrize("context", ["off", "title"])
def test_what_embed_writes_is_the_same_index_again(context, encoder, tmp_path):
    index, npz = made(encoder, context), tmp_path / "vectors.npz"
    save_npz(npz, index, encoder.tokenizer.ids_batch(list(index.texts)))
    again = read_index(npz, encoder)
    assert again.chunks == index.chunks
    assert again.spec == index.spec
    assert again.vectors == pytest.approx(index.vectors, abs=1e-7)
    texts = {each.name: again.document_text(each.name) for each in DOCUMENTS}
    assert all(texts[each.name].split() == each.text.split() for each in DOCUMENTS)
    assert all(texts[chunk.document][chunk.start : chunk.end] == chunk.text for chunk in index.chunks)
    for retriever in ("dense", "weighted", "maxsim"):
        settings = SearchSettings(2, retriever=retriever)
        found, expected = (retrieve("Who had bees?", each, encoder, settings) for each in (again, index))
        assert [hit.chunk for hit in found.hits] == [hit.chunk for hit in expected.hits]


@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1, max_size=5))
def test_any_text_comes_back(texts, index, encoder, tmp_path_factory):
    text = "\n".join(["bees", *texts])
    chunk = replace(index.chunks[0], document="a\n", start=0, end=len(text), text=text)
    path = tmp_path_factory.mktemp("any") / "one.npz"
    save_npz(path, index_vectors([chunk], encoder.encode([text]), index.spec), [[1, 2]])
    [found] = read_index(path, encoder).chunks
    assert found == replace(chunk, n_tokens=len(encoder.tokenizer.encode(text).ids))


KINDS = pa.list_(pa.float16()), pa.list_(pa.float64()), pa.list_(pa.float32(), 384)


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_of_parquet_may_have_any_precision_and_length(kind, index, encoder, tmp_path):
    longer = [[30 * float(number) for number in vector] for vector in index.vectors]
    numbers = [np.array(vector, np.float16) for vector in longer] if "half" in str(kind) else longer
    path = write(tmp_path / "any.parquet", **{**columns(index), "vector": pa.array(numbers, kind)})
    again = read_index(path, encoder)
    assert again.chunks == index.chunks
    assert again.vectors == pytest.approx(index.vectors, abs=1e-3)
    assert np.linalg.norm(again.vectors, axis=1) == pytest.approx(1, abs=1e-6)


@pytest.mark.usefixtures("library_in_this_process")
def test_questions_may_be_embedded_by_sentence_transformers(table, index, encoder, official, tmp_path):
    official.save(str(tmp_path))
    model = LibraryModel.load(tmp_path, encoder.tokenizer)
    again = read_index(table, model)
    found, expected = (retrieve("Who had bees?", *pair) for pair in ((again, model), (index, encoder)))
    assert [hit.chunk for hit in found.hits] == [hit.chunk for hit in expected.hits]
    assert [hit.score for hit in found.hits] == pytest.approx([hit.score for hit in expected.hits], abs=1e-5)


def test_uploaded_vectors_are_diagnosed(table, index, encoder):
    question, passage = "Who sold honey?", "He sold the honey in Vardholm."
    values = {key: setting.default for key, setting in SETTINGS.items()}
    with embedding_server(encoder.encode) as server:
        model = EmbeddingServer.connect(server.address, encoder.tokenizer)
        again = read_index(table, model)
        found, expected = (
            diagnose(question, passage, Searched(*pair, None, values, null_scores_of(*pair)))
            for pair in ((again, model), (index, encoder))
        )
    assert found.cause == expected.cause
    assert [link.holds for link in found.chain.links] == [link.holds for link in expected.chain.links]
    assert found.chain.ranking.order == expected.chain.ranking.order
    assert found.trial is None or found.trial.n_chunks == len(again.chunks)


def test_another_model_or_pooling_is_not_taken_for_that_of_the_file(table, encoder, tmp_path):
    with pytest.raises(InputError, match=r"pooling cls, .* has a cosine of 0\.\d+ with the model's"):
        read_index(table, encoder, "cls")
    prompted = replace(encoder, prompts=Prompts({"document": "a part of a long report: "}))
    with pytest.raises(InputError, match="name the model, pooling and prompts that made them"):
        read_index(table, prompted)
    with embedding_server(lambda texts: [[1, 2, 3]] * len(texts)) as server:
        model = EmbeddingServer.connect(server.address, encoder.tokenizer)
        with pytest.raises(InputError, match=r"vectors of 384 numbers, and those of http.* have 3: name the"):
            read_index(table, model)


NAN = [float("nan")] * 384


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"start": lambda old: [1, *old[1:]]}, "chunk 0: its text has .* and does not stand at 1 to"),
        ({"start": lambda old: [float(each) for each in old]}, "chunk 0: its start 0.0 .* whole numbers"),
        ({"document": lambda old: list(range(len(old)))}, "its document and text have to be strings"),
        ({"text": lambda old: [None, *old[1:]]}, "column text has 1 empty cells"),
        ({"text": lambda old: [" " * len(each) for each in old]}, "holds no text, only white space"),
        ({"vector": lambda old: [old[0][:3], *old[1:]]}, "its vectors have 3 numbers, and 384"),
        ({"vector": lambda old: [*old[:-1], NAN]}, r"chunk \d: its vector is zero or not finite"),
        ({"vector": lambda old: [["words"]] * len(old)}, "cannot be read"),
        ({"end": None}, "lacks end of document, start, end, text, vector"),
        (
            {name: lambda old: old[:0] for name in COLUMNS[:-1]}
            | {"vector": lambda old: pa.array([], pa.list_(pa.float32()))},
            "holds no chunks",
        ),
    ],
)
def test_rows_that_do_not_fit_are_named(change, message, index, encoder, tmp_path):
    content = {
        name: change.get(name, list)(column)
        for name, column in columns(index).items()
        if change.get(name, list) is not None
    }
    with pytest.raises(DocumentError, match=message) as error:
        read_index(write(tmp_path / "wrong.parquet", **content), encoder)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text": None}, "lacks text of documents, starts, ends, text, text_starts, vectors"),
        ({"vectors": np.ones(3, np.float32)}, r"vectors is float32 of shape \(3,\)"),
        ({"vectors": np.ones((1, 384), np.float32)}, "not as many of each column"),
        ({"text_starts": np.array([0, 3, 2, 1, 5])}, "does not divide the text"),
        ({"documents": np.array([{}], object)}, "cannot be read"),
    ],
)
def test_arrays_that_do_not_fit_are_named(change, message, npz, encoder):
    with np.load(npz) as found:
        content = {name: array for name, array in {**found, **change}.items() if array is not None}
    np.savez(npz, **content)
    with pytest.raises(DocumentError, match=message):
        read_index(npz, encoder)


def test_a_single_array_and_other_endings_are_refused(encoder, tmp_path):
    np.save(tmp_path / "one.npy", np.ones(3))
    (tmp_path / "one.npy").rename(tmp_path / "one.npz")
    for name, message in (
        ("one.npz", "it is a single array"),
        ("one.csv", r"ends in none of \.npz, \.parquet"),
        ("none.npz", "there is no file"),
    ):
        with pytest.raises(DocumentError, match=message):
            read_index(tmp_path / name, encoder)


def test_parquet_without_its_library_says_what_to_do(table, monkeypatch):
    monkeypatch.setattr(vector_rows, "find_spec", lambda name: None)
    with pytest.raises(DocumentError, match=r"pip install pyarrow, or give an \.npz file"):
        read_rows(table.name, table.read_bytes())


def test_a_file_larger_than_the_memory_is_not_read(tmp_path, encoder):
    (tmp_path / "a.npz").touch()
    os.truncate(tmp_path / "a.npz", 2**43)
    with pytest.raises(DocumentError, match=r"a\.npz has 8,796 GB, over the memory"):
        read_index(tmp_path / "a.npz", encoder)


def test_pooling_by_idf_takes_the_words_of_the_file(encoder, index, tmp_path):
    weighed = build_index(index.chunks, encoder, "idf")
    again = read_index(write(tmp_path / "idf.parquet", **columns(weighed)), encoder, "idf")
    assert again.spec == weighed.spec
    assert again.idf == pytest.approx(weighed.idf)
