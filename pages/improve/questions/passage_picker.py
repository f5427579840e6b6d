"""Marking a passage: a run of consecutive sentences of a document, shown in its text."""

from collections.abc import Sequence
from html import escape

import streamlit as st

from engine.documents.document import Document
from engine.evaluation.questions import Reference
from engine.wording import shortened
from ui.colours import PASSAGE
from ui.current import current_passage
from ui.questions.search import sentences_of
from ui.text import mark_html, show_text
from ui.widgets import kept, more_options

WINDOW = 40  # sentences offered on either side of the mark
AROUND = 160  # characters shown on either side of the passage
LABEL = 60  # characters of a sentence in a list


def mark_sentences(document: Document, start: int, end: int) -> None:
    """Mark the sentences that overlap ``document.text[start:end]``, the first one where none does."""
    state, spans = st.session_state, sentences_of(document.text)
    touched = [number for number, span in enumerate(spans) if span[0] < end and start < span[1]] or [0]
    state["passage-document"] = document.name
    state["passage-from"], state["passage-to"] = touched[0], touched[-1]
    state["passage-place"] = touched[0] + 1


def mark_nothing() -> None:
    """Forget the mark, which was of another question or document."""
    st.session_state.update({"passage-from": None, "passage-place": 1})


def passage_picker(documents: Sequence[Document]) -> tuple[Document, Reference] | None:
    """Draw the choice of a document and a run of its sentences; return both, or None while none is marked."""
    state, by_name = st.session_state, {document.name: document for document in documents}
    passage = current_passage()
    if passage is not None and passage.document in by_name and state.get("passage-marked") != passage:
        state["passage-marked"] = passage
        mark_sentences(by_name[passage.document], passage.start, passage.end)
    if state.get("passage-document") not in by_name:
        mark_nothing()
    name = st.selectbox(
        "Document",
        list(by_name),
        **kept("passage-document"),
        on_change=mark_nothing,
        help="The document that contains the answer.",
    )
    document = by_name[name]
    spans = sentences_of(document.text)
    if not spans:
        st.info("This document contains no text.")
        return None
    if (numbers := sentence_range(document.text, spans)) is None:
        return None
    start, end = spans[numbers[0]][0], spans[numbers[1]][1]
    show_marked(document.text, start, end)
    return document, Reference(document.text[start:end], start, end)


def sentence_range(text: str, spans: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """Draw the choice of the first and the last sentence; return their numbers, None while none is marked."""
    state = st.session_state

    def label(number: int) -> str:
        start, end = spans[number]
        return f"{number + 1}. {shortened(text[start:end], LABEL)}"

    def move() -> None:
        state["passage-from"] = state["passage-to"] = state["passage-place"] - 1

    if len(spans) > WINDOW:
        with more_options():
            st.slider(
                "Place in the document",
                1,
                len(spans),
                **kept("passage-place"),
                on_change=move,
                help="Sentences, counted from 1. Moves the mark there.",
            )
    if state.get("passage-from") is not None:
        state["passage-from"] = min(state["passage-from"], len(spans) - 1)
    near = state.get("passage-from") or 0
    left, right = st.columns(2)
    first = left.selectbox(
        "From the sentence",
        range(max(0, near - WINDOW), min(len(spans), near + WINDOW + 1)),
        index=None,
        format_func=label,
        **kept("passage-from"),
        placeholder="Choose it, or press “Mark it” above",
        help="Sentences near the mark; move it under “More options” to reach others.",
    )
    if first is None:
        return None
    reach = min(len(spans), first + WINDOW + 1)
    state["passage-to"] = min(max(state.get("passage-to", 0), first), reach - 1)
    right.selectbox(
        "To the sentence",
        range(first, reach),
        format_func=label,
        **kept("passage-to"),
        help="Mark as little as answers the question: every marked character counts as relevant.",
    )
    return first, state["passage-to"]


def show_marked(text: str, start: int, end: int) -> None:
    """Draw ``text[start:end]``, marked, with the text around it."""
    before, after = max(0, start - AROUND), min(len(text), end + AROUND)
    with st.container(border=True):
        show_text(
            f"{'…' if before else ''}{escape(text[before:start])}"
            f"{mark_html(escape(text[start:end]), PASSAGE)}"
            f"{escape(text[end:after])}{'…' if after < len(text) else ''}",
            height=320,
        )
