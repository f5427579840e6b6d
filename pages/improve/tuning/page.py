"""Tune the search to labelled questions."""

import streamlit as st

from pages.improve.tuning.tuning import show_tuning
from ui.chunk_settings import chunk_settings
from ui.documents import document_picker
from ui.models import load_encoder
from ui.questions.sets import question_set_picker
from ui.settings_card import show_settings_card


def main() -> None:
    """Draw the page."""
    st.write(
        "Each question is pulled towards the chunks that answer it and pushed away from the rest "
        "([InfoNCE](https://arxiv.org/abs/1807.03748)). The result is tested on questions, and on documents, "
        "that were left out of training. Texts are compared by mean vectors, whatever pooling and retriever "
        "the app uses."
    )
    encoder = load_encoder()
    with st.sidebar:
        documents = document_picker()
        show_settings_card(documents, encoder)
        with st.expander("Chunks", icon=":material/content_cut:"):
            cut = chunk_settings(encoder)
    show_tuning(documents, question_set_picker(documents), encoder, cut)


main()
