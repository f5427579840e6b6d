from dataclasses import replace

import pytest

from engine.documents.document import Document
from engine.limited_process import Limits
from tests.apps import app_of, app_page, own_documents, said, tables
from ui.server_settings import OWN_LIMITS
from ui.text import escape_markdown

TEXT = "The tide turns twice a day. " * 100


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (64, "**1 document in 8 chunks: 8 are not read to the end.**"),
        (256, "**1 document in 8 chunks, each read whole:**"),
    ],
)
def test_what_the_encoder_reads_of_the_chunks_is_said_first(limit, words):
    own = own_documents(Document("tide.md", TEXT))
    app = app_page("documents", **own, chunk_tokens=96, max_tokens=limit).run()
    assert words in said(app)
    [table] = tables(app)
    assert table["Chunks"].tolist() == [8]


def test_notes_of_what_was_left_out_stand_at_the_file():
    document = Document("tide.md", TEXT, notes=("2 comments left out",))
    app = app_page("documents", **own_documents(document)).run()
    assert "2 comments left out" in said(app)


def paste():
    import streamlit as st

    from pages.documents.files import paste_box
    from ui.documents import uploads

    paste_box()
    for name, [document] in uploads().items():
        st.text(f"{name}: {document.text}")


def pasted(name, text):
    app = app_of(paste).run()
    app.text_input(key="paste-name").set_value(name)
    app.text_area(key="paste-text").set_value(text)
    return app.button[0].click().run()


def test_a_pasted_text_becomes_a_document_whose_name_turns_no_words():
    app = pasted("tides \u202egpj", "# Tides\nThe tide \u202eturns.")
    assert [each.value for each in app.text] == ["tides gpj.md: # Tides\nThe tide turns."]


def test_a_pasted_text_beyond_the_limits_stays_in_its_box(monkeypatch):
    few = replace(OWN_LIMITS, reading=Limits(seconds=20, megabytes=10))
    monkeypatch.setattr("pages.documents.files.limits", lambda: few)
    app = pasted("tides", TEXT * 700)
    assert escape_markdown("reading tides.md takes over 20 s or 10 MB: give a smaller file") in said(app)
    monkeypatch.setattr("pages.documents.files.MAX_PASTED", 100)
    app = pasted("tides", TEXT)
    assert "this text has 2,800 characters, and 100 are read" in said(app)
    assert app.text_area(key="paste-text").value == TEXT
    assert not app.text


def test_the_language_of_a_file_is_shown_and_can_be_changed():
    text = "Der Schlüssel liegt hinter der Tür, und die Bücherei ist am Montag geschlossen."
    app = app_page("documents", **own_documents(Document("tide.md", text))).run()
    assert tables(app)[0]["Language"].tolist() == ["German"]
    assert "trained on English, and documents are in German" in said(app)
    assert app.button(key="measure-multilingual-e5-small").label == "Measure multilingual-e5-small"
    app.selectbox(key="language-of-tide.md").set_value("english").run()
    assert tables(app)[0]["Language"].tolist() == ["English"]
    assert "trained on English" not in said(app)
