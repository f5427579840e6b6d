"""The chunks of a document, painted on its text, for one setting or for two side by side."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from time import perf_counter

import numpy as np
import streamlit as st

from engine import Encoder
from engine.documents.budget import read_ends
from engine.documents.document import Chunk, Document
from engine.errors import GlassboxError
from ui.answer import escape_markdown
from ui.chunk_paint import near_to, painted, size_figure
from ui.chunk_settings import METHODS, WHAT, Cut, chunk_settings
from ui.corpus import split_documents
from ui.export import show_figure
from ui.figures import readable_seconds
from ui.text import text_html

PART = 12_000  # characters that are painted at once
OTHER_HEIGHT = 60  # pixels of what stands above the two sides, so that they begin at one height


def show_chunks(documents: Sequence[Document], encoder: Encoder, cut: Cut) -> None:
    """Draw one document with its chunks; where it is wished, a second time under other settings."""
    by_name = {document.name: document for document in documents}
    name = st.selectbox("Document", list(by_name), key="chunks-document", persist_state="session")
    document = by_name[name]
    start, end = part_of(document)
    compare = st.toggle(
        "Compare with other settings",
        key="chunks-compare",
        persist_state="session",
        help="Cuts the same text a second time, beside the first, with settings of its own.",
    )
    if not compare:
        show_one(document, encoder, cut, start, end, "a")
        return
    left, right = st.columns(2)
    with left:
        with st.container(height=OTHER_HEIGHT, border=False, vertical_alignment="bottom"):
            st.markdown("**The settings of the sidebar**, which every page uses")
        show_one(document, encoder, cut, start, end, "a")
    with right:
        with st.container(height=OTHER_HEIGHT, border=False, horizontal=True):
            with st.popover("Other settings", icon=":material/tune:"):
                other = chunk_settings(encoder, "-other")
            st.button(
                "Use these everywhere",
                icon=":material/check:",
                on_click=use_everywhere,
                help="Makes them the settings of every page.",
            )
        show_one(document, encoder, other, start, end, "b")


def use_everywhere() -> None:
    """Make the other settings those of every page."""
    for key in ("splitter", "chunk_tokens", "overlap", "parent_tokens", "max_tokens"):
        st.session_state[key] = st.session_state[f"{key}-other"]


def part_of(document: Document) -> tuple[int, int]:
    """Draw the choice of a part of a long document; return where it begins and ends."""
    n_parts = -(-len(document.text) // PART)
    if n_parts < 2:
        return 0, len(document.text)
    part = st.slider(
        "Part of the document",
        1,
        n_parts,
        key=f"chunks-part-{document.name}",
        help=f"{PART:,} characters are painted at once; the figures below are of the whole document.",
    )
    return (part - 1) * PART, min(part * PART, len(document.text))


def show_one(document: Document, encoder: Encoder, cut: Cut, start: int, end: int, key: str) -> None:
    """Draw a document's chunks under one setting: what they are like, and where they lie."""
    began, method = perf_counter(), cut.splitting.method
    try:
        with st.spinner("Cutting…", show_time=True):
            [chunks] = split_documents([document], cut)
    except GlassboxError as error:
        st.error(escape_markdown(str(error)), icon=":material/error:")
        return
    if not chunks:
        st.info("This document holds no text to cut.")
        return
    seconds = perf_counter() - began
    st.caption(f"{METHODS[method]}: {WHAT[method]}" + parents_note(chunks))
    show_numbers(document, chunks, cut.max_tokens, seconds)
    near = near_to(chunks, start, end)
    stops = read_ends([chunks[number] for number in near], encoder.tokenizer, cut.max_tokens)
    with st.container(border=True):
        st.html(
            text_html(painted(document, chunks, dict(zip(near, stops, strict=True)), start, end), height=520)
        )
    sizes = {"n_tokens": np.array([chunk.n_tokens for chunk in chunks])}
    words = f"{len(chunks)} chunks of {sizes['n_tokens'].min()} to {sizes['n_tokens'].max()} tokens"
    show_figure(size_figure(chunks, cut.max_tokens), f"chunk-sizes-{key}", sizes, words)


def parents_note(chunks: Sequence[Chunk]) -> str:
    """Say what an answer is given in the place of the chunks, where it is not they."""
    parents = {chunk.parent for chunk in chunks} - {None}
    return f" An answer is given the larger chunk around each: {len(parents):,} of them." if parents else ""


def show_numbers(document: Document, chunks: Sequence[Chunk], limit: int, seconds: float) -> None:
    """Draw how many chunks there are and how large, and how much of the text is in two of them."""
    sizes = [chunk.n_tokens for chunk in chunks]
    twice = sum(max(0, a.end - b.start) for a, b in pairwise(chunks))
    long = sum(size > limit for size in sizes)
    with st.container(horizontal=True):
        st.metric("Chunks", f"{len(chunks):,}", width="content")
        st.metric(
            "Median tokens",
            f"{median(sizes):.0f}",
            help=f"{min(sizes)} to {max(sizes)} of a chunk.",
            width="content",
        )
        st.metric(
            "In two chunks",
            f"{twice / len(document.text):.0%}",
            help="Characters that one chunk repeats from the one before; striped in the text.",
            width="content",
        )
        st.metric(
            "Cut by the model",
            f"{long:,}" if long else "none",
            help=f"Chunks of more than the {limit} tokens that are read; lost text is struck through.",
            width="content",
        )
    st.caption(f"Cut in {readable_seconds(seconds)}.")
