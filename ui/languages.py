"""What is said where documents or a question are in languages that the embedding model was not trained on."""

import streamlit as st

from engine.retrieval.language_fit import MANY_LANGUAGES
from ui.report import Report
from ui.server_settings import is_public


def show_language_note(report: Report, note: str) -> None:
    """Draw and keep a note of `language_note`, with a button for each model that reads many languages."""
    if not note:
        return
    report.note(st.warning, ":material/translate:", note)
    if is_public():
        return
    with st.container(horizontal=True):
        for name in MANY_LANGUAGES:
            if st.button(
                f"Compare {name.partition('/')[2]}",
                type="tertiary",
                help=f"Opens “Best settings” with this model, to measure it on your questions. To use it, "
                f"start the app with the environment variable GLASSBOX_ENCODER={name}.",
            ):
                st.session_state.update({"grid-model": name, "experiments-tab": "Grid"})
                st.switch_page("pages/improve/settings/page.py")
