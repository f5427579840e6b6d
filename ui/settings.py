"""What the sidebar sets for an answer, each setting with the reason to move it."""

from dataclasses import dataclass

import streamlit as st

from engine import Encoder
from engine.documents.splitters import MIN_CHUNK_TOKENS
from engine.generation.answering import DEFAULT_MIN_RELEVANCE
from engine.generation.sampling import Sampling
from engine.layers.pooling import POOLINGS
from engine.retrieval.retrievers import RETRIEVERS
from ui import retrievers
from ui.chunk_settings import METHODS, Cut, chunk_settings
from ui.poolings import LABELS, WHAT

GREEDY = "At temperature 0 nothing is drawn at random, so the settings in grey do nothing."
NOT_OF_SERVERS = "Top-k, min-p and the repetition penalty are no settings that all servers share."


# The ranges and values of the widgets, which also decide what is taken from a workspace's file.
COUNTS: dict[str, tuple[int, int]] = {
    "chunk_tokens": (2 * MIN_CHUNK_TOKENS, 512),
    "overlap": (0, 256),
    "parent_tokens": (0, 1024),
    "max_tokens": (2 * MIN_CHUNK_TOKENS, 512),
    "k": (1, 10),
    "min_relevance": (0, 100),
    "max_prompt_tokens": (128, 4096),
    "max_new_tokens": (16, 512),
    "top_k": (0, 100),
}
AMOUNTS: dict[str, tuple[float, float]] = {
    "temperature": (0.0, 1.5),
    "top_p": (0.05, 1.0),
    "min_p": (0.0, 0.5),
    "repetition_penalty": (1.0, 2.0),
}
DEFAULT_K, DEFAULT_PROMPT_TOKENS = 4, 1024
CHOICES = {"splitter": tuple(METHODS), "pooling": POOLINGS, "retriever": RETRIEVERS}
SWITCHES = ("expand",)


@dataclass(frozen=True)
class Settings:
    """What the sidebar sets."""

    cut: Cut
    pooling: str
    retriever: str
    expand: bool
    k: int
    min_relevance: int
    max_prompt_tokens: int
    max_new_tokens: int
    sampling: Sampling
    seed: int | None


def settings_sidebar(encoder: Encoder, on_server: bool) -> Settings:
    """Draw the settings; those that a server does not have are greyed out for one."""
    with st.expander("Chunks", icon=":material/content_cut:"):
        cut = chunk_settings(encoder)
        pooling = pooling_setting()
    with st.expander("Search", icon=":material/search:"):
        retriever = retriever_setting()
        k = passages_setting()
        min_relevance = st.slider(
            "Relevance threshold",
            *COUNTS["min_relevance"],
            round(DEFAULT_MIN_RELEVANCE),
            key="min_relevance",
            persist_state="session",
            help="A passage counts where at least this many of 100 unrelated questions find nothing as close "
            "in the same documents. When none does, the app says so instead of answering. 0 lets every "
            "passage count. It is no cosine: what is a high one differs with model, pooling and chunks. It "
            "judges passages by their vectors, whatever the retriever found them by.",
        )
        expand = st.toggle(
            "Expand the question",
            key="expand",
            persist_state="session",
            help="The built-in model writes a passage that might answer the question, and both are searched "
            "for (HyDE, query2doc). It takes a second or more, and a small model makes up too much: on every "
            "fourth question of Cranfield, nDCG@10 fell from 0.448 to 0.439 by vectors and from 0.442 "
            "to 0.427 by words. See for yourself what it does to yours; the details of the answer show what "
            "was searched for.",
        )
    with st.expander("Answer", icon=":material/edit_note:"):
        max_prompt_tokens = st.slider(
            "Prompt budget (tokens)",
            *COUNTS["max_prompt_tokens"],
            DEFAULT_PROMPT_TOKENS,
            step=64,
            key="max_prompt_tokens",
            persist_state="session",
            help="Passages are added, best first, until the prompt has this many tokens.",
        )
        max_new_tokens = st.slider(
            "Longest answer (tokens)",
            *COUNTS["max_new_tokens"],
            128,
            step=16,
            key="max_new_tokens",
            persist_state="session",
            help="Generation stops here if the model has not ended its answer.",
        )
        sampling, seed = sampling_settings(on_server)
    return Settings(
        cut=cut,
        pooling=pooling,
        retriever=retriever,
        expand=expand,
        k=k,
        min_relevance=min_relevance,
        max_prompt_tokens=max_prompt_tokens,
        max_new_tokens=max_new_tokens,
        sampling=sampling,
        seed=seed,
    )


