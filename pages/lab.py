"""The lab: the original transformer by hand, from one worked example to training."""

from collections.abc import Callable

import streamlit as st

from engine.errors import GlassboxError
from ui.answer import escape_markdown
from ui.chunk_settings import chunk_settings
from ui.corpus import document_picker
from ui.frame import require_frame
from ui.lab_decoder import show_decoder_training
from ui.lab_seq2seq import show_seq2seq
from ui.lab_tuning import show_purpose, show_tuning
from ui.lab_worked import show_worked_example
from ui.models import load_encoder
from ui.question_sets import question_set_picker


def show_own_decoder() -> None:
    """Draw the choice of documents, and the decoder that learns from them."""
    with st.sidebar:
        documents = document_picker()
    show_decoder_training(documents)


def show_tuned_search() -> None:
    """Draw the choice of documents and questions, and the search that is tuned to them."""
    show_purpose()
    encoder = load_encoder()
    with st.sidebar:
        documents = document_picker()
        with st.expander("Chunks", icon=":material/content_cut:"):
            cut = chunk_settings(encoder)
    questions = question_set_picker(documents)
    show_tuning(documents, questions, encoder, cut)


VIEWS: dict[str, Callable[[], None]] = {
    "The worked example": show_worked_example,
    "A decoder from scratch": show_own_decoder,
    "Learn to translate": show_seq2seq,
    "Tune the search": show_tuned_search,
}


def main() -> None:
    """Draw the page."""
    require_frame("pages/lab.py")
    st.title("The lab")
    st.write(
        "Take a transformer apart by hand, every number of it; then train some from scratch, and tune the "
        "search to your own questions, with gradients written out in NumPy."
    )
    try:
        for tab, show in zip(
            st.tabs(list(VIEWS), on_change="rerun", key="lab-tab"), VIEWS.values(), strict=True
        ):
            if tab.open:
                with tab:
                    show()
    except GlassboxError as error:
        st.error(escape_markdown(str(error)), icon=":material/error:")


main()
