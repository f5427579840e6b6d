"""The tab of indexes, and the box that opens and writes one in a folder of the user's own machine."""

from dataclasses import replace

import pytest

from engine.documents.document import Document
from engine.documents.splitters import Splitting
from engine.evaluation.given_chunks import given_documents
from engine.models.encoder import Encoder
from engine.retrieval import index as index_module
from engine.retrieval.index_kinds import INDEX_KINDS
from engine.retrieval.stored.index_folder import IndexSettings, open_index
from engine.retrieval.stored.index_update import update_index
from engine.retrieval.stored.milvus_store import check_free, release
from pages.documents.index_kinds import MAX_LOST
from tests.apps import app_page, own_documents, said, tables
from tests.text_files import write_files
from ui.server_settings import PUBLIC
from ui.uploaded_vectors import UploadedVectors

TEXT = "The lighthouse of Vardholm was painted green in 1931. Its keeper kept bees and sold the honey."
MADE_WITH = Splitting("fixed", 16, 0)


@pytest.fixture
def corpus(tmp_path):
    return write_files(tmp_path / "notes", {"light.md": TEXT})


@pytest.fixture
def _own_machine(monkeypatch):
    monkeypatch.setattr("pages.documents.index_folder.is_local", lambda: True)


def files_tab(**state):
    return app_page("documents", **{"documents-tab": "Files", **state}).run()


def clicked(app, key):
    app.button(key).click().run()
    return app


def plain(elements):
    """What boxes say, without the escapes of Markdown."""
    return [element.value.replace("\\", "") for element in elements]


@pytest.mark.usefixtures("_own_machine")
def test_a_folder_brings_documents_and_settings_and_nothing_is_embedded(
    corpus, encoder, tmp_path, monkeypatch
):
    settings = IndexSettings(
        "all-MiniLM-L6-v2", MADE_WITH, pooling="max", precision="int8", index_kind="hnsw"
    )
    made = update_index(corpus, tmp_path / "index", encoder.with_precision("int8"), settings).stored
    app = files_tab(**{"index-folder": str(tmp_path / "index"), "max_tokens": 64})
    clicked(app, "index-open")
    n_chunks = len(made.index.chunks)
    assert plain(app.success)[-1] == f"Opened: 1 file in {n_chunks} chunks, and their settings."
    state = app.session_state
    assert state["searched"] == ["light.md"]
    assert (state["splitter"], state["chunk_tokens"], state["pooling"]) == ("fixed", 16, "max")
    assert (state["precision"], state["index_kind"], state["max_tokens"]) == ("int8", "hnsw", 256)

    def refused(*arguments, **named):
        raise AssertionError("nothing is embedded again")

    monkeypatch.setattr(Encoder, "encode_as", refused)
    monkeypatch.setattr(index_module, "encode_by", refused)
    app.session_state["documents-tab"] = "Index"
    app.run()
    assert "as HNSW is used from 256 chunks on" in said(app)


@pytest.mark.usefixtures("_own_machine")
def test_a_new_folder_is_written_with_the_settings_of_the_sidebar(corpus, encoder, tmp_path):
    paths = {"index-folder": str(tmp_path / "index"), "index-corpus": str(corpus)}
    app = clicked(files_tab(splitter="fixed", chunk_tokens=16, **paths), "index-write")
    assert "files: 1 new, 0 changed, 0 deleted, 0 unchanged" in plain(app.success)[-1]
    stored = open_index(tmp_path / "index")
    assert stored.settings == IndexSettings("all-MiniLM-L6-v2", MADE_WITH, store="folder")
    (corpus / "bread.txt").write_text("Knead the dough.")
    app = clicked(files_tab(**paths | {"index-corpus": ""}), "index-write")
    assert "1 embedded now; files: 1 new, 0 changed, 0 deleted, 1 unchanged" in plain(app.success)[-1]
    assert open_index(tmp_path / "index").settings == stored.settings


@pytest.mark.usefixtures("_own_machine")
def test_vectors_may_be_in_milvus_whose_file_is_free_afterwards(corpus, encoder, tmp_path):
    pytest.importorskip("milvus_lite", reason="pip install -r requirements-cluster.txt")
    store = f"milvus:{tmp_path / 'vectors.db'}"
    settings = IndexSettings("all-MiniLM-L6-v2", MADE_WITH, store=store)
    made = update_index(corpus, tmp_path / "index", encoder, settings).stored
    release(made.settings.uri)
    app = clicked(files_tab(**{"index-folder": str(tmp_path / "index")}), "index-open")
    assert app.session_state["searched"] == ["light.md"]
    check_free(tmp_path / "vectors.db")


