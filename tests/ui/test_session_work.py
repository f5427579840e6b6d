from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.documents.document import Document
from engine.errors import DocumentError
from engine.evaluation.answers import AnswerQuestion, ShortAnswer
from engine.storage.workspace import Workspace
from tests.apps import app_file, app_of, app_page, app_within, by_label, said
from ui.data_folder import is_local
from ui.server_settings import WORKSPACES
from ui.session_work import grouped
from ui.work_dialog import path_of

EARLIER = Path(__file__).with_name("earlier_version.glassbox")
STATE = ("uploads", "searched", "workspace", "answer-sets")  # what a workspace fills, beside settings
MILL = Document("mill.md", "The mill stood still.")
TIDE, ROW = Document("tide.md", "The tide turns."), Document("rows.csv#2", "who: Ada")


def test_documents_come_back_under_their_files():
    layout = {"tide.md": ["tide.md"], "rows.csv": ["rows.csv#2"]}
    assert grouped(Workspace((TIDE, ROW), {"files": layout})) == {"tide.md": (TIDE,), "rows.csv": (ROW,)}


def test_a_document_cannot_pass_for_one_that_all_sessions_share():
    with pytest.raises(DocumentError, match="has the name of a bundled document"):
        grouped(Workspace((Document("wikitexts.md", "mine"),)))


@pytest.mark.parametrize("name", ["../../escape", "/etc/passwd", "a/b", "..", ""])
def test_no_name_leaves_the_folder(name, tmp_path):
    assert path_of(tmp_path, name).resolve().parent == tmp_path


def page():
    import streamlit as st

    from ui.setting_values import apply_settings

    apply_settings(st.session_state["given"], 512)
    st.session_state["taken"] = {
        key: st.session_state[key] for key in st.session_state["asked"] if key in st.session_state
    }


FIT = {"k": 7, "top_p": 0.5, "splitter": "sentences", "chunk_tokens": 64, "think": True}


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        (FIT, FIT),
        ({"k": 99, "top_p": 2.0, "splitter": "magic", "chunk_tokens": -3, "think": 1, "threshold": 0.3}, {}),
        ({"k": "7", "top_p": None, "splitter": ["fixed"], "chunk_tokens": True}, {}),
        ({"answer_at": 70}, {"answer_threshold": 70}),  # by its former name
        ("no settings at all", {}),
    ],
)
def test_only_settings_that_fit_their_widgets_are_taken(given, taken):
    app = app_of(page, given=given, asked=(*FIT, "answer_threshold")).run()
    assert app.session_state["taken"] == taken


def opened_earlier():
    import streamlit as st

    from engine.storage.workspace import open_workspace
    from tests.ui.test_session_work import EARLIER
    from ui.session_work import apply_workspace

    if "workspace" not in st.session_state:
        apply_workspace(open_workspace(EARLIER))


def test_what_a_workspace_holds_of_removed_settings_is_left_out_and_named():
    app = app_of(opened_earlier).run()
    [toast] = app.toast
    assert "Expand the question" in toast.value
    assert "bfloat16" in toast.value
    state = app.session_state
    assert {key: state[key] for key in ("splitter", "overlap", "pooling", "k", "retriever")} == {
        "splitter": "fixed",
        "overlap": 8,
        "pooling": "cls",
        "k": 6,
        "retriever": "bm25",
    }
    assert "precision" not in state
    opened = {key: state[key] for key in STATE} | {"experiments-tab": "Results"}
    page = app_page("improve/settings", **opened).run()
    [title] = by_label(page.selectbox, "Run").options
    assert title == "Precisions, 2026-11-20 10:00:00, without 1 configuration of removed settings"


@pytest.fixture
def own_machine(tmp_path, monkeypatch):
    """A data folder, and a browser on the machine of the app."""
    monkeypatch.setenv(WORKSPACES, str(tmp_path))
    monkeypatch.setattr("ui.data_folder.is_local", lambda: True)
    return tmp_path


def session(**state):
    """A new session of the app, on a page that needs no documents."""
    return app_within("inside/positions", **state)


def test_own_files_are_searched_where_vectors_were_that_are_not_kept():
    def script():
        import streamlit as st

        from ui.session_work import apply_workspace

        apply_workspace(st.session_state["given"])

    given = Workspace((TIDE,), {"files": {"tide.md": ["tide.md"]}, "searched": ["vectors.npz"]})
    assert app_of(script, given=given).run().session_state["searched"] == ["tide.md"]


def test_the_work_of_a_session_is_there_in_the_next(own_machine):
    answers = {"tides.csv": (AnswerQuestion("How often?", ShortAnswer.parse("twice"), "tide.md", ((0, 4),)),)}
    given = {"searched": ["tide.md"], "k": 7, "answer-sets": answers}
    first = session(uploads={"tide.md": (TIDE,)}, **given)
    assert "Your work is kept on this computer." in said(first)
    second = session()
    assert second.session_state["uploads"] == {"tide.md": (TIDE,)}
    assert {key: second.session_state[key] for key in given} == given


