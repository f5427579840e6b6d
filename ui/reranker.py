"""The choice of a cross-encoder, and what it costs."""

import streamlit as st

from engine.errors import GlassboxError
from engine.evaluation.sweep_cost import pair_seconds
from engine.retrieval.rerank import RERANK_DEPTH
from ui.models import choose_reranker, reranker_name, reranker_named
from ui.text import escape_markdown, readable_seconds, show_error

SAMPLE = "What a passage of the usual size says, in so many words. " * 12


def reranker_picker() -> None:
    """Draw the choice of a cross-encoder."""
    state, name = st.session_state, reranker_name()
    with st.popover("Cross-encoder", icon=":material/compare_arrows:", type="tertiary"):
        st.caption(f"Loaded: {escape_markdown(name)}" if name else "None is loaded.")
        st.text_input(
            "Folder or Hugging Face id",
            key="reranker-source",
            placeholder="cross-encoder/ms-marco-MiniLM-L6-v2",
            help="A model that reads question and chunk together and gives one score, as "
            "sentence-transformers saves it. It reorders the best chunks of the hybrid search: slower than "
            "vectors, and often better.",
        )
        st.button("Load", key="reranker-load", on_click=load_typed_reranker)
        if name:
            st.button("Use none", key="reranker-none", on_click=choose_reranker, args=("",))
        if error := state.pop("reranker-error", None):
            show_error(error)


def load_typed_reranker() -> None:
    """Load the cross-encoder that was typed, and search with it; keep the error if it cannot be loaded."""
    state = st.session_state
    if not (name := state["reranker-source"].strip()):
        return
    try:
        choose_reranker(name)
        state["retriever"] = "cross-encoder"
    except GlassboxError as error:
        state["reranker-error"] = str(error)


def show_reranking_time() -> None:
    """Say how long the loaded cross-encoder takes for a question."""
    seconds = RERANK_DEPTH * seconds_of(reranker_name())
    st.caption(f"Reads {RERANK_DEPTH} chunks with each question: about {readable_seconds(seconds)} here.")


@st.cache_resource(max_entries=4, show_spinner="Timing the cross-encoder…")
def seconds_of(name: str) -> float:
    """Time a cross-encoder on chunks of the usual size; return the seconds of one."""
    return pair_seconds([SAMPLE] * 8, reranker_named(name))