@pytest.mark.usefixtures("_own_machine")
@pytest.mark.parametrize(
    ("button", "folder", "error"),
    [
        ("index-open", "none", "holds no index: write one with"),
        ("index-open", "\0", "is no path"),
        ("index-open", "a" * 300, "is no path (File name too long)"),
        ("index-write", "new", "no files are named"),
        ("index-write", "notes", "is within the corpus"),
    ],
)
def test_a_folder_that_cannot_be_used_is_one_line(corpus, tmp_path, button, folder, error):
    notes = str(corpus) if folder == "notes" else ""
    app = files_tab(**{"index-folder": str(tmp_path / folder), "index-corpus": notes})
    [shown] = plain(clicked(app, button).error)
    assert error in shown
    assert "uploads" not in app.session_state or not app.session_state["uploads"]


@pytest.mark.usefixtures("_own_machine")
def test_an_index_beyond_the_ranges_of_the_widgets_is_refused(corpus, encoder, tmp_path):
    settings = IndexSettings("all-MiniLM-L6-v2", Splitting("fixed", 8, 0))
    update_index(corpus, tmp_path / "index", encoder, settings)
    [shown] = plain(clicked(files_tab(**{"index-folder": str(tmp_path / "index")}), "index-open").error)
    assert "was made with chunk size 8, the app has 16 to 512" in shown


@pytest.mark.usefixtures("_own_machine")
@pytest.mark.parametrize("is_mapped", [True, False])
def test_vectors_become_a_folder_and_it_is_searched_where_it_is(
    is_mapped, corpus, encoder, tmp_path, monkeypatch
):
    monkeypatch.setattr("engine.retrieval.stored.index_folder.READ_WHOLE", 0 if is_mapped else 10**6)
    made = update_index(corpus, tmp_path / "made", encoder, IndexSettings("all-MiniLM-L6-v2", MADE_WITH))
    index, documents = given_documents(replace(made.stored.index, ann=None))
    given = {"vector-files": {"a.npz": UploadedVectors("a.npz", index, encoder, documents)}}
    given |= {"searched": ["a.npz"], "index-folder": str(tmp_path / "given")}
    app = clicked(files_tab(**given), "index-write")
    assert plain(app.success)[-1] == f"Written: {len(index.chunks)} chunks with their vectors of a.npz."
    opened = clicked(files_tab(**{"index-folder": str(tmp_path / "given")}), "index-open").session_state
    assert opened["searched"] == ["given"]
    assert opened["vector-files"]["given"].index.is_mapped == is_mapped
    state = {name: opened[name] for name in ("vector-files", "searched")}
    app = app_page("ask", **state, queued_question="What was painted green?").run()
    assert f"1 document · {len(index.chunks)} chunks · " in said(app)
    assert "lighthouse" in app.session_state["answer"].retrieved.hits[0].chunk.text
    app = files_tab(**state)
    assert ("read where a search finds them" in said(app)) == is_mapped


@pytest.mark.parametrize("public", [True, False])
def test_no_folder_is_opened_for_visitors_from_elsewhere(public, monkeypatch):
    monkeypatch.setattr("pages.documents.index_folder.is_local", lambda: public)
    if public:
        monkeypatch.setenv(PUBLIC, "1")
    app = files_tab()
    assert "index-open" not in {button.key for button in app.button}


def test_all_kinds_are_compared_and_what_they_lost_is_listed(encoder, monkeypatch):
    monkeypatch.setattr("engine.retrieval.index_choice.EFFORTS", (1,))
    monkeypatch.setattr("engine.retrieval.index_choice.FEWEST_CHUNKS", 40)
    monkeypatch.setattr("pages.documents.index_kinds.FEWEST_CHUNKS", 40)
    monkeypatch.setattr("engine.retrieval.index_kinds.EXACT_SHARE", 0)
    monkeypatch.setattr("engine.retrieval.index_kinds.LEAST_PER_LIST", 15)
    text = "\n\n".join(
        f"Note {n}: the {word} of day {n}." for n in range(30) for word in ("bees & figs", "bread")
    )
    state = {"documents-tab": "Index", "index_kind": "ivf", "chunk_tokens": 16}
    app = app_page("documents", **own_documents(Document("a.txt", text)), **state).run()
    [reason] = [box.value for box in app.info]
    assert reason.startswith("Exact search: IVF (as asked for) finds only")
    [measured] = [table for table in tables(app) if "Recall@10" in table]
    assert list(measured["Kind"]) == [kind.label for kind in INDEX_KINDS.values()]
    app.session_state["lost-kind"] = "ivf"
    app.text_input("lost-question").input("Which day was the bread?").run()
    [lost] = [table for table in tables(app) if "Searched for" in table]
    assert 0 < len(lost) <= MAX_LOST
    assert any("bees & figs" in quoted for quoted in lost["Lost"])
