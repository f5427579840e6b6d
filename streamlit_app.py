"""Glassbox: the list of pages, and the sidebar."""

import streamlit as st

st.set_page_config(page_title="Glassbox", page_icon=":material/deployed_code:", layout="wide")
page = st.navigation(
    [st.Page("pages/ask.py", title="Ask your documents", icon=":material/forum:", default=True)]
)
st.sidebar.markdown("### :material/deployed_code: Glassbox")
page.run()