def test_a_link_changes_nothing_that_is_kept(own_machine):
    session(uploads={"tide.md": (TIDE,)}, searched=["tide.md"], k=7, retriever="dense")
    linked = app_file()
    linked.query_params["k"] = "3"
    linked.run()
    assert linked.session_state["k"] == 3
    assert set(linked.session_state["searched"]) > {"tide.md"}
    linked.session_state["retriever"] = "bm25"
    linked.run()
    state = session().session_state
    assert (state["k"], state["retriever"], state["searched"]) == (7, "bm25", ["tide.md"])


def test_two_sessions_at_a_time_lose_nothing_of_each_other(own_machine):
    one, two = session(), session()
    one.session_state["uploads"] = {"tide.md": (TIDE,)}
    two.session_state["uploads"] = {"mill.md": (MILL,)}
    one.run()
    two.run()
    one.session_state["uploads"] = {}
    one.run()
    assert session().session_state["uploads"] == {"mill.md": (MILL,)}


def test_a_kept_file_that_cannot_be_opened_is_left_as_it_is(own_machine):
    path = own_machine / "session.sqlite3"
    path.write_bytes(b"not a database at all")
    app = session(uploads={"tide.md": (TIDE,)})
    assert "could not be opened, and nothing is kept now" in said(app)
    assert "Your work is gone when this tab closes." in said(app)
    assert path.read_bytes() == b"not a database at all"


def test_a_folder_that_cannot_be_written_is_told(tmp_path, own_machine, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv(WORKSPACES, str(tmp_path / "file" / "folder"))
    assert "Your work cannot be kept" in said(session(uploads={"tide.md": (TIDE,)}))


def test_switched_off_what_was_kept_is_deleted_and_nothing_is_kept(own_machine):
    session(uploads={"tide.md": (TIDE,)})
    assert (own_machine / "session.sqlite3").exists()

    def switch(on):
        from ui.session_work import switch_keeping

        switch_keeping(on)

    app_of(switch, args=(False,)).run()
    assert [path.name for path in own_machine.iterdir()] == ["keep_nothing"]
    assert "Your work is gone when this tab closes." in said(session(uploads={"tide.md": (TIDE,)}))
    assert [path.name for path in own_machine.iterdir()] == ["keep_nothing"]
    app_of(switch, args=(True,)).run()
    assert session(k=6).session_state["k"] == session().session_state["k"] == 6


def test_for_visitors_from_elsewhere_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.delenv(WORKSPACES, raising=False)
    monkeypatch.setattr("ui.data_folder.user_data_path", lambda *_, **__: tmp_path)
    assert "Your work is gone when this tab closes." in said(session(uploads={"tide.md": (TIDE,)}))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "ip_address", "headers", "expected"),
    [
        ("http://localhost:8501/documents", None, {}, True),
        ("http://127.0.0.1:8501", None, {}, True),
        ("http://127.0.0.1:8501", "::ffff:127.0.0.1", {}, True),  # a server for IPv4 and IPv6 at once
        ("http://localhost:8501", "::1", {}, True),
        ("http://localhost:8501", "::ffff:10.0.0.7", {}, False),
        ("http://localhost:8501", "not an address", {}, False),
        ("https://glassbox.streamlit.app", None, {}, False),
        ("http://localhost:8501", "10.0.0.7", {}, False),
        ("http://localhost:8501", None, {"X-Forwarded-For": "10.0.0.7"}, False),
        (None, None, {}, False),
    ],
)
def test_only_a_browser_on_the_same_machine_is_local(url, ip_address, headers, expected, monkeypatch):
    context = SimpleNamespace(url=url, ip_address=ip_address, headers=headers)
    monkeypatch.setattr("ui.data_folder.st", SimpleNamespace(context=context))
    monkeypatch.setattr("ui.data_folder.runtime.exists", lambda: True)
    assert is_local() is expected


def folder_page(folder):
    from pathlib import Path

    from engine.storage.workspace import Workspace
    from ui.work_dialog import show_folder

    show_folder(Workspace(), Path(folder))


def test_opened_work_is_saved_under_its_own_name_again(tmp_path):
    app = app_of(folder_page, kwargs={"folder": str(tmp_path)}).run()
    assert app.text_input(key="workspace-name").value == "my workspace"
    app.text_input(key="workspace-name").set_value("laws").run()
    by_label(app.button, "Save").click().run()
    path = {"workspace-path": app.session_state["workspace-path"]}
    again = app_of(folder_page, kwargs={"folder": str(tmp_path)}, **path)
    assert again.run().text_input(key="workspace-name").value == "laws"
