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
from ui.settings import passages_setting, pooling_setting, retriever_setting


def show_questions_and_grid(documents: Sequence[Document], encoder: Encoder, cut: Cut) -> None:
    """Draw the choice of questions, and the grid that is measured on them."""
    if not documents:
        st.info("No document is chosen. Add one or pick some under “Search in” in the sidebar.")
        return
    questions = question_set_picker(documents)
    show_grid(documents, encoder, cut, questions)


VIEWS: dict[str, Callable[[Sequence[Document], Encoder, Cut, str, str], None]] = {
    "Grid": lambda documents, encoder, cut, pooling, retriever: show_questions_and_grid(
        documents, encoder, cut
    ),
    "Results": lambda documents, encoder, cut, pooling, retriever: show_results(),
    "Runs": lambda documents, encoder, cut, pooling, retriever: show_runs(),
    "Label questions": show_labelling,
    "Smoke test": show_self_test,
}


def tabs_key() -> str:
    """Return the key of the tabs: another one where the app itself has just chosen a tab.

    The browser goes on telling which tab was clicked last, and so would take that choice back.
    """
    state = st.session_state
    if wanted := state.pop("experiments-tab", None):
        state["experiments-moves"] = state.get("experiments-moves", 0) + 1
        state[f"experiments-tab-{state['experiments-moves']}"] = wanted
    return f"experiments-tab-{state.get('experiments-moves', 0)}"


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
                pooling = pooling_setting()
            with st.expander("Search", icon=":material/search:"):
                retriever = retriever_setting()
                passages_setting()
        show_running()
        for tab, view in zip(st.tabs(list(VIEWS), on_change="rerun", key=tabs_key()), VIEWS, strict=True):
            if tab.open:
                with tab:
                    VIEWS[view](documents, encoder, cut, pooling, retriever)
    except GlassboxError as error:
        st.error(escape_markdown(str(error)), icon=":material/error:")


main()
