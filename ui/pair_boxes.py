"""The boxes of a question and a passage that a page takes apart together."""

import streamlit as st

from ui.current import current_passage, follow, follow_question
from ui.documents import chosen_documents
from ui.widgets import MOST_QUESTION, check_typed, kept

QUESTION = "What happens to text beyond the token limit?"
PASSAGE = "The encoder reads 256 tokens. What lies beyond is dropped without a word."
MAX_CHARACTERS = 5_000


def pair_boxes(page: str) -> tuple[str, str]:
    """Draw the boxes of the question and of the passage, whose keys begin with ``page``; return both."""
    key, passage = f"{page}-passage", current_passage()
    texts = {document.name: document.text for document in chosen_documents()}
    if passage is not None and passage.document in texts:
        follow(key, passage, texts[passage.document][passage.start : passage.end])
    st.session_state.setdefault(key, PASSAGE)
    changed = follow_question(f"{page}-question", QUESTION)
    question = st.text_input("Question", **kept(f"{page}-question"), on_change=changed)
    text = st.text_area(
        "Passage",
        **kept(key),
        height=100,
        help="The passage of the other pages, or any text. The model reads it up to its token limit.",
    )
    return check_typed(question, MOST_QUESTION), check_typed(text, MAX_CHARACTERS)
