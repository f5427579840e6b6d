"""The page “Inside the reranker” says what a score is, and what it rests on."""

from engine.documents.document import Document
from engine.inspection.diagnosis.location import Location
from tests.apps import app_page, html_of, own_documents, said, tables

EVIL = "<script>alert(1)</script> a bead **bold**"
DOCUMENT = Document("beads.md", f"{EVIL} and a cafe.")
HARBOUR = (
    Document("tower.md", "The tower of Vardholm was finished in 1891."),
    Document("bees.md", "The keeper of the lighthouse kept bees."),
    Document("boats.md", "The boats go out to sea at high tide."),
)


def test_without_a_model_it_is_the_reader_and_says_how_to_load_one():
    app = app_page("inside/reranker").run()
    assert "No cross-encoder is loaded" in said(app)
    assert "“dropped without a word”" in said(app)


def test_the_reader_orders_the_passages_of_the_last_search_anew():
    state = {"queued_question": "When was the tower finished?", "min_relevance": 0}
    answer = app_page("inside/answer", **state, **own_documents(*HARBOUR)).run().session_state["answer"]
    app = app_page("inside/reranker", answer=answer).run()
    [table] = tables(app)
    assert list(table["After"]) == [1, 2, 3]
    assert sorted(table["Before"]) == [1, 2, 3]
    assert table["Document"][0] == "tower.md"
    assert table["Reader's score"].is_monotonic_decreasing
    assert "The words win by" in said(app)
    app.selectbox[0].select_index(2).run()
    assert "No answer wins by" in said(app)


def test_the_session_s_question_and_passage_are_taken_apart(reranker_folder):
    place = {"current-document": DOCUMENT.name, "current-passage": Location(DOCUMENT.name, 0, len(EVIL))}
    state = {"reranker": str(reranker_folder), "current-question": "ab cafe?", **place}
    state |= own_documents(DOCUMENT)
    app = app_page("inside/reranker", **state).run()
    assert app.text_input(key="reranker-question").value == "ab cafe?"
    assert app.text_area[0].value == EVIL
    finding = next(line for line in said(app).split("\n") if "gives this pair" in line)
    assert "more than without any other word" in finding
    assert "<script>" not in html_of(app)
    app.session_state["reranker-chapter"] = "Attention between the texts"
    assert "of their attention, on average over all heads" in said(app.run())


def test_what_is_cut_off_is_told(reranker_folder):
    app = app_page("inside/reranker", reranker=str(reranker_folder), **{"reranker-passage": "bead " * 50})
    assert "tokens are read, the limit of the model" in said(app.run())
