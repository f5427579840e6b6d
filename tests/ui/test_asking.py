from types import SimpleNamespace

import pytest
import streamlit as st

from engine.errors import InputError
from engine.generation.settings import AnswerSettings, SearchSettings
from engine.retrieval.relevance import null_scores_of
from tests.apps import app_of, app_within
from tests.indexes import index_of_texts

BOXES = {
    "ask": "question",
    "inside/answer": "inside-answer-question",
}
QUESTION = "When was the Vardholm tower finished?"
# Words find the first, vectors the second.
TEXTS = (
    "Vardholm bread: when it is finished, and finished it is when brown, take it out.",
    "The building of the tower came to its end in 1891.",
)


def page():
    import streamlit as st

    from ui.asking import start_answer
    from ui.models import load_encoder

    state = st.session_state
    start_answer(state["wanted"], state["index"], state["null_scores"], state["settings"], load_encoder())
    state["answer"] = state["answer_job"].result()


@pytest.mark.parametrize(("retriever", "first"), [("dense", 1), ("bm25", 0)])
def test_an_answer_is_searched_for_as_the_sidebar_says(encoder, decoder, retriever, first):
    index = index_of_texts(TEXTS, encoder)
    settings = AnswerSettings(SearchSettings(2, 0, retriever), 512, max_new_tokens=2)
    given = {
        "wanted": QUESTION,
        "index": index,
        "null_scores": null_scores_of(index, encoder),
        "settings": SimpleNamespace(answer=settings, follow_ups=True),
    }
    answer = app_of(page, **given).run().session_state["answer"]
    assert answer.retrieved.retriever == retriever
    assert answer.retrieved.hits[0].chunk.text == TEXTS[first]


def ask_on(page, question=QUESTION):
    """Ask on a page over the shortest document, as somebody does who types and presses the button."""
    app = app_within(page, searched=["inside_the_pipeline.md"])
    app.text_input(key=BOXES[page]).set_value(question)
    return app.button(key=f"FormSubmitter:{BOXES[page]}-form-Ask").click().run()


@pytest.mark.parametrize("page", BOXES)
def test_a_question_outlives_an_interruption_while_the_page_gets_ready(monkeypatch, encoder, decoder, page):
    begun = []

    def ready(*arguments):
        begun.append(arguments)
        if len(begun) == 1:
            st.rerun()  # as where something is touched meanwhile: no button counts as pressed any more

    monkeypatch.setattr("ui.corpus.warm_bm25", ready)
    app = ask_on(page)
    assert len(begun) == 2
    assert app.session_state["asked"].question == QUESTION
    app.run()
    assert len(begun) == 2  # and is answered once


@pytest.mark.parametrize("page", BOXES)
def test_a_question_for_which_a_page_cannot_get_ready_is_not_asked_again(monkeypatch, encoder, decoder, page):
    def ready(*arguments):
        raise InputError("nothing to search in: add a document")

    monkeypatch.setattr("ui.corpus.warm_bm25", ready)
    app = ask_on(page)
    assert "nothing to search in" in app.error[0].value
    app.run()
    assert not app.error


@pytest.mark.parametrize("page", BOXES)
def test_a_question_that_is_too_long_is_refused_with_the_limit(encoder, page):
    app = ask_on(page, "How long is it? " * 200)
    assert "has 3,200 characters, and 2,000 are read" in app.warning[0].value
    assert "asked" not in app.session_state
    app.run()
    assert not app.warning