def pooling_setting() -> str:
    """Draw the choice of pooling."""
    chosen: str = st.selectbox(
        "Pooling",
        POOLINGS,
        format_func=LABELS.__getitem__,
        key="pooling",
        persist_state="session",
        help="How the vectors of a chunk's tokens become one. “Pooling compared” shows what each does.\n"
        + "\n".join(f"- **{LABELS[name]}**: {words}" for name, words in WHAT.items()),
    )
    return chosen


def retriever_setting() -> str:
    """Draw the choice of what finds the passages."""
    chosen: str = st.selectbox(
        "Retriever",
        RETRIEVERS,
        format_func=retrievers.LABELS.__getitem__,
        key="retriever",
        persist_state="session",
        help="What finds the passages, and puts them in order. “Experiments” measures which is best.\n"
        + "\n".join(f"- **{retrievers.LABELS[name]}**: {words}" for name, words in retrievers.WHAT.items()),
    )
    return chosen


def passages_setting() -> int:
    """Draw how many passages a search gives."""
    chosen: int = st.slider(
        "Passages",
        *COUNTS["k"],
        DEFAULT_K,
        key="k",
        persist_state="session",
        help="How many of the best chunks count as found, and the model may be given.",
    )
    return chosen


def sampling_settings(on_server: bool) -> tuple[Sampling, int | None]:
    """Draw how tokens are chosen; return it with the seed."""
    temperature = st.slider(
        "Temperature",
        *AMOUNTS["temperature"],
        0.0,
        step=0.1,
        key="temperature",
        persist_state="session",
        help="0 always takes the most probable token; above it, tokens are drawn at random, "
        "the more freely the higher.",
    )
    greedy = temperature == 0
    if greedy or on_server:
        st.caption(" ".join([GREEDY] * greedy + [NOT_OF_SERVERS] * on_server))
    top_k = st.slider(
        "Top-k",
        *COUNTS["top_k"],
        0,
        key="top_k",
        persist_state="session",
        disabled=greedy or on_server,
        help="Draw only among this many most probable tokens. 0 is off.",
    )
    top_p = st.slider(
        "Top-p",
        *AMOUNTS["top_p"],
        1.0,
        step=0.05,
        key="top_p",
        persist_state="session",
        disabled=greedy,
        help="Draw only among the most probable tokens that together reach this probability: few where the "
        "model is sure, many where it is not. 1 is off.",
    )
    min_p = st.slider(
        "Min-p",
        *AMOUNTS["min_p"],
        0.0,
        step=0.01,
        key="min_p",
        persist_state="session",
        disabled=greedy or on_server,
        help="Leave out tokens less probable than this share of the most probable one. 0 is off.",
    )
    repetition_penalty = st.slider(
        "Repetition penalty",
        *AMOUNTS["repetition_penalty"],
        1.0,
        step=0.05,
        key="repetition_penalty",
        persist_state="session",
        disabled=on_server,
        help="Above 1, tokens that occurred before become less probable. That punishes the passages' own "
        "words too, so a high one drives the answer away from them. 1 is off.",
    )
    seed = st.number_input(
        "Seed",
        min_value=0,
        value=None,
        step=1,
        key="seed",
        persist_state="session",
        disabled=greedy,
        placeholder="another draw each time",
        help="The same seed and settings give the same answer again.",
    )
    if on_server:
        top_k, min_p, repetition_penalty = 0, 0.0, 1.0
    if greedy:
        top_k, top_p, min_p, seed = 0, 1.0, 0.0, None
    return Sampling(
        temperature, top_k or None, top_p if top_p < 1 else None, min_p or None, repetition_penalty
    ), seed


def kept_settings() -> dict[str, float | str]:
    """Return the widgets' values that a workspace keeps."""
    keys, state = (*COUNTS, *AMOUNTS, *CHOICES, *SWITCHES), st.session_state
    return {key: state[key] for key in keys if key in state}


def take_settings(values: object, max_positions: int) -> None:
    """Set the widgets to values from a file; what does not fit a widget is left out."""
    given, state = values if isinstance(values, dict) else {}, st.session_state
    for key, (low, high) in (COUNTS | AMOUNTS).items():
        value = given.get(key)
        if type(value) is type(low) and low <= value <= high:
            state[key] = value
    for key, choices in CHOICES.items():
        if given.get(key) in choices:
            state[key] = given[key]
    for key in SWITCHES:
        if isinstance(given.get(key), bool):
            state[key] = given[key]
    for key in {"chunk_tokens", "max_tokens"} & set(state):
        state[key] = min(state[key], max_positions)
