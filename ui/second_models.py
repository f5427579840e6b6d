"""The choice of the second models, and what a cross-encoder costs."""

import streamlit as st

from engine.errors import GlassboxError
from engine.evaluation.sweep_cost import pair_seconds
from engine.models.reranker import Reranker
from engine.models.second_models import SECOND_MODELS
from engine.retrieval.rerank import RERANK_DEPTH
from engine.retrieval.retrievers import RETRIEVERS
from engine.weights.catalog import KNOWN_MODELS
from engine.wording import readable_bytes
from ui.models import choose_second, load_encoder, second_name
from ui.text import escape_markdown, readable_seconds, show_error

SAMPLE = "What a passage of the usual size says, in so many words. " * 12


def second_model_picker(*kinds: str) -> None:
    """Draw the choice of a model of each kind, all of `SECOND_MODELS` where none is given."""
    label = SECOND_MODELS[kinds[0]].label.capitalize() if len(kinds) == 1 else "Models for more retrievers"
    with st.popover(label, icon=":material/compare_arrows:", type="tertiary"):
        for kind in kinds or SECOND_MODELS:
            each, name = SECOND_MODELS[kind], second_name(kind)
            st.markdown(f"**{each.label.capitalize()}**")
            st.caption(f"Loaded: {escape_markdown(name)}" if name else "None is loaded.")
            default_button(kind)
            source = f"{kind}-source"
            st.text_input("Folder or Hugging Face id", key=source, placeholder=each.example, help=each.help)
            with st.container(horizontal=True):
                st.button("Load", key=f"{kind}-load", on_click=load_typed, args=(kind,))
                if name:
                    st.button("Use none", key=f"{kind}-none", on_click=choose_second, args=(kind, ""))
            show_load_error(kind)


def default_button(kind: str, place: str = "picker") -> None:
    """Draw the button that loads a kind's known model, unless there is none or it is loaded."""
    if (known := SECOND_MODELS[kind].default) and second_name(kind) != known:
        label = f"Load {known} ({readable_bytes(KNOWN_MODELS[known].size)})"
        st.button(label, key=f"{kind}-{place}", on_click=load_second, args=(kind, known))


def load_typed(kind: str) -> None:
    """Load the model that was typed."""
    if name := st.session_state[f"{kind}-source"].strip():
        load_second(kind, name)


def load_second(kind: str, name: str) -> None:
    """Load a model, and search by the first retriever that needs it; keep the error if that fails."""
    try:
        choose_second(kind, name)
        st.session_state["retriever"] = next(key for key, one in RETRIEVERS.items() if one.needs == kind)
    except GlassboxError as error:
        st.session_state[f"{kind}-error"] = str(error)


def show_load_error(kind: str) -> None:
    """Show why the last model of a kind could not be loaded."""
    if error := st.session_state.pop(f"{kind}-error", None):
        show_error(error)


def show_reranking_time() -> None:
    """Say how long the loaded cross-encoder takes for a question."""
    if (reranker := load_encoder().reranker) is None:
        return
    seconds = RERANK_DEPTH * seconds_of(reranker.name, reranker)
    st.caption(f"Reads {RERANK_DEPTH} chunks with each question: about {readable_seconds(seconds)} here.")


@st.cache_resource(max_entries=4, show_spinner="Timing the cross-encoder…")
def seconds_of(name: str, _reranker: Reranker) -> float:
    """Time a cross-encoder on chunks of the usual size; return the seconds of one."""
    return pair_seconds([SAMPLE] * 8, _reranker)
