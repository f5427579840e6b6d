"""The frame around every page."""

import streamlit as st
from streamlit.navigation.page import StreamlitPage


def require_frame(page: str) -> None:
    """Send a visitor through the app's own script, where a page is run without it.

    Streamlit runs the files of pages/ by themselves, without frame and layout, for addresses that are
    opened on a fresh server before anybody has opened the app.
    """
    if "framed" not in st.session_state:
        st.session_state["wanted_page"] = page
        st.switch_page("streamlit_app.py")


def run_framed(page: StreamlitPage) -> None:
    """Run a page inside the frame, or go on to the one that a visitor wanted."""
    st.session_state["framed"] = True
    if wanted := st.session_state.pop("wanted_page", None):
        st.switch_page(wanted)
    page.run()
