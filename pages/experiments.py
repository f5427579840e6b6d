"""Experiments: grids of settings measured on questions, told apart from chance, and applied to the app."""

from collections.abc import Callable, Sequence

import streamlit as st

from engine import Encoder
from engine.documents.document import Document
from engine.errors import GlassboxError
from ui.answer import escape_markdown
from ui.chunk_settings import Cut, chunk_settings
from ui.corpus import document_picker
from ui.experiment_compare import show_runs
from ui.experiment_grid import show_grid
from ui.experiment_results import show_results
from ui.experiment_running import show_running
from ui.frame import require_frame
from ui.models import load_encoder
from ui.question_labels import show_labelling
from ui.question_self_test import show_self_test
from ui.question_sets import question_set_picker


def show_questions_and_grid(documents: Sequence[Document], encoder: Encoder, cut: Cut) -> None:
    """Draw the choice of questions, and the grid that is measured on them."""
    if not documents:
        st.info("No document is chosen. Add one or pick some under “Search in” in the sidebar.")
        return
    with st.expander("Questions", icon=":material/quiz:"):
        questions = question_set_picker(documents)
    show_grid(documents, encoder, cut, questions)


VIEWS: dict[str, Callable[[Sequence[Document], Encoder, Cut], None]] = {
    "Grid": show_questions_and_grid,
    "Results": lambda documents, encoder, cut: show_results(),
    "Runs": lambda documents, encoder, cut: show_runs(),
    "Label questions": show_labelling,
    "Smoke test": show_self_test,
}


def main() -> None:
    """Draw the page."""
    require_frame("pages/experiments.py")
    st.title("Experiments")
    st.write(
        "Which chunk size, which pooling, which search? Measure every combination on questions whose answers "
        "are known, see which differences are more than chance, and take the best settings with one click."
    )
    try:
        encoder = load_encoder()
        with st.sidebar:
            documents = document_picker()
            with st.expander("Chunks", icon=":material/content_cut:"):
                cut = chunk_settings(encoder)
        show_running()
        for tab, view in zip(
            st.tabs(list(VIEWS), on_change="rerun", key="experiments-tab"), VIEWS, strict=True
        ):
            if tab.open:
                with tab:
                    VIEWS[view](documents, encoder, cut)
    except GlassboxError as error:
        st.error(escape_markdown(str(error)), icon=":material/error:")


main()
