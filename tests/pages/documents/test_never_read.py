"""The tab of text that is never read: of the app's own chunks, and of one text without chunks."""

import re
from html import unescape

import pytest

from engine.documents.loaders import BUNDLED_CORPUS, load_corpus
from engine.documents.splitters import DEFAULT_SPLITTING, Splitting, split
from tests.apps import app_page, by_label, html_of, tables

NAME = "inside_the_pipeline.md"
TAB = {"documents-tab": "Never read", "searched": [NAME]}


@pytest.fixture(scope="module")
def cut_chunks(encoder):
    """How many chunks of 512 tokens there are, and how many of them the limit of 256 cuts."""
    [document] = [each for each in load_corpus(BUNDLED_CORPUS) if each.name == NAME]
    chunks = split(document, encoder.tokenizer, Splitting(DEFAULT_SPLITTING.method, 512, 0))
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


def whole(**state):
    return app_page("documents", **TAB, **{"never-read-view": "One whole text"}, **state).run()


def test_a_whole_document_is_shown_with_the_chunks_that_the_app_makes_of_it(cut_chunks, monkeypatch):
    monkeypatch.setattr("engine.inspection.model.limit_effects.MAX_SPLIT_TOKENS", 0)
    app = whole(chunk_tokens=512)
    said = app.selectbox(key="never-read-text").set_value(NAME).run().info[0].value
    assert f"{cut_chunks[0]} chunks, {cut_chunks[1]} without their end" in said


def test_what_is_struck_through_is_what_the_tokenizer_leaves_out(encoder):
    text = " ".join(f"naïve{number} 東京" for number in range(300)) + " <img src=x>"
    app = whole().text_area(key="truncation-text").set_value(text).run()
    for limit in (128, 512, 256):
        [choice] = [each for each in app.button_group if each.label == "Limit (tokens)"]
        app = choice.set_value(limit).run()
        read_end = encoder.tokenizer.encode(text).offsets[limit - 2][1]
        assert f"after character {read_end:,}" in "".join(caption.value for caption in app.caption)
        struck = "".join(re.findall(r"<del[^>]*>(.*?)</del>", html_of(app), re.DOTALL))
        assert unescape(struck) == text[read_end : read_end + 2400]
        assert "<img" not in struck


@pytest.mark.parametrize(
    ("text", "said"),
    [("A short text.", "All of it is read. This text has 6 tokens"), (" \n ", "no text yet")],
)
def test_a_text_that_fits_and_a_blank_one_are_not_measured(text, said):
    app = whole(**{"truncation-text": text})
    assert said in "".join(each.value for each in [*app.info, *app.success])
    assert not app.metric
