"""Questions whose answers are known: labelled in the app, or made from sentences of the documents."""

import streamlit as st

from pages.improve.questions.labelling import show_labelling
from pages.improve.questions.self_test import show_self_test
from ui.documents import required_documents
from ui.models import load_encoder
from ui.settings import search_settings


def main() -> None:
    """Draw the page."""
    encoder = load_encoder()
    with st.sidebar:
        documents = required_documents()
        cut, pooling, retriever, _ = search_settings(encoder)
    labels, smoke_test = st.tabs(["Label questions", "Smoke test"], on_change="rerun", key="questions-tab")
    if labels.open:
        with labels:
            show_labelling(documents, encoder, cut, pooling, retriever)
    if smoke_test.open:
        with smoke_test:
            show_self_test(documents, encoder, cut, pooling, retriever)


main()
