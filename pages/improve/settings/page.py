"""Best settings: grids of settings measured on questions, compared beyond chance, and applied to the app."""

import streamlit as st

from pages.improve.settings.experiments import show_running
from pages.improve.settings.grid import baseline_configuration, show_grid
from pages.improve.settings.results import show_results
from pages.improve.settings.runs import show_runs
from ui.documents import NoDocumentError
from ui.models import load_encoder
from ui.questions.answers import questions_to_answer
from ui.questions.sets import question_set_picker
from ui.settings import search_sidebar
from ui.uploaded_vectors import reason_unavailable, uploaded_vectors

TABS = ("Grid", "Results", "Runs")


def tabs_key() -> str:
    """Return the key of the tabs: a new one where the app itself has just chosen a tab.

    The browser keeps reporting the tab that was clicked last, which would undo that choice.
    """
    state = st.session_state
    if wanted := state.pop("experiments-tab", None):
        state["experiments-moves"] = state.get("experiments-moves", 0) + 1
        state[f"experiments-tab-{state['experiments-moves']}"] = wanted
    return f"experiments-tab-{state.get('experiments-moves', 0)}"


def main() -> None:
    """Draw the page."""
    encoder = load_encoder()
    search = search_sidebar(encoder)
    documents, cut = search.documents, search.cut
    show_running()
    grid, results, runs = st.tabs(list(TABS), on_change="rerun", key=tabs_key())
    if grid.open:
        with grid:
            if not documents:
                raise NoDocumentError
            if (uploaded := uploaded_vectors(documents)) is not None:
                why = "Settings are compared by cutting and embedding documents anew"
                raise NoDocumentError(
                    f"{reason_unavailable(uploaded, why)} On the command line, sweep --vectors measures it "
                    "next to a grid."
                )
            questions = question_set_picker(documents)
            show_grid(documents, encoder, cut, questions, questions_to_answer(documents, questions))
    if results.open:
        with results:
            show_results(baseline_configuration(encoder, cut))
    if runs.open:
        with runs:
            show_runs()


main()
