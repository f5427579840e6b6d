"""Ways from one page to another that take a question along."""

import streamlit as st

from ui.current import set_document, set_question

# The ways to name the passage of a diagnosis.
LABELLED, PASTED, SEARCHED = "A labelled question", "Paste the passage", "Find it in a document"


def open_diagnosis(question: str, document: str | None) -> None:
    """Open the diagnosis of a question whose passage the user then finds in a document, by its name."""
    st.session_state.update({f"diagnose-way-{has_labels}": SEARCHED for has_labels in (True, False)})
    set_question(question)
    if document is not None:
        set_document(document)
    st.switch_page("pages/improve/diagnose/page.py")
