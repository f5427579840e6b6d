"""Tune the search, or the reader, to one's own questions."""

import streamlit as st

from pages.improve.tuning.reader import show_reader_tuning
from pages.improve.tuning.tuning import show_tuning
from ui.models import load_encoder
from ui.questions.sets import question_set_picker
from ui.settings import chunks_sidebar
from ui.widgets import choice

SEARCH, READER = "The search", "The reader"


def main() -> None:
    """Draw the page."""
    encoder = load_encoder()
    documents, cut = chunks_sidebar(encoder)
    tuned = choice(
        "Train",
        [SEARCH, READER],
        "tuning-part",
        "The search finds passages; the reader marks the words of a passage that answer.",
    )
    if tuned == READER:
        show_reader_tuning(documents, encoder, cut)
        return
    st.write(
        "The last layers of the encoder are trained, which takes minutes; documents then have to be embedded "
        "again. Each question is pulled towards the chunks that answer it and pushed away from the rest "
        "([InfoNCE](https://arxiv.org/abs/1807.03748)). The result is tested on questions, and on documents, "
        "that were left out of training. Texts are compared by mean vectors, whatever pooling and retriever "
        "the app uses."
    )
    show_tuning(documents, question_set_picker(documents), encoder, cut)


main()
