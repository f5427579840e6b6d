"""A page begins with the session's question, document and passage; what is chosen there goes on."""

from engine.documents.document import Chunk
from engine.inspection.diagnosis.location import Location
from tests.apps import app_of, app_within
from ui.current import nearest

NAME = "inside_the_pipeline.md"
CHUNKS = [Chunk("d.md", start, start + 10, "x" * 10, 3) for start in (0, 8, 16)]


def boxes():
    import streamlit as st

    from engine.documents.document import Chunk, Document
    from ui.current import document_choice, follow_chunk, follow_question

    own = st.session_state.get("own", "Why?")
    st.text_input("Question", key="question", on_change=follow_question("question", own))
    name = document_choice([Document("a.md", ""), Document("b.md", "")], "document").name
    starts = range(0, 50 if name == "a.md" else 20, 10)
    chunks = [Chunk(name, start, start + 10, "x" * 10, 3) for start in starts]
    changed = follow_chunk("number", name, chunks)
    st.number_input("Chunk", 1, len(chunks), key="number", on_change=changed)


def answered():
    from types import SimpleNamespace

    import streamlit as st

    from ui.asking import store_answer

    quotes = (SimpleNamespace(document="a.md", start=20, end=30),)
    answer = st.session_state.setdefault("given", SimpleNamespace(quotes=quotes, reading=None))
    st.session_state["asked"] = SimpleNamespace(documents={})
    store_answer(SimpleNamespace(result=lambda: answer))


def test_the_chunk_of_a_passage_is_the_one_that_shares_most_of_it():
    spans = (0, 3), (9, 15), (7, 20), (12, 30), (25, 26), (26, 40), (3, 3)
    found = [nearest(Location("d.md", start, end), CHUNKS) for start, end in spans]
    assert found == [1, 2, 2, 3, 3, None, None]


def test_a_page_begins_with_the_session_s_question_document_and_passage_or_its_own():
    passage = Location("a.md", 33, 36)
    state = {"current-question": "Who?", "current-document": "a.md", "current-passage": passage}
    app = app_of(boxes, **state).run()
    assert [app.text_input[0].value, app.selectbox[0].value, app.number_input[0].value] == ["Who?", "a.md", 4]
    app = app_of(boxes, **{"current-document": "gone.md"}).run()
    assert [app.text_input[0].value, app.selectbox[0].value, app.number_input[0].value] == ["Why?", "a.md", 1]
    app.session_state["own"] = ""  # that of other documents
    assert app.run().text_input[0].value == ""


def test_what_is_chosen_on_a_page_becomes_the_session_s():
    app = app_of(boxes, **{"current-question": "Who?"}).run()
    app.text_input[0].set_value("Where?").run()
    app.number_input[0].set_value(5).run()
    state = app.session_state
    assert state["current-question"] == "Where?"
    assert state["current-document"] == "a.md"
    assert state["current-passage"] == Location("a.md", 40, 50)
    app.text_input[0].set_value("").run()
    assert app.text_input[0].value == ""
    assert state["current-question"] == "Where?"
    assert app.number_input[0].value == 5
    app.selectbox[0].set_value("b.md").run()  # which begins with its first chunk
    assert app.number_input[0].value == 1


def test_the_passage_of_an_answer_is_its_first_quote():
    app = app_of(answered).run()
    assert app.session_state["current-passage"] == Location("a.md", 20, 30)
    app.session_state["current-passage"] = Location("a.md", 0, 10)  # chosen since
    app.run()
    assert app.session_state["current-passage"] == Location("a.md", 0, 10)


def test_the_passage_stays_where_the_same_text_is_cut_otherwise():
    state = {"documents-tab": "Chunks", "searched": [NAME], "current-passage": Location(NAME, 4000, 4100)}
    app = app_within("documents", **state)
    before = app.number_input(key="chunks-number-a").value
    app.session_state["chunk_tokens"] = 64
    app.run()
    assert app.number_input(key="chunks-number-a").value > before > 1
