"""The question, the document and the passage that the session is about: each page begins with them.

A widget takes the session's value over once. What the user then types or picks there becomes the session's,
for all other pages.
"""

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.documents.document import Chunk, Document
from engine.inspection.diagnosis.location import Location
from ui.widgets import kept

QUESTION, DOCUMENT, PASSAGE = "current-question", "current-document", "current-passage"
# The ways to name the passage of a diagnosis.
LABELLED, PASTED, SEARCHED = "A labelled question", "Paste the passage", "Find it in a document"


def current_question() -> str:
    """Return the question, empty before the first one."""
    return str(st.session_state.get(QUESTION) or "")


def current_passage() -> Location | None:
    """Return the passage, if any."""
    return st.session_state.get(PASSAGE)


def set_question(question: str) -> None:
    """Make a question the session's, without the passage of the one before; a blank one changes nothing."""
    if question.strip():
        if question != current_question():
            st.session_state.pop(PASSAGE, None)
        st.session_state[QUESTION] = question


def clear_question() -> None:
    """Forget the question and its passage, and empty the box for the next one."""
    for key in (QUESTION, PASSAGE):
        st.session_state.pop(key, None)
    st.session_state["question"] = ""


def is_about_another(key: str, question: str, alike: float = 1.0) -> bool:
    """Whether what a page holds, by a key, was of another question, less than ``alike`` to this one."""
    former: str = st.session_state.get(key) or ""
    st.session_state[key] = question
    return bool(former) and SequenceMatcher(None, former.lower(), question.lower()).ratio() < alike


def set_document(name: str) -> None:
    """Make a document the session's."""
    st.session_state[DOCUMENT] = name


def set_passage(document: str, start: int, end: int, shown_by: str = "") -> None:
    """Make a passage and its document the session's; ``shown_by`` is the key of a widget that shows it."""
    passage = st.session_state[PASSAGE] = Location(document, start, end)
    set_document(document)
    if shown_by:
        st.session_state.setdefault("followed", {})[shown_by] = passage


def follow_question(key: str, default: str = "") -> Callable[[], None]:
    """Set a text box, by its key, to the session's question, or else a default; return its callback."""
    state, asked = st.session_state, current_question()
    if not asked and key in state:
        state.setdefault("followed", {}).setdefault(key, default)
    follow(key, asked or default, asked or default)
    return lambda: set_question(state[key])


def document_choice(documents: Sequence[Document], key: str, place: DeltaGenerator | None = None) -> Document:
    """Draw the choice of a document, which begins with the session's; return the document."""
    by_name, state = {document.name: document for document in documents}, st.session_state
    if (current := state.get(DOCUMENT)) in by_name:
        follow(key, current, current)
    name = (place or st).selectbox(
        "Document", list(by_name), **kept(key), on_change=lambda: set_document(state[key])
    )
    return by_name[name]


def follow_chunk(key: str, document: str, chunks: Sequence[Chunk]) -> Callable[[], None]:
    """Set the number, from 1, of a document's chunk to the session's passage; return its callback."""
    state, passage = st.session_state, current_passage()
    former = state.setdefault("followed", {}).get(key, (document, 0))
    if passage is not None and passage.document == document and (number := nearest(passage, chunks)):
        follow(key, (document, number), number)
    elif former[0] != document or state.get(key, 1) > len(chunks):
        follow(key, (document, 0), 1)

    def changed() -> None:
        chunk = chunks[state[key] - 1]
        set_passage(document, chunk.start, chunk.end)

    return changed


def follow(key: str, what: object, value: Any) -> None:
    """Set a widget to a value, unless it follows ``what`` already and has kept its state since."""
    followed: dict[str, object] = st.session_state.setdefault("followed", {})
    if key not in st.session_state or followed.get(key) != what:
        st.session_state[key] = value
    followed[key] = what


def nearest(passage: Location, chunks: Sequence[Chunk]) -> int | None:
    """Return the number, from 1, of the chunk that shares most characters with a passage; None for none."""
    shared = [min(chunk.end, passage.end) - max(chunk.start, passage.start) for chunk in chunks]
    most = max(shared, default=0)
    return 1 + shared.index(most) if most > 0 else None


def open_diagnosis(question: str) -> None:
    """Open the diagnosis of a question whose passage the user then finds in the documents."""
    st.session_state.update({f"diagnose-way-{has_labels}": SEARCHED for has_labels in (True, False)})
    st.session_state.update({"diagnose-words": "", "diagnose-answer": ""})
    set_question(question)
    st.switch_page("pages/improve/diagnose/page.py")
