"""The tab of the text of chunks that is never read."""

import pytest

from engine.documents.document import Document
from engine.documents.loaders import BUNDLED_CORPUS
from engine.documents.splitters import DEFAULT_SPLITTING, Splitting, split
from tests.apps import app_page, by_label, own_documents, tables

DOCUMENT = Document("pipeline.md", (BUNDLED_CORPUS / "inside_the_pipeline.md").read_text("utf-8")[:4000])
TAB = {"documents-tab": "Never read", "budget-question": "What is a token?", **own_documents(DOCUMENT)}


@pytest.fixture(scope="module")
def cut_chunks(encoder):
    """How many chunks of 512 tokens there are, and how many of them the limit of 256 cuts."""
    chunks = split(DOCUMENT, encoder.tokenizer, Splitting(DEFAULT_SPLITTING.method, 512, 0))
    return len(chunks), sum(chunk.n_tokens > 256 for chunk in chunks)


def test_chunks_that_are_read_whole_are_cut_and_mended_by_buttons(cut_chunks):
    app = app_page("documents", **TAB).run()
    assert "Every chunk is read whole" in app.success[0].value
    preview = by_label(app.toggle, "See what is never read of chunks of 512 tokens; your settings stay")
    app = preview.set_value(True).run()
    assert f"Not read to the end: {cut_chunks[1]} of {cut_chunks[0]} chunks" in app.warning[0].value
    [truncated] = tables(app)
    assert len(truncated) == min(50, cut_chunks[1])
    assert app.session_state["chunk_tokens"] == 192
    app.session_state["chunk_tokens"] = 512
    app.run()
    truncated, ranks = tables(app)
    assert len(truncated) == len(ranks) == min(50, cut_chunks[1])
    raised = app.button(key="remedy-1").click().run()
    assert "Every chunk is read whole" in raised.success[0].value
    assert raised.session_state["max_tokens"] == 512
    app.session_state["max_tokens"] = 256
    smaller = app.run().button(key="remedy-0").click().run()
    assert "Every chunk is read whole" in smaller.success[0].value
    assert smaller.session_state["chunk_tokens"] == 256
