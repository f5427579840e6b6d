"""The settings of search and answer as widgets of the sidebar, and in the file of a workspace."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from engine import Encoder
from engine.documents.document import Document
from engine.documents.splitters import MIN_CHUNK_TOKENS, SPLITTERS, Splitting
from engine.generation.sampling import RULES, Sampling, sampling_of
from engine.generation.settings import CONTEXTS, DEFAULT_ANSWER, AnswerSettings, SearchSettings
from engine.generation.thinking import MAX_THOUGHT_TOKENS
from engine.layers.pooling import POOLINGS
from engine.models.embedding_head import OWN
from engine.models.precision import PRECISIONS
from engine.models.prompts import PROMPT_USES
from engine.retrieval.embedding_model import Model
from engine.retrieval.index_choice import EXACT_CHUNKS, TRUSTED, share
from engine.retrieval.index_kinds import AUTO, INDEX_KINDS, index_kind_label
from engine.retrieval.retrievers import RETRIEVERS, usable_retrievers
from ui.chunk_settings import Cut, chunk_settings, cut_values
from ui.documents import NoDocumentError, document_picker
from ui.given_vectors import bring_button, given_of, reason_unavailable, search_model
from ui.reranker import reranker_picker, show_reranking_time
from ui.settings_card import SETTINGS, settings_in_use, show_settings_card
from ui.text import help_list, joined
from ui.tokens import AS_DECODER_COUNTS
from ui.widgets import slider

GREEDY = "At temperature 0 nothing is drawn at random, so the settings in grey do nothing."


# The ranges and values of the widgets; values in a workspace's file must lie within them.
COUNTS: dict[str, tuple[int, int]] = {
    "chunk_tokens": (2 * MIN_CHUNK_TOKENS, 512),
    "overlap": (0, 256),
    "parent_tokens": (0, 1024),
    "max_tokens": (2 * MIN_CHUNK_TOKENS, 512),
    "k": (1, 10),
    "min_relevance": (0, 100),
    "max_prompt_tokens": (128, 4096),
    "max_new_tokens": (16, 512),
    "answer_at": (0, 100),
    "refuse_below": (0, 100),
}
CHOICES: dict[str, Collection[str]] = {
    "splitter": SPLITTERS,
    "pooling": (*POOLINGS, OWN),
    "prompts": PROMPT_USES,
    "precision": PRECISIONS,
    "retriever": RETRIEVERS,
    "index_kind": (AUTO, *INDEX_KINDS),
    "context": CONTEXTS,
}
SWITCHES = ("follow_ups", "think")
REMOVED = {"expand": "Expand the question"}  # settings of earlier versions, which files and links may have


@dataclass(frozen=True)
class Settings:
    """The settings of a search and an answer, and whether questions may follow on those before.

    ``index_kind`` is one of `INDEX_KINDS`, or `AUTO`.
    """

    cut: Cut
    pooling: str
    answer: AnswerSettings
    follow_ups: bool
    index_kind: str = AUTO


def settings_sidebar(encoder: Encoder, on_server: bool, documents: Sequence[Document] = ()) -> Settings:
    """Draw the settings; those that servers do not share are disabled with ``on_server``."""
    with st.expander("Chunks", icon=":material/content_cut:"):
        cut, pooling = cut_settings(encoder, documents), pooling_settings(encoder, documents)
    with st.expander("Search", icon=":material/search:"):
        retriever_setting(search_model(documents))
        index_kind = choice_setting(
            "index_kind",
            "Finds the nearest vectors; unless it is exact, hybrids score only those and BM25’s best. A kind "
            f"that finds less than {share(TRUSTED)} of what exact search finds in a sample of your chunks is "
            "not used. “Documents and chunks”, tab “Index”, measures all of them.\n"
            f"- **{index_kind_label(AUTO)}**: exact for up to {EXACT_CHUNKS:,} chunks.\n"
            f"{help_list(INDEX_KINDS.values())}",
        )
        passages_setting()
        count_setting(
            "min_relevance",
            "A passage counts as relevant if at least this many of 100 unrelated questions find nothing "
            "as close in the same documents. If no passage does, the app says so instead of answering. At 0 "
            "every passage counts. This is not a cosine; a high cosine depends on the model, the pooling and "
            "the chunks. Relevance is judged by vectors, whichever retriever found the passage.",
        )
    with st.expander("Answer", icon=":material/edit_note:"):
        count_setting(
            "max_prompt_tokens",
            f"Passages are added, best first, up to this many tokens {AS_DECODER_COUNTS}: "
            "a passage may have more of them than the encoder counts for the chunk size.",
            step=64,
        )
        count_setting(
            "max_new_tokens",
            f"Generation stops here if the model has not ended its answer, in tokens {AS_DECODER_COUNTS}.",
            step=16,
        )
        switch_setting(
            "think",
            "For models with a thinking mode, such as Qwen3 and SmolLM3; others write as they do without it. "
            f"The thought takes up to {MAX_THOUGHT_TOKENS:,} tokens more, is shown folded, and is no part of "
            "the answer: quotes, checks and follow-up questions do not regard it.",
        )
        follow_ups = switch_setting(
            "follow_ups",
            "“And in 2016?” finds nothing by itself. A question that the topic of the conversation "
            "brings much closer to the documents is searched for with its words, which the page shows and "
            "lets you change. Earlier questions and answers take up to a quarter of the prompt.",
        )
        evidence_settings()
        sampling = sampling_settings(on_server)
    answer = answer_settings(settings_in_use(encoder), sampling)
    return Settings(cut, pooling, answer, follow_ups, index_kind)


def answer_settings(
    values: Mapping[str, Any], sampling: Sampling = DEFAULT_ANSWER.sampling, write: bool = True
) -> AnswerSettings:
    """Return the settings of a search and an answer from the values of the widgets, by their keys."""
    return AnswerSettings(
        SearchSettings(values["k"], values["min_relevance"], values["retriever"]),
        values["max_prompt_tokens"],
        values["max_new_tokens"],
        sampling,
        values["context"],
        values["answer_at"] / 100,  # the widgets are in percent
        values["refuse_below"] / 100,
        write,
        think=values["think"],
    )


def settings_values(settings: Settings) -> dict[str, Any]:
    """Return the values of the widgets that give these settings, by their keys."""
    answer, sampling = settings.answer, settings.answer.sampling
    drawn = {name: getattr(sampling, name) for name in RULES}
    return {
        **cut_values(settings.cut),
        "pooling": settings.pooling,
        "k": answer.search.k,
        "min_relevance": answer.search.min_relevance,
        "retriever": answer.search.retriever,
        "index_kind": settings.index_kind,
        "max_prompt_tokens": answer.max_prompt_tokens,
        "max_new_tokens": answer.max_new_tokens,
        "think": answer.think,
        "follow_ups": settings.follow_ups,
        "context": answer.context,
        "answer_at": 100 * answer.answer_threshold,  # the widgets are in percent
        "refuse_below": 100 * answer.refuse_threshold,
        **{name: RULES[name].off if value is None else value for name, value in drawn.items()},
        "seed": sampling.seed,
    }


def count_setting(key: str, help_text: str, step: int = 1) -> int:
    """Draw the slider of one of `COUNTS`."""
    low, high = COUNTS[key]
    return slider(SETTINGS[key].label, range(low, high + 1, step), SETTINGS[key].default, key, help_text)


def choice_setting(key: str, help_text: str, names: Sequence[str] = (), own: str | None = None) -> str:
    """Draw the choice of one of `CHOICES`, or of some ``names`` of them.

    ``own`` is the model's own, which comes in place of the default and is marked.
    """
    names, words = list(names or CHOICES[key]), SETTINGS[key].words
    return st.selectbox(
        SETTINGS[key].label,
        names,
        names.index(own or SETTINGS[key].default),
        format_func=lambda name: words(name) + (" · the model's own" if name == own != OWN else ""),
        key=key,
        persist_state="session",
        help=help_text,
    )


def switch_setting(key: str, help_text: str) -> bool:
    """Draw one of `SWITCHES`."""
    return st.toggle(
        SETTINGS[key].label, SETTINGS[key].default, key=key, persist_state="session", help=help_text
    )


def evidence_settings() -> None:
    """Draw what the model reads, and from which confidence on, in percent, an answer is shown or refused."""
    choice_setting(
        "context",
        "A small model gets lost in whole passages. On the bundled questions it is right three times as "
        "often when it reads only the three sentences that answer best. A larger model, on a server, may do "
        "better with whole passages.",
    )
    answer_at = count_setting(
        "answer_at",
        "How likely an answer has to be right to be shown as one; below, it is shown as unsure. "
        "“Best settings”, tab “Answers”, draws how many answers remain at each value, and how many of them "
        "are right.",
    )
    if st.session_state.get("refuse_below", SETTINGS["refuse_below"].default) > answer_at:
        st.session_state["refuse_below"] = answer_at
    count_setting("refuse_below", "Below this, not even the closest sentences are shown as an answer.")


def chunks_sidebar(encoder: Encoder) -> tuple[list[Document], Cut]:
    """Draw the sidebar of a page that looks inside a model; return the documents, and how to cut them.

    Raises
    ------
    NoDocumentError
        The documents are those of vectors brought along, which have no inside.
    """
    with st.sidebar:
        documents = document_picker()
        show_settings_card(documents, encoder)
        with st.expander("Chunks", icon=":material/content_cut:"):
            cut = cut_settings(encoder, documents)
    if (given := given_of(documents)) is not None:
        raise NoDocumentError(
            reason_unavailable(given, "This page reads the vectors of tokens inside a model")
        )
    return documents, cut


def search_sidebar(encoder: Encoder) -> tuple[list[Document], Cut, str, str, int]:
    """Draw the sidebar of a page that searches; return documents, cut, pooling, retriever, passages."""
    with st.sidebar:
        documents = document_picker()
        show_settings_card(documents, encoder)
        with st.expander("Chunks", icon=":material/content_cut:"):
            cut, pooling = cut_settings(encoder, documents), pooling_settings(encoder, documents)
        with st.expander("Search", icon=":material/search:"):
            retriever = retriever_setting(search_model(documents))
            k = passages_setting()
    return documents, cut, pooling, retriever, k


def cut_settings(encoder: Encoder, documents: Sequence[Document]) -> Cut:
    """Draw how documents are cut, or that their chunks are given, and the way to bring some."""
    if (given := given_of(documents)) is None:
        cut = chunk_settings(encoder)
        bring_button()
        return cut
    st.caption("These chunks and vectors were made elsewhere and stay as they are.")
    bring_button()
    longest = max(chunk.n_tokens for chunk in given.index.chunks)
    return Cut(Splitting(chunk_tokens=longest), 0, given.index.spec.max_tokens, given=True)


def pooling_settings(encoder: Encoder, documents: Sequence[Document]) -> str:
    """Draw the choice of pooling, or return that of given vectors."""
    if (given := given_of(documents)) is not None:
        return given.index.spec.pooling
    own = encoder.pooling
    return choice_setting(
        "pooling",
        "How the vectors of a chunk's tokens become one. “Pooling compared” shows what each does.\n"
        + help_list(POOLINGS.values()),
        [*POOLINGS, *([OWN] if OWN in (own, st.session_state.get("pooling")) else [])],
        own,
    )


def retriever_setting(model: Model) -> str:
    """Draw the choice of retriever, and of a cross-encoder for one of them."""
    names, state = usable_retrievers(model), st.session_state
    if state.get("retriever", names[0]) not in names:  # its cross-encoder is gone, or the model has no inside
        state["retriever"] = SETTINGS["retriever"].default
    chosen = choice_setting(
        "retriever",
        "Finds the passages and ranks them. “Best settings” measures which retriever is best.\n"
        + help_list(RETRIEVERS[name] for name in names),
        names,
    )
    reranker_picker()
    if RETRIEVERS[chosen].needs_reranker:
        show_reranking_time()
    return chosen


def passages_setting() -> int:
    """Draw the number of passages that a search returns."""
    return count_setting("k", "How many of the best chunks count as found and may go into the prompt.")


def sampling_settings(on_server: bool) -> Sampling:
    """Draw how tokens are chosen, a slider for each of `RULES`, and the seed."""
    values: dict[str, float] = {}
    greedy = False
    for name, rule in RULES.items():
        disabled = (greedy and not rule.if_greedy) or (on_server and not rule.on_server)
        value = st.slider(
            rule.label,
            rule.low,
            rule.high,
            rule.off,
            step=rule.step,
            key=name,
            persist_state="session",
            disabled=disabled,
            help=rule.help if name == "temperature" else f"{rule.help} {rule.off:g} is off.",
        )
        values[name] = rule.off if disabled else value
        if name == "temperature":
            greedy = value == 0
            if greedy or on_server:
                st.caption(" ".join([GREEDY] * greedy + [not_of_servers()] * on_server))
    seed = st.number_input(
        SETTINGS["seed"].label,
        min_value=0,
        value=SETTINGS["seed"].default,
        step=1,
        key="seed",
        persist_state="session",
        disabled=greedy,
        placeholder="another draw each time",
        help="The same seed and settings give the same answer again.",
    )
    return sampling_of(values, None if greedy else seed)


def not_of_servers() -> str:
    """Name the settings that OpenAI-compatible servers do not share."""
    labels = [rule.label for rule in RULES.values() if not rule.on_server]
    return f"{joined(labels, 'and')} are no settings that all servers share."


def limits() -> dict[str, tuple[float, float]]:
    """Return the lowest and highest value of every slider, ints for whole numbers."""
    return COUNTS | {name: (rule.low, rule.high) for name, rule in RULES.items()}


def kept_settings() -> dict[str, float | str]:
    """Return the values of the widgets that a workspace keeps."""
    keys, state = (*limits(), *CHOICES, *SWITCHES), st.session_state
    return {key: state[key] for key in keys if key in state}


def take_settings(values: object, max_positions: int) -> None:
    """Set the widgets to values from a file, leaving out those outside a widget's range."""
    given, state = values if isinstance(values, dict) else {}, st.session_state
    for key, (low, high) in limits().items():
        value = given.get(key)
        if type(value) is type(low) and low <= value <= high:
            state[key] = value
    for key, choices in CHOICES.items():
        if given.get(key) in tuple(choices):  # a list is in no dict
            state[key] = given[key]
    for key in SWITCHES:
        if isinstance(given.get(key), bool):
            state[key] = given[key]
    for key in {"chunk_tokens", "max_tokens"} & set(state):
        state[key] = min(state[key], max_positions)
    if gone := [label for key, label in REMOVED.items() if given.get(key)]:
        st.toast(f"Left out, as this version does not have it: {joined(gone, 'and')}.", duration="long")
