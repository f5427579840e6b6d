"""Ways from one page to another that take a question along."""

import streamlit as st

from ui.documents import chosen_documents

# The ways to name the passage of a diagnosis.
LABELLED, PASTED, SEARCHED = "A labelled question", "Paste the passage", "Find it in a document"


def open_diagnosis(question: str, document: str | None) -> None:
    """Open the diagnosis of a question whose passage the user then finds in a document, by its name."""
    ways = {f"diagnose-way-{has_labels}": SEARCHED for has_labels in (True, False)}
    st.session_state.update(ways | {"diagnose-question": question})
    names = [each.name for each in chosen_documents()]
    if document in names:
        st.session_state["diagnose-document"] = names.index(document)
    st.switch_page("pages/improve/diagnose/page.py")
