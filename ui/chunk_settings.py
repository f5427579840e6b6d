"""The widgets that set how documents are cut and embedded."""

from dataclasses import dataclass
from typing import Any

import streamlit as st

from engine import Encoder
from engine.documents.splitters import MIN_CHUNK_TOKENS, SPLITTERS, Splitting
from engine.models.precision import PRECISIONS, is_slower
from engine.models.prompts import PROMPT_USES, Role
from engine.retrieval.embedding_model import Model
from engine.wording import counted
from ui.settings_card import SETTINGS, default_settings, settings_in_use
from ui.text import escape_markdown, help_list
from ui.tokens import AS_ENCODER_COUNTS
from ui.widgets import choice, slider

# Keys of the widgets.
CHUNK_SETTINGS = (
    "splitter",
    "chunk_tokens",
    "overlap",
    "parent_tokens",
    "max_tokens",
    "prompts",
    "precision",
)


@dataclass(frozen=True)
class Cut:
    """How documents are cut and embedded.

    ``parent_tokens`` is the size of the larger chunk around each that an answer gets in its place, 0 for the
    chunk itself; ``max_tokens`` is the token limit of the encoder, ``prompts`` one of `PROMPT_USES`, and
    ``precision`` one of `PRECISIONS`. Of chunks that are ``given``, the splitting only tells the size of the
    longest.
    """

    splitting: Splitting
    parent_tokens: int
    max_tokens: int
    prompts: str = "own"
    precision: str = "float32"
    given: bool = False

    def encoder(self, encoder: Encoder) -> Encoder:
        """Return the encoder with or without its prompts, in the precision."""
        return encoder.with_prompts(self.prompts).with_precision(self.precision)

    def text_limit(self, model: Model) -> int:
        """Return how many tokens of a chunk are read: the limit without the prompt before it."""
        return model.with_prompts(self.prompts).text_limit(self.max_tokens)


def chunk_settings(encoder: Encoder, suffix: str = "") -> Cut:
    """Draw the widgets; those without a ``suffix`` to their keys are shared by all pages."""
    max_positions, defaults = encoder.config.max_positions, default_settings(encoder)
    method = st.selectbox(
        SETTINGS["splitter"].label,
        list(SPLITTERS),
        list(SPLITTERS).index(defaults["splitter"]),
        format_func=SETTINGS["splitter"].words,
        key=f"splitter{suffix}",
        persist_state="session",
        help=help_list(SPLITTERS.values()),
    )
    chunk_tokens = st.slider(
        SETTINGS["chunk_tokens"].label,
        MIN_CHUNK_TOKENS * 2,
        max_positions,
        defaults["chunk_tokens"],
        step=8,
        key=f"chunk_tokens{suffix}",
        persist_state="session",
        help=f"Documents are cut into pieces of at most this many tokens, {AS_ENCODER_COUNTS}. Each piece "
        "becomes one vector. Small pieces are precise, large ones keep more context but blur it. The default "
        "encoder was trained on 128 tokens and reads 256.",
    )
    most, key = chunk_tokens // 2, f"overlap{suffix}"
    if st.session_state.get(key, 0) > most:  # a smaller chunk size leaves less room
        st.session_state[key] = most
    overlap = slider(
        SETTINGS["overlap"].label,
        range(most + 1),
        min(defaults["overlap"], most),
        key,
        "The part of a chunk that is repeated in the next one, so that a sentence on the border is "
        f"whole in one of them. A sliding window has its own overlap. In tokens {AS_ENCODER_COUNTS}.",
        disabled=SPLITTERS[method].is_sliding,
    )
    parent_tokens = slider(
        SETTINGS["parent_tokens"].label,
        range(0, 1025, 32),
        defaults["parent_tokens"],
        f"parent_tokens{suffix}",
        "Search small chunks, and answer from the larger chunk of this size around each: a precise "
        "search with enough context for the answer. At 0, or less than the chunk size, the chunk itself is "
        f"used. In tokens {AS_ENCODER_COUNTS}.",
    )
    max_tokens = st.slider(
        SETTINGS["max_tokens"].label,
        MIN_CHUNK_TOKENS * 2,
        max_positions,
        defaults["max_tokens"],
        step=8,
        key=f"max_tokens{suffix}",
        persist_state="session",
        help="The encoder reads this many tokens of a chunk and silently drops the rest. "
        "sentence-transformers reads 256 tokens with the default encoder, which was trained on 128 and has "
        "512 positions.",
    )
    prompts = prompts_setting(encoder, suffix) if encoder.prompts.in_search else "own"
    precision = precision_setting(suffix)
    return cut_of(method, chunk_tokens, overlap, parent_tokens, max_tokens, prompts, precision)


def precision_setting(suffix: str) -> str:
    """Draw the precision of the layers of the encoder, and of a cross-encoder."""
    slower = " and ".join(filter(is_slower, PRECISIONS))
    note = f"\n\nThis processor has none: slower here than float32: {slower}." if slower else ""
    return choice(
        SETTINGS["precision"].label,
        list(PRECISIONS),
        f"precision{suffix}",
        "How the encoder computes, and a cross-encoder if one is loaded. *Best settings* measures what that "
        f"costs here.\n{help_list(PRECISIONS.values())}{note}",
        format_func=SETTINGS["precision"].words,
    )


def prompts_setting(encoder: Encoder, suffix: str) -> str:
    """Draw whether the prompts of the model are put before questions and chunks."""
    names: dict[Role, str] = {"query": "questions", "document": "chunks"}
    texts = " and ".join(f"“{text}” before {names[role]}" for role, text in encoder.prompts.in_search.items())
    n_taken = encoder.token_limit(None) - encoder.text_limit()
    return choice(
        SETTINGS["prompts"].label,
        list(PROMPT_USES),
        f"prompts{suffix}",
        f"The model was trained with {escape_markdown(texts)}. They take "
        f"{counted(n_taken, 'token')} of the limit of each chunk.\n{help_list(PROMPT_USES.values())}",
        format_func=SETTINGS["prompts"].words,
    )


def cut_in_use(encoder: Encoder) -> Cut:
    """Return how the app cuts documents, also where the page does not draw it."""
    values = settings_in_use(encoder)
    return cut_of(*(values.get(key, "own") for key in CHUNK_SETTINGS))  # most models have no prompts


def cut_values(cut: Cut) -> dict[str, Any]:
    """Return the values of the widgets that give this cut, by their keys; none for chunks that are given."""
    if cut.given:
        return {}
    splitting = cut.splitting
    sizes = splitting.method, splitting.chunk_tokens, splitting.overlap
    values = *sizes, cut.parent_tokens, cut.max_tokens, cut.prompts, cut.precision
    return dict(zip(CHUNK_SETTINGS, values, strict=True))


def cut_of(
    method: str,
    chunk_tokens: int,
    overlap: int,
    parent_tokens: int,
    max_tokens: int,
    prompts: str,
    precision: str,
) -> Cut:
    """Return the cut of the values of the widgets."""
    splitting = Splitting(method, chunk_tokens, overlap)
    large = parent_tokens if parent_tokens > chunk_tokens else 0
    return Cut(splitting, large, max_tokens, prompts, precision)
