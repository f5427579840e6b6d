"""Glassbox: the list of pages, and the sidebar."""

import streamlit as st

from ui.frame import run_framed

st.set_page_config(page_title="Glassbox", page_icon=":material/deployed_code:", layout="wide")
page = st.navigation(
    [
        st.Page("pages/ask.py", title="Ask your documents", icon=":material/forum:", default=True),
        st.Page("pages/documents.py", title="Documents and chunks", icon=":material/topic:"),
        st.Page("pages/generate.py", title="Inside the answer", icon=":material/account_tree:"),
        st.Page("pages/attention.py", title="Inside the model", icon=":material/visibility:"),
        st.Page("pages/pooling.py", title="Pooling compared", icon=":material/merge:"),
        st.Page("pages/experiments.py", title="Experiments", icon=":material/science:"),
        st.Page("pages/diagnose.py", title="Why wasn't it found?", icon=":material/troubleshoot:"),
        st.Page("pages/lab.py", title="The lab", icon=":material/biotech:"),
        st.Page("pages/truncation.py", title="What is never read", icon=":material/content_cut:"),
        st.Page("pages/verification.py", title="Verify and break", icon=":material/fact_check:"),
    ]
)
st.sidebar.markdown("### :material/deployed_code: Glassbox")
run_framed(page)
