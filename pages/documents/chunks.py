"""The tab of chunks: a document with its chunks marked, under one setting or two side by side."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from time import perf_counter

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from engine.documents.document import Chunk, Document
from engine.documents.splitters import SPLITTERS
from engine.documents.truncation import read_ends
from engine.errors import GlassboxError
from engine.retrieval.embedding_model import Model
from engine.retrieval.embedding_spec import NO_LIMIT
from engine.settings import SETTINGS
from engine.wording import counted
from ui.chunk_paint import near_to, painted
from ui.chunk_settings import CHUNK_SETTINGS, Cut, chunk_settings
from ui.colours import BLUE, ORANGE
from ui.corpus import split_documents
from ui.current import current_passage, document_choice, follow, follow_chunk
from ui.export import show_figure
from ui.figures import styled
from ui.look_inside import show_look_inside
from ui.text import readable_seconds, show_error, text_html
from ui.tokens import AS_ENCODER_COUNTS
from ui.widgets import kept, show_metrics

PART = 12_000  # characters marked at once
REPEATED = "Characters that a chunk repeats from the one before; striped in the text."
HEADER_HEIGHT = 60  # pixels, above both sides, so that they begin at the same height


def show_chunks(documents: Sequence[Document], model: Model, cut: Cut) -> None:
    """Draw a document with its chunks, and on request a second time under other settings."""
    document = document_choice(documents, "chunks-document")
    start, end = part_of(document)
    if (encoder := model.as_encoder) is None or cut.uploaded:
        show_one(document, model, cut, start, end, "a")
        return
    compare = st.toggle(
        "Compare with other settings",
        **kept("chunks-compare"),
        help="Cuts the same text under other settings, next to the first.",
    )
    if not compare:
        show_one(document, encoder, cut, start, end, "a")
        return
    left, right = st.columns(2)
    with left:
        with st.container(height=HEADER_HEIGHT, border=False, vertical_alignment="bottom"):
            st.markdown("**The settings of the sidebar**, which every page uses")
        show_one(document, encoder, cut, start, end, "a")
    with right:
        with st.container(height=HEADER_HEIGHT, border=False, horizontal=True):
            with st.popover("Other settings", icon=":material/tune:"):
                other = chunk_settings(encoder, "-other")
            st.button(
                "Use these everywhere",
                icon=":material/check:",
                on_click=use_everywhere,
                help="Uses these settings on every page.",
            )
        show_one(document, encoder, other, start, end, "b")


def use_everywhere() -> None:
    """Use the other settings on every page."""
    state = st.session_state
    for key in CHUNK_SETTINGS:
        if f"{key}-other" in state:  # models without prompts have no setting for them
            state[key] = state[f"{key}-other"]


def part_of(document: Document) -> tuple[int, int]:
    """Draw the choice of a part of a long document; return its first character and its end."""
    n_parts = -(-len(document.text) // PART)
    if n_parts < 2:
        return 0, len(document.text)
    key, passage = f"chunks-part-{document.name}", current_passage()
    if passage is not None and passage.document == document.name:
        follow(key, passage, min(1 + passage.start // PART, n_parts))
    part = st.slider(
        "Part of the document",
        1,
        n_parts,
        key=key,
        help=f"{PART:,} characters are shown at once; the numbers and the figure are of the whole document.",
    )
    return (part - 1) * PART, min(part * PART, len(document.text))


def show_one(document: Document, model: Model, cut: Cut, start: int, end: int, key: str) -> None:
    """Draw the chunks of a document under one setting: their sizes, and their places in the text."""
    began, splitter = perf_counter(), SPLITTERS[cut.splitting.method]
    try:
        with st.spinner("Cutting…", show_time=True):
            [chunks] = split_documents([document], cut)
    except GlassboxError as error:
        show_error(error)
        return
    if not chunks:
        st.info("This document has no text to cut.")
        return
    seconds = perf_counter() - began
    how = "Uploaded with their vectors." if cut.uploaded else f"{splitter.label}: {splitter.help}"
    if parents := {chunk.parent for chunk in chunks} - {None}:
        how += f" An answer gets the larger chunk around each: {len(parents):,} of them."
    if cut.context != "off":
        how += f" Context in grey, {SETTINGS['context'].words(cut.context)}: embedded and indexed with each."
    st.caption(how)
    limit = cut.text_limit(model)
    sizes = [chunk.n_tokens for chunk in chunks]
    twice = sum(max(0, a.end - b.start) for a, b in pairwise(chunks))
    long = sum(size > limit for size in sizes)
    range_of = f"The smallest chunk has {min(sizes)}, the largest {max(sizes)}, {AS_ENCODER_COUNTS}."
    over = f"Chunks over the limit of {limit} tokens; the text after it is struck through."
    figures = {
        "Chunks": (f"{len(chunks):,}", None, ""),
        "Median tokens": (f"{median(sizes):.0f}", None, range_of),
        "In two chunks": (f"{twice / len(document.text):.0%}", None, REPEATED),
        "Cut by the model": (f"{long:,}" if long else "none", None, over),
    }
    if limit == NO_LIMIT:
        del figures["Cut by the model"]
    show_metrics(figures)
    if not cut.uploaded:
        st.caption(f"Cut in {readable_seconds(seconds)}.")
    near = near_to(chunks, start, end)
    stops = read_ends([chunks[number] for number in near], model.tokenizer, limit)
    with st.container(border=True):
        html = painted(document, chunks, dict(zip(near, stops, strict=True)), start, end)
        st.html(text_html(html, height=520))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        number_key = f"chunks-number-{key}"
        changed = follow_chunk(number_key, document.name, chunks)
        label = f"Chunk, of {len(chunks):,}"
        number = st.number_input(label, 1, len(chunks), key=number_key, width=160, on_change=changed)
        show_look_inside(chunks[number - 1], f"chunk-{key}")
    words = f"{counted(len(chunks), 'chunk')} of {min(sizes)} to {max(sizes)} tokens"
    show_figure(size_figure(chunks, limit), f"chunk-sizes-{key}", words)


def size_figure(chunks: Sequence[Chunk], limit: int) -> go.Figure:
    """Histogram of chunk sizes, with the token limit of the model as a line."""
    sizes = np.array([chunk.n_tokens for chunk in chunks])
    width = max(4, int(np.ceil(sizes.max() / 40)))  # tokens of a bar
    figure = go.Figure(
        go.Histogram(
            x=sizes,
            xbins={"start": 0, "end": int(sizes.max()) + width, "size": width},
            marker_color=BLUE,
            hovertemplate="%{x} tokens, chunks: %{y}<extra></extra>",
        )
    )
    if sizes.max() > 0.6 * limit:
        figure.add_vline(
            x=limit,
            line_dash="dot",
            line_color=ORANGE,
            annotation_text=f"{limit} are read",
            annotation_position="top left",
        )
    figure.update_xaxes(title="tokens of a chunk, special tokens included", rangemode="tozero")
    figure.update_yaxes(title="chunks", dtick=1 if np.bincount(sizes // width).max() <= 6 else None)
    return styled(figure, height=220)
