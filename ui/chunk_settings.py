"""How documents are cut, as widgets that several pages share."""

from dataclasses import dataclass

import streamlit as st

from engine import Encoder
from engine.documents.splitters import MIN_CHUNK_TOKENS, Splitting

METHODS = {
    "fixed": "Fixed size",
    "recursive": "Recursive",
    "sentences": "Sentences",
    "paragraphs": "Paragraphs",
    "markdown": "Headings",
    "semantic": "Semantic",
    "sliding": "Sliding window",
}
WHAT = {
    "fixed": "Windows of so many tokens, wherever they end; never within a word.",
    "recursive": "At paragraphs where they fit, else at lines, else at sentences, else at words.",
    "sentences": "Whole sentences, as many as fit.",
    "paragraphs": "Whole paragraphs, as many as fit; a longer one is cut at sentences.",
    "markdown": "Sections under different headings are never mixed; long ones are cut on.",
    "semantic": "Breaks where the encoder finds neighbouring sentences unlike; reads all of them first.",
    "sliding": "A window that begins anew at every sentence: most chunks, and none misses its context.",
}


@dataclass(frozen=True)
class Cut:
    """How documents are cut and read.

    ``parent_tokens`` is the size of the chunk around each that an answer is given in its place, 0 where it
    is given the chunk itself; ``max_tokens`` is what the encoder reads of one.
    """

    splitting: Splitting
    parent_tokens: int
    max_tokens: int


def chunk_settings(encoder: Encoder, suffix: str = "") -> Cut:
    """Draw them. Widgets without a ``suffix`` to their keys are the same on every page."""
    max_positions = encoder.config.max_positions
    method = st.selectbox(
        "Splitter",
        list(METHODS),
        format_func=METHODS.__getitem__,
        key=f"splitter{suffix}",
        persist_state="session",
        help="\n".join(f"- **{METHODS[name]}**: {words}" for name, words in WHAT.items()),
    )
    chunk_tokens = st.slider(
        "Chunk size (tokens)",
        MIN_CHUNK_TOKENS * 2,
        max_positions,
        min(128, max_positions),
        step=8,
        key=f"chunk_tokens{suffix}",
        persist_state="session",
        help="Documents are cut into pieces of at most this many tokens, and each piece becomes one vector. "
        "Small pieces are precise, large ones keep more context but blur it. The default encoder was "
        "trained on 128 tokens and reads 256.",
    )
    most, key = chunk_tokens // 2, f"overlap{suffix}"
    if st.session_state.get(key, 0) > most:  # a smaller chunk size leaves less room
        st.session_state[key] = most
    overlap = st.slider(
        "Overlap (tokens)",
        0,
        most,
        min(16, most),
        key=key,
        persist_state="session",
        disabled=method == "sliding",
        help="How much of a chunk is repeated in the next one, so that a sentence on the border is whole in "
        "one of them. A sliding window overlaps whatever this says.",
    )
    parent_tokens = st.slider(
        "Small to big (tokens)",
        0,
        1024,
        0,
        step=32,
        key=f"parent_tokens{suffix}",
        persist_state="session",
        help="Search small chunks, and give the answer the larger chunk of this size around each: precise to "
        "find, with enough context to answer from. 0, or less than the chunk size, gives the chunk itself.",
    )
    max_tokens = st.slider(
        "Token limit of the encoder",
        MIN_CHUNK_TOKENS * 2,
        max_positions,
        encoder.max_tokens,
        step=8,
        key=f"max_tokens{suffix}",
        persist_state="session",
        help="What the encoder reads of a chunk; the rest is dropped without a word. sentence-transformers "
        "reads 256 tokens with the default encoder, which was trained on 128 and has 512 positions.",
    )
    splitting = Splitting(method, chunk_tokens, overlap)
    return Cut(splitting, parent_tokens if parent_tokens > chunk_tokens else 0, max_tokens)
