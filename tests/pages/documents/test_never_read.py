"""The tab of text that is never read: what it says of the app's own chunks comes first."""

import pytest

from engine.documents.loaders import BUNDLED_CORPUS, load_corpus
from engine.documents.splitters import DEFAULT_SPLITTING, Splitting, split
from engine.retrieval.parents import search_parents
from tests.apps import app_page

NAME = "inside_the_pipeline.md"
TAB = {"documents-tab": "Never read", "searched": [NAME]}


def chunks_of(encoder, splitting):
    [document] = [each for each in load_corpus(BUNDLED_CORPUS) if each.name == NAME]
    return split(document, encoder.tokenizer, splitting)


def before_the_numbers(app):
    """Everything said above the first metric."""
    said = []
    for element in app.main:
        if element.type == "metric":
            break
        said.append(str(getattr(element, "value", "")))
    return "\n".join(said)


def test_that_nothing_is_lost_is_said_before_the_limits_that_are_not_in_use(encoder):
    chunks = chunks_of(encoder, DEFAULT_SPLITTING)
    first = before_the_numbers(app_page("documents", **TAB).run())
    assert f"Nothing is lost: the longest of {len(chunks)} chunks" in first


def test_that_chunks_are_cut_is_said_first(encoder):
    chunks = chunks_of(encoder, Splitting(DEFAULT_SPLITTING.method, 512, 0))
    n_cut = sum(chunk.n_tokens > 256 for chunk in chunks)
    assert n_cut
    first = before_the_numbers(app_page("documents", **TAB, chunk_tokens=512).run())
    assert f"Not read to the end: {n_cut} of {len(chunks)} chunks" in first


@pytest.fixture
def _few_windows(monkeypatch):
    """Have only the first and the last windows of a whole text embedded."""
    monkeypatch.setattr("engine.inspection.model.truncation.MAX_SPLIT_TOKENS", 0)


def whole(**state):
    app = app_page("documents", **TAB, **{"never-read-view": "One whole text"}, **state).run()
    assert app.selectbox(key="never-read-text").options[1:] == [NAME]
    return app.selectbox(key="never-read-text").set_value(NAME).run()


@pytest.mark.usefixtures("_few_windows")
def test_a_whole_text_is_shown_beside_the_chunks_that_the_app_makes_of_it(encoder):
    n_chunks = len(chunks_of(encoder, DEFAULT_SPLITTING))
    first = before_the_numbers(whole())
    assert f"The app cuts this document into {n_chunks} chunks, each of which is read whole" in first


@pytest.mark.usefixtures("_few_windows")
def test_a_whole_text_is_not_said_to_be_read_where_its_chunks_are_cut(encoder):
    chunks = chunks_of(encoder, Splitting(DEFAULT_SPLITTING.method, 512, 0))
    n_cut = sum(chunk.n_tokens > 256 for chunk in chunks)
    first = before_the_numbers(whole(chunk_tokens=512))
    assert (
        f"The app cuts this document into {len(chunks)} chunks, {n_cut} of which without their end" in first
    )


def test_a_question_gets_the_passages_of_the_apps_pooling(encoder, monkeypatch):
    searched = []

    def search(index, query, k):
        searched.append(index.spec.pooling)
        return search_parents(index, query, k)

    monkeypatch.setattr("pages.documents.unread_chunks.search_parents", search)
    app_page("documents", **TAB, pooling="cls").run()
    assert searched == ["cls"]
