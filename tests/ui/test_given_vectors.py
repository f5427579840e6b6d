"""Vectors brought along take the place of documents that the app cuts; what needs an inside says why not."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from engine.documents.document import Document
from engine.documents.splitters import Splitting, split
from engine.errors import InputError, ModelUnavailableError
from engine.evaluation.embedding_server import EmbeddingServer
from engine.evaluation.given_chunks import given_documents
from engine.retrieval.index import build_index
from engine.retrieval.vector_files import documents_of, save_npz
from tests.apps import app_of, app_page, app_within, said
from tests.embedding_server import embedding_server
from ui.given_vectors import Given, named_model

NAME = "light.npz"
KEEPER = "The keeper of the lighthouse kept bees and sold their honey in Vardholm."
TEXT = (
    f"{KEEPER} The lamp burned whale oil until 1931, and ran on electricity ever after that. "
    "Knead the dough for ten minutes and let it rest in a warm place overnight. "
    "The ferry to the island leaves every morning at seven, except on Sundays and in storms."
)


@dataclass(frozen=True)
class Brought:
    """The state of a session with a file of vectors by the app's encoder, or by a server."""

    state: dict[str, object]

    def page(self, folder, **more):
        return app_page(folder, **self.state, **more).run()

    def opened(self, folder, **more):
        """The page within the app, which draws why a page cannot be drawn."""
        return app_within(folder, **self.state, **more)


@pytest.fixture(scope="module", params=["encoder", "server"])
def brought(request, encoder) -> Iterator[Brought]:
    chunks = split(Document("light.md", TEXT), encoder.tokenizer, Splitting("sentences", 24))
    with embedding_server(encoder.encode) as server:
        served = request.param == "server"
        model = EmbeddingServer.connect(server.address, encoder.tokenizer) if served else encoder
        index, documents = given_documents(build_index(chunks, model, documents=documents_of(chunks, NAME)))
        files = {NAME: Given(NAME, index, model, documents)}
        yield Brought({"given-files": files, "searched": [NAME]})


def test_they_are_asked(brought):
    app = brought.page("ask", queued_question="Who sold honey?", max_new_tokens=16)
    assert "1 document · 4 chunks · " in said(app)
    assert app.session_state["answer"].hits[0].chunk.text == KEEPER


@pytest.mark.parametrize(
    ("tab", "words"),
    [
        ("Files", "1 document in 4 chunks"),
        ("Chunks", "Brought along, with their vectors."),
        ("Map", "Every chunk is a point"),
        ("Health", "compared with all others"),
        ("Index", "as reading 4 chunks each time is fast"),
    ],
)
def test_their_chunks_map_health_and_index_are_drawn(brought, tab, words):
    app = brought.page("documents", **{"documents-tab": tab, "map-question": "Who kept bees?"})
    assert words in said(app)


def test_a_passage_is_diagnosed_by_them(brought):
    asked = {"diagnose-question": "Why do boats stay in the harbour?", "diagnose-passage": KEEPER}
    app = brought.page("improve/diagnose", k=1, **asked)
    assert "word for word" in said(app)
    assert app.metric[0].value.endswith(" of 4")
    assert "these chunks and vectors were brought along" in said(app)


def test_questions_about_them_are_labelled(brought):
    app = brought.page("improve/questions", **{"label-question": "Who kept bees?"})
    assert "Mark the passage" in said(app)


@pytest.mark.parametrize(
    "folder",
    ["improve/settings", "improve/poolings", "improve/tuning", "inside/late", "inside/chunk", "documents"],
)
def test_what_reads_inside_a_model_or_cuts_anew_says_why_not(brought, folder):
    state = {"source-encoder": "Take a chunk of the documents", "documents-tab": "Never read"}
    assert "brings only its chunks and one vector for each" in said(brought.opened(folder, **state))


def test_the_model_is_named_as_on_the_command_line(encoder, monkeypatch):
    monkeypatch.setattr("ui.given_vectors.load_encoder", lambda: encoder)
    assert named_model(encoder.name) is encoder
    with embedding_server(encoder.encode, key="secret") as server:
        assert named_model(server.address, "secret").d_model == 384
        with pytest.raises(ModelUnavailableError, match="key"):
            named_model(server.address)
    with pytest.raises(InputError, match="names no model"):
        named_model("http://localhost:1")


def test_retrievers_that_read_tokens_need_an_inside(brought):
    app = brought.page("documents")
    given = app.session_state["given-files"][NAME]
    app = brought.page("improve/diagnose", retriever="maxsim")
    expected = "weighted" if isinstance(given.model, EmbeddingServer) else "maxsim"
    assert app.selectbox(key="retriever").value == expected


def test_a_file_of_vectors_is_searched_alone(brought):
    def picked(names):
        app = app_page("documents", **{**brought.state, "searched": names}).run()
        return app.session_state["searched"]

    assert picked(["wikitexts.md", NAME]) == [NAME]
    assert picked([NAME, "wikitexts.md"]) == ["wikitexts.md"]


def take(name, content, pooling):
    import streamlit as st

    from engine.errors import GlassboxError
    from ui.given_vectors import take_given
    from ui.models import load_encoder

    try:
        take_given(name, content, load_encoder(), pooling)
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
