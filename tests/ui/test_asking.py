import pytest
import streamlit as st

from engine.errors import InputError
from tests.apps import app_within

BOXES = {"ask": "question", "inside/answer": "inside-answer-question"}
QUESTION = "When was the Vardholm tower finished?"


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

    monkeypatch.setattr("ui.corpus.warm", ready)
    app = ask_on(page)
    assert len(begun) == 2
    assert app.session_state["asked"].question == QUESTION
    app.run()
    assert len(begun) == 2  # and is answered once


@pytest.mark.parametrize("page", BOXES)
def test_a_question_for_which_a_page_cannot_get_ready_is_not_asked_again(monkeypatch, encoder, decoder, page):
    def ready(*arguments):
        raise InputError("nothing to search in: add a document")

    monkeypatch.setattr("ui.corpus.warm", ready)
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
