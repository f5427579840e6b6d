"""Ways from one page to another that take a question along."""

import streamlit as st

# The ways to name the passage of a diagnosis.
LABELLED, PASTED, SEARCHED = "A labelled question", "Paste the passage", "Find it in a document"


def open_diagnosis(question: str) -> None:
    """Open the diagnosis of a question whose passage the user then finds in a document."""
    ways = {f"diagnose-way-{has_labels}": SEARCHED for has_labels in (True, False)}
    st.session_state.update(ways | {"diagnose-question": question})
    st.switch_page("pages/improve/diagnose/page.py")
