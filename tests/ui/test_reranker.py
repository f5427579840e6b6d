"""A cross-encoder is loaded in the sidebar, and is then a retriever like the others."""

from tests.apps import app_of, said
from tests.sentence_transformer_folders import save_bert

NAME = "cross-encoder"


def sidebar():
    from ui.models import load_encoder
    from ui.settings import search_sidebar

    search_sidebar(load_encoder())


def load(source, app=None):
    app = app_of(sidebar).run() if app is None else app
    app.text_input(key="reranker-source").set_value(str(source))
    return app.button(key="reranker-load").click().run()


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
