"""What is said where documents or a question are in languages that the embedding model was not trained on."""

import streamlit as st

from engine.retrieval.language_fit import MANY_LANGUAGES
from ui.report import Report
from ui.server_settings import is_public


def show_language_note(report: Report, note: str) -> None:
    """Draw and keep a note of `language_note`, with the way to use a model that reads many languages."""
    if not note:
        return
    report.note(st.warning, ":material/translate:", note)
    if is_public():
        return
    with st.popover("Use a model of many languages", icon=":material/translate:", type="tertiary"):
        st.caption("Stop the app, and start it by one of these lines. The model is downloaded once.")
        for name in MANY_LANGUAGES:
            st.code(
                f"GLASSBOX_ENCODER={name} streamlit run streamlit_app.py", language="bash", wrap_lines=True
            )
        st.caption("Or measure one against this model, on your documents and questions.")
        for name in MANY_LANGUAGES:
            short = name.partition("/")[2]
            if st.button(
                f"Measure {short}", key=f"measure-{short}", icon=":material/science:", type="tertiary"
            ):
                st.session_state["grid-model"] = name
                st.switch_page("pages/improve/settings/page.py")
