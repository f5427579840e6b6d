import pytest

from engine.documents.document import Document
from engine.errors import DocumentError
from engine.storage.workspace import Workspace
from pages.documents.keep import grouped, path_of
from tests.apps import app_of

TIDE, ROW = Document("tide.md", "The tide turns."), Document("rows.csv#2", "who: Ada")


def test_documents_come_back_under_their_files():
    layout = {"tide.md": ["tide.md"], "rows.csv": ["rows.csv#2"]}
    assert grouped(Workspace((TIDE, ROW), {"files": layout})) == {"tide.md": (TIDE,), "rows.csv": (ROW,)}


@pytest.mark.parametrize("layout", [None, 7, [], {"rows.csv": 7}, {"rows.csv": [7, None]}])
def test_a_file_that_says_nothing_of_files_is_opened_all_the_same(layout):
    assert grouped(Workspace((TIDE, ROW), {"files": layout})) == {"tide.md": (TIDE,), "rows.csv#2": (ROW,)}


def test_a_document_cannot_pass_for_one_that_all_sessions_share():
    with pytest.raises(DocumentError, match="has the name of a bundled document"):
        grouped(Workspace((Document("wikitexts.md", "mine"),)))


@pytest.mark.parametrize("name", ["../../escape", "/etc/passwd", "a/b", "..", ""])
def test_no_name_leaves_the_folder(name, tmp_path, monkeypatch):
    monkeypatch.setattr("pages.documents.keep.WORKSPACES", tmp_path)
    assert path_of(name).resolve().parent == tmp_path


def page():
    import streamlit as st

    from ui.settings import take_settings

    take_settings(st.session_state["given"], 512)
    st.session_state["taken"] = {
        key: st.session_state.get(key) for key in ("k", "top_p", "splitter", "chunk_tokens")
    }


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({"k": 7, "top_p": 0.5, "splitter": "sentences", "chunk_tokens": 64}, (7, 0.5, "sentences", 64)),
        ({"k": 99, "top_p": 2.0, "splitter": "magic", "chunk_tokens": -3}, (None, None, None, None)),
        ({"k": "7", "top_p": None, "splitter": ["fixed"], "chunk_tokens": True}, (None, None, None, None)),
        ("no settings at all", (None, None, None, None)),
    ],
)
def test_only_settings_that_fit_their_widgets_are_taken(given, taken):
    app = app_of(page)
    app.session_state["given"] = given
    app.run()
    assert not app.exception
    assert tuple(app.session_state["taken"].values()) == taken
