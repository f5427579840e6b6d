"""The sidebars of settings, and the settings of a search and an answer from their values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from engine import Encoder
from engine.documents.document import Document
from engine.generation.sampling import RULES, Sampling, sampling_of
from engine.generation.settings import AnswerSettings
from engine.layers.pooling import POOLINGS
from engine.models.embedding_head import MODEL_DEFAULT
from engine.retrieval.embedding_model import Model
from engine.retrieval.index_kinds import AUTO
from engine.retrieval.retrievers import RETRIEVERS, usable_retrievers
from engine.settings import SETTINGS, answer_settings
from ui.chunk_settings import Cut, chunk_settings, cut_values
from ui.documents import NoDocumentError, document_picker
from ui.search import Search
from ui.second_models import second_model_picker, show_reranking_time
from ui.setting_values import setting_widget, settings_in_use, widget_keys
from ui.settings_card import show_settings_card
from ui.text import joined
from ui.uploaded_vectors import reason_unavailable, search_model, upload_button, uploaded_vectors
from ui.widgets import kept

GREEDY = "At temperature 0 nothing is drawn at random, so the settings in grey do nothing."


@dataclass(frozen=True)
class Settings:
    """The settings of a search and an answer, and whether questions may follow on those before."""

    cut: Cut
    pooling: str
    answer: AnswerSettings
    follow_ups: bool
    index_kind: str = AUTO  # one of `INDEX_KINDS`, or `AUTO`


def settings_sidebar(encoder: Encoder, on_server: bool, documents: Sequence[Document] = ()) -> Settings:
    """Draw the settings; those that servers do not share are disabled with ``on_server``."""
    with st.expander("Chunks", icon=":material/content_cut:"):
        cut, pooling = cut_settings(encoder, documents), pooling_settings(encoder, documents)
    with st.expander("Search", icon=":material/search:"):
        retriever_setting(search_model(documents))
        index_kind = setting_widget("index_kind")
        setting_widget("k")
        setting_widget("min_relevance")
    with st.expander("Answer", icon=":material/edit_note:"):
        setting_widget("write")
        setting_widget("max_prompt_tokens")
        setting_widget("max_new_tokens")
        setting_widget("think")
        follow_ups = setting_widget("follow_ups")
        setting_widget("reads")
        answer_threshold = setting_widget("answer_threshold")
        if st.session_state.get("refuse_threshold", SETTINGS["refuse_threshold"].default) > answer_threshold:
            st.session_state["refuse_threshold"] = answer_threshold
        setting_widget("refuse_threshold")
        sampling = sampling_settings(on_server)
    answer = answer_settings(settings_in_use(encoder), sampling)
    return Settings(cut, pooling, answer, follow_ups, index_kind)


def settings_values(settings: Settings) -> dict[str, Any]:
    """Return the values of the widgets that give these settings, by their keys."""
    answer = settings.answer
    found = vars(settings) | vars(answer) | vars(answer.search) | vars(answer.sampling)
    values = cut_values(settings.cut) | {key: found[key] for key in widget_keys() if key in found}
    for key, value in values.items():
        if SETTINGS[key].unit == "% sure":
            values[key] = 100 * value
        elif value is None and key in RULES:
            values[key] = RULES[key].off
    return values


def chunks_sidebar(encoder: Encoder) -> tuple[list[Document], Cut]:
    """Draw the sidebar of a page that looks inside a model; return documents, and how to cut them."""
    with st.sidebar:
        documents = document_picker()
        show_settings_card(documents, encoder)
        with st.expander("Chunks", icon=":material/content_cut:"):
            cut = cut_settings(encoder, documents)
    if (uploaded := uploaded_vectors(documents)) is not None:
        raise NoDocumentError(
            reason_unavailable(uploaded, "This page reads the vectors of tokens inside a model")
        )
    return documents, cut


def search_sidebar(encoder: Encoder) -> Search:
    """Draw the sidebar of a page that searches; return what it searches, and how."""
    with st.sidebar:
        documents = document_picker()
        show_settings_card(documents, encoder)
        with st.expander("Chunks", icon=":material/content_cut:"):
            cut, pooling = cut_settings(encoder, documents), pooling_settings(encoder, documents)
        with st.expander("Search", icon=":material/search:"):
            model = search_model(documents)
            retriever = retriever_setting(model)
            k = setting_widget("k")
    return Search(documents, model, cut, pooling, retriever, k)


def cut_settings(encoder: Encoder, documents: Sequence[Document]) -> Cut:
    """Draw how documents are cut, or that their chunks are given, and the way to bring some."""
    if (uploaded := uploaded_vectors(documents)) is None:
        cut = chunk_settings(encoder)
        upload_button()
        return cut
    st.caption("These chunks and vectors were made elsewhere and stay as they are.")
    upload_button()
    splitter, limit = SETTINGS["splitter"].default, uploaded.index.spec.max_tokens
    is_mapped, chunks = uploaded.index.is_mapped, uploaded.index.chunks
    longest = limit if is_mapped else max(chunk.n_tokens for chunk in chunks)
    return Cut(splitter, longest, overlap=0, parent_tokens=0, max_tokens=limit, uploaded=True)


def pooling_settings(encoder: Encoder, documents: Sequence[Document]) -> str:
    """Draw the choice of pooling, or return that of given vectors."""
    if (uploaded := uploaded_vectors(documents)) is not None:
        return uploaded.index.spec.pooling
    own = encoder.pooling
    has_own = MODEL_DEFAULT in (own, st.session_state.get("pooling"))
    names = [*POOLINGS, *([MODEL_DEFAULT] if has_own else [])]
    return setting_widget("pooling", names=names, default=own)


def retriever_setting(model: Model) -> str:
    """Draw the choice of retriever, and of the models that some of them need."""
    names, state = usable_retrievers(model), st.session_state
    if state.get("retriever", names[0]) not in names:  # its model is gone
        state["retriever"] = SETTINGS["retriever"].default
    chosen = setting_widget("retriever", names=names)
    second_model_picker()
    if RETRIEVERS[chosen].needs == "reranker":
        show_reranking_time()
    return chosen


def sampling_settings(on_server: bool) -> Sampling:
    """Draw how tokens are chosen, a slider for each of `RULES`, and the seed."""
    values: dict[str, float] = {}
    greedy = False
    labels = [rule.label for rule in RULES.values() if not rule.on_server]
    not_of_servers = f"{joined(labels, 'and')} are no settings that all servers share."
    for name, rule in RULES.items():
        disabled = (greedy and not rule.if_greedy) or (on_server and not rule.on_server)
        value = st.slider(
            rule.label,
            rule.low,
            rule.high,
            rule.off,
            step=rule.step,
            **kept(name),
            disabled=disabled,
            help=rule.help if name == "temperature" else f"{rule.help} {rule.off:g} is off.",
        )
        values[name] = rule.off if disabled else value
        if name == "temperature":
            greedy = value == 0
            if greedy or on_server:
                st.caption(" ".join([GREEDY] * greedy + [not_of_servers] * on_server))
    seed = st.number_input(
        SETTINGS["seed"].title,
        min_value=0,
        value=SETTINGS["seed"].default,
        step=1,
        **kept("seed"),
        disabled=greedy,
        placeholder="another draw each time",
        help=SETTINGS["seed"].help,
    )
    return sampling_of(values, None if greedy else seed)
