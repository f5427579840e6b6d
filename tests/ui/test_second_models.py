"""Models beside the encoder are loaded in the sidebar, and give retrievers like the others."""

from engine.weights.catalog import DEFAULT_SPARSE
from tests.apps import app_of, said
from tests.engine.models.test_multi_vector import save_stanford
from tests.engine.models.test_sparse_encoder import save_masked_lm
from tests.sentence_transformer_folders import save_bert

NAME = "cross-encoder"


def sidebar():
    from ui.models import load_encoder
    from ui.settings import search_sidebar

    search_sidebar(load_encoder())


def load(source, app=None, kind="reranker"):
    app = app_of(sidebar).run() if app is None else app
    app.text_input(key=f"{kind}-source").set_value(str(source))
    return app.button(key=f"{kind}-load").click().run()


def test_there_is_none_at_first():
    app = app_of(sidebar).run()
    assert "None is loaded." in said(app)
    assert len(app.selectbox(key="retriever").options) == 7


def test_the_one_that_is_loaded_orders_the_chunks_and_its_time_is_told(reranker_folder):
    app = load(reranker_folder)
    assert app.selectbox(key="retriever").value == NAME
    assert "Reads 50 chunks with each question: about" in said(app)
    app = app.button(key="reranker-none").click().run()
    assert app.selectbox(key="retriever").value == "weighted"


def test_a_folder_of_another_kind_changes_nothing(reranker_folder, tmp_path):
    app = load(save_bert(tmp_path / "bert"), load(reranker_folder))
    assert "no classifier of the families" in app.error[0].value
    assert app.session_state["reranker"] == str(reranker_folder)


def test_others_are_loaded_alike_and_one_by_one_click(tmp_path, monkeypatch):
    app = load(save_stanford(tmp_path / "late"), kind="multi_vector")
    assert app.selectbox(key="retriever").value == "late-reordered"
    folder = save_masked_lm(tmp_path / "words")
    monkeypatch.setattr("engine.models.transformer.model_path", lambda source, on_progress: folder)
    app = app.button(key="sparse-picker").click().run()
    assert app.session_state["sparse"] == DEFAULT_SPARSE
    assert app.selectbox(key="retriever").value == "sparse"
    assert len(app.selectbox(key="retriever").options) == 11
