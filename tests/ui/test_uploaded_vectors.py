"""Uploaded vectors take the place of documents that the app cuts; what needs more says so."""

import pytest

from engine.documents.document import Document
from engine.documents.splitters import Splitting, split
from engine.errors import InputError, ModelUnavailableError
from engine.evaluation.embedding_server import EmbeddingServer
from engine.evaluation.given_chunks import given_documents
from engine.retrieval.index import build_index
from engine.retrieval.vector_files import documents_of, save_npz
from tests.apps import app_of, app_page, app_within, plain, said
from tests.embedding_server import embedding_server
from ui.uploaded_vectors import UploadedVectors, named_model

NAME = "light.npz"
KEEPER = "The keeper of the lighthouse kept bees and sold their honey in Vardholm."
TEXT = (
    f"{KEEPER} The lamp burned whale oil until 1931, and ran on electricity ever after that. "
    "Knead the dough for ten minutes and let it rest in a warm place overnight. "
    "The ferry to the island leaves every morning at seven, except on Sundays and in storms."
)


@pytest.fixture(scope="module")
def by_server(encoder):
    """The state of a session with a file of vectors by the model of a server."""
    with embedding_server(encoder.encode) as server:
        yield state_with(EmbeddingServer.connect(server.address, encoder.tokenizer))


def state_with(model):
    chunks = split(Document("light.md", TEXT), model.tokenizer, Splitting("sentences", 24))
    index, documents = given_documents(build_index(chunks, model, documents=documents_of(chunks, NAME)))
    return {"vector-files": {NAME: UploadedVectors(NAME, index, model, documents)}, "searched": [NAME]}


@pytest.mark.parametrize("served", [False, True])
def test_they_are_asked(encoder, by_server, served):
    state = by_server if served else state_with(encoder)
    app = app_page("ask", **state, queued_question="Who sold honey?", max_new_tokens=16).run()
    assert "1 document · 4 chunks · " in said(app)
    assert app.session_state["answer"].retrieved.hits[0].chunk.text == KEEPER


@pytest.mark.parametrize(
    ("tab", "words"),
    [
        ("Files", "1 document in 4 chunks"),
        ("Chunks", "Uploaded with their vectors."),
        ("Map", "Every chunk is a point"),
        ("Health", "compared with all others"),
        ("Index", "as reading 4 chunks each time is fast"),
    ],
)
def test_their_chunks_map_health_and_index_are_drawn(by_server, tab, words):
    app = app_page("documents", **by_server, **{"documents-tab": tab, "map-question": "Who kept bees?"})
    assert words in said(app.run())


@pytest.mark.parametrize("served", [False, True])
def test_a_passage_is_diagnosed_by_a_retriever_that_the_model_can_do(encoder, by_server, served):
    state = by_server if served else state_with(encoder)
    asked = {"diagnose-question": "Why do boats stay in the harbour?", "diagnose-passage": KEEPER}
    app = app_page("improve/diagnose", **state, k=1, retriever="maxsim", **asked).run()
    assert app.selectbox(key="retriever").value == ("weighted" if served else "maxsim")
    assert "1 of 4" in plain(said(app)) or "2 of 4" in plain(said(app))
    assert "chunk size" not in plain(said(app))  # given chunks are cut by nothing that is tried


@pytest.mark.parametrize(
    "folder",
    ["improve/settings", "improve/poolings", "improve/tuning", "inside/late", "inside/chunk", "documents"],
)
def test_what_reads_token_vectors_or_cuts_anew_says_why_it_is_unavailable(by_server, folder):
    state = {"source-encoder": "Take a chunk of the documents", "documents-tab": "Never read"}
    assert "brings only its chunks and one vector for each" in said(app_within(folder, **by_server, **state))


def test_the_model_is_named_as_on_the_command_line(encoder, monkeypatch):
    monkeypatch.setattr("ui.uploaded_vectors.load_encoder", lambda: encoder)
    assert named_model(encoder.name) is encoder
    with embedding_server(encoder.encode, key="secret") as server:
        assert named_model(server.address, "secret").d_model == 384
        with pytest.raises(ModelUnavailableError, match="key"):
            named_model(server.address)
    with pytest.raises(InputError, match="names no model"):
        named_model("http://localhost:1")


def test_a_file_of_vectors_is_searched_by_itself(by_server):
    def picked(names):
        return app_page("documents", **{**by_server, "searched": names}).run().session_state["searched"]

    assert picked(["wikitexts.md", NAME]) == [NAME]
    assert picked([NAME, "wikitexts.md"]) == ["wikitexts.md"]


def take(name, content, pooling):
    import streamlit as st

    from engine.errors import GlassboxError
    from ui.models import load_encoder
    from ui.uploaded_vectors import read_vectors

    try:
        read_vectors(name, content, load_encoder(), pooling)
    except GlassboxError as error:
        st.text(str(error))


def test_a_file_is_taken_and_one_that_cannot_be_read_changes_nothing(encoder, tmp_path):
    chunks = split(Document("light.md", TEXT), encoder.tokenizer, Splitting("sentences", 24))
    path = tmp_path / NAME
    save_npz(path, build_index(chunks, encoder), encoder.tokenizer.ids_batch([c.text for c in chunks]))
    app = app_of(take, (NAME, path.read_bytes(), "own")).run()
    assert not said(app)
    assert app.session_state["searched"] == [NAME]
    for content, pooling, message in (
        (path.read_bytes(), "cls", "does not hold vectors of all-MiniLM-L6-v2, pooling cls"),
        (b"PK broken", "own", "light.npz cannot be read"),
    ):
        failed = app_of(take, (NAME, content, pooling)).run()
        assert message in failed.text[0].value
        assert "searched" not in failed.session_state
