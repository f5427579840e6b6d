"""The chunk that the page takes: of the chosen documents, cut as the sidebar says."""

from html import unescape

import pytest

from engine.documents.document import Document
from engine.documents.loaders import load_corpus
from engine.documents.splitters import Splitting, split
from engine.inspection.diagnosis.location import Location
from tests.apps import app_page, app_within, html_of, own_documents

CHOSEN = "inside_the_pipeline.md"


@pytest.mark.parametrize("model", ["encoder", "decoder"])
def test_a_chunk_is_one_of_the_chosen_documents_under_the_settings_of_the_app(encoder, model):
    state = {
        "searched": [CHOSEN],
        "splitter": "fixed",
        "chunk_tokens": 64,
        "overlap": 16,
        "inside-model": model,
        f"source-{model}": "Take a chunk of the documents",
    }
    app = app_page("inside/chunk", **state).run()
    assert app.selectbox(key="inside-document").options == [CHOSEN]
    [document] = [each for each in load_corpus() if each.name == CHOSEN]
    chunks = split(document, encoder.tokenizer, Splitting("fixed", 64, 16))
    app.number_input(key="inside-chunk").set_value(3).run()
    assert app.number_input(key="inside-chunk").label == f"Chunk (of {len(chunks)})"
    assert chunks[2].text[:60] in html_of(app)


def test_the_token_limit_of_the_app_cuts_a_chunk(encoder):
    state = {"searched": [CHOSEN], "chunk_tokens": 256, "max_tokens": 64}
    state["source-encoder"] = "Take a chunk of the documents"
    app = app_page("inside/chunk", **state).run()
    assert any("Only the first 64 of" in warning.value for warning in app.warning)


def test_a_document_without_text_is_told_and_another_can_be_chosen(encoder):
    blank = own_documents(Document("blank.md", " \n "))
    app = app_within("inside/chunk", **blank, **{"source-encoder": "Take a chunk of the documents"})
    assert "This document has no text to read\\. Choose another\\." in [info.value for info in app.info]
    assert app.selectbox(key="inside-document")


def test_after_an_answer_the_page_opens_the_passage_that_the_session_is_about(encoder):
    passage = Location(CHOSEN, 2000, 2100)
    app = app_page("inside/chunk", **{"searched": [CHOSEN], "current-passage": passage}).run()
    assert app.radio(key="source-encoder").value == "Take a chunk of the documents"
    [document] = [each for each in load_corpus() if each.name == CHOSEN]
    assert document.text[2000:2100].split("\n")[0] in unescape(html_of(app))
