"""The widgets that set how documents are cut and embedded."""

from dataclasses import dataclass

import streamlit as st

from engine import Encoder
from engine.documents.splitters import DEFAULT_SPLITTING, MIN_CHUNK_TOKENS, SPLITTERS, Splitting
from ui.tokens import AS_ENCODER_COUNTS


@dataclass(frozen=True)
class Cut:
    """How documents are cut and embedded.

    ``parent_tokens`` is the size of the larger chunk around each that an answer gets in its place, 0 for the
    chunk itself; ``max_tokens`` is the token limit of the encoder.
    """

    splitting: Splitting
    parent_tokens: int
    max_tokens: int


def chunk_settings(encoder: Encoder, suffix: str = "") -> Cut:
    """Draw the widgets; those without a ``suffix`` to their keys are shared by all pages."""
    max_positions = encoder.config.max_positions
    method = st.selectbox(
        "Splitter",
        list(SPLITTERS),
        list(SPLITTERS).index(DEFAULT_SPLITTING.method),
        format_func=lambda name: SPLITTERS[name].label,
        key=f"splitter{suffix}",
        persist_state="session",
        help="\n".join(f"- **{each.label}**: {each.help}" for each in SPLITTERS.values()),
    )
    chunk_tokens = st.slider(
        "Chunk size (tokens)",
        MIN_CHUNK_TOKENS * 2,
        max_positions,
        min(DEFAULT_SPLITTING.chunk_tokens, max_positions),
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
    overlap = st.slider(
        "Overlap (tokens)",
        0,
        most,
        min(DEFAULT_SPLITTING.overlap, most),
        key=key,
        persist_state="session",
        disabled=SPLITTERS[method].is_sliding,
        help="The part of a chunk that is repeated in the next one, so that a sentence on the border is "
        f"whole in one of them. A sliding window has its own overlap. In tokens {AS_ENCODER_COUNTS}.",
    )
    parent_tokens = st.slider(
        "Small to big (tokens)",
        0,
        1024,
        0,
        step=32,
        key=f"parent_tokens{suffix}",
        persist_state="session",
        help="Search small chunks, and answer from the larger chunk of this size around each: a precise "
        "search with enough context for the answer. At 0, or less than the chunk size, the chunk itself is "
        f"used. In tokens {AS_ENCODER_COUNTS}.",
    )
    max_tokens = st.slider(
        "Token limit of the encoder",
        MIN_CHUNK_TOKENS * 2,
        max_positions,
        encoder.max_tokens,
        step=8,
        key=f"max_tokens{suffix}",
        persist_state="session",
        help="The encoder reads this many tokens of a chunk and silently drops the rest. "
        "sentence-transformers reads 256 tokens with the default encoder, which was trained on 128 and has "
        "512 positions.",
    )
    splitting = Splitting(method, chunk_tokens, overlap)
    return Cut(splitting, parent_tokens if parent_tokens > chunk_tokens else 0, max_tokens)
