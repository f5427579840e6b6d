"""Tune the search to labelled questions."""

import streamlit as st

from pages.improve.tuning.tuning import show_tuning
from ui.models import load_encoder
from ui.questions.sets import question_set_picker
from ui.settings import chunks_sidebar


def main() -> None:
    """Draw the page."""
    st.write(
        "Each question is pulled towards the chunks that answer it and pushed away from the rest "
        "([InfoNCE](https://arxiv.org/abs/1807.03748)). The result is tested on questions, and on documents, "
        "that were left out of training. Texts are compared by mean vectors, whatever pooling and retriever "
        "the app uses."
    )
    encoder = load_encoder()
    documents, cut = chunks_sidebar(encoder)
    show_tuning(documents, question_set_picker(documents), encoder, cut)


main()
