"""Chunks painted on the text that they were cut from."""

from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise

import numpy as np
import plotly.graph_objects as go

from engine.documents.document import Chunk, Document
from ui.figures import BLUE, ORANGE, styled
from ui.limits import LOST
from ui.text import MARKS

TINTS = (MARKS[1], MARKS[0], MARKS[2])  # blue, orange, green: neighbours never look alike


def painted(
    document: Document, chunks: Sequence[Chunk], read_ends: Mapping[int, int], start: int, end: int
) -> str:
    """Return ``document.text[start:end]`` escaped, every chunk in its tint and with its number before it.

    Text of two chunks is striped in both tints. ``read_ends`` are the characters where reading stops in
    the chunks `near_to` that text, by their places; text that no chunk is read as far as is struck through.
    """
    near = near_to(chunks, start, end)
    places = {place for n in near for place in (chunks[n].start, chunks[n].end, read_ends[n])}
    borders = sorted({start, end} | {place for place in places if start < place < end})
    html = ""
    for left, right in pairwise(borders):
        covering = [n for n in near if chunks[n].start <= left and right <= chunks[n].end]
        for n in covering:
            if chunks[n].start == left:
                html += label(n, chunks[n])
        html += piece(
            escape(document.text[left:right]), covering, all(read_ends[n] <= left for n in covering)
        )
    return html


def near_to(chunks: Sequence[Chunk], start: int, end: int) -> list[int]:
    """Return the places of the chunks that hold some of ``document.text[start:end]``."""
    return [number for number, chunk in enumerate(chunks) if chunk.start < end and chunk.end > start]


def label(number: int, chunk: Chunk) -> str:
    """Return a chunk's number, counted from 1; where the mouse is, its size and place."""
    place = " › ".join(chunk.headings) or "no heading"
    page = f", page {chunk.page}" if chunk.page else ""
    title = f"{chunk.n_tokens} tokens, characters {chunk.start:,}–{chunk.end:,}{page}, {place}"
    style = "padding:0 4px;margin:0 2px;border-radius:3px;border:1px solid currentColor;font-weight:600"
    return f'<sup title="{escape(title)}" style="{style}">{number + 1}</sup>'


def piece(text: str, covering: Sequence[int], is_lost: bool) -> str:
    """Return escaped text in the tints of the chunks that cover it."""
    if not covering:
        return text
    if is_lost:
        return f'<del style="{LOST}">{text}</del>'
    tints = [TINTS[number % len(TINTS)] for number in covering]
    background = tints[0]
    if len(tints) > 1:
        stripes = f"{tints[0]} 0 7px,{tints[1]} 7px 14px"
        background = f"repeating-linear-gradient(135deg,{stripes})"
    return f'<mark style="background:{background};color:inherit;padding:1px 0">{text}</mark>'


def size_figure(chunks: Sequence[Chunk], limit: int) -> go.Figure:
    """Return the distribution of chunk sizes, with the number of tokens that the model reads."""
    sizes = np.array([chunk.n_tokens for chunk in chunks])
    width = max(4, int(np.ceil(sizes.max() / 40)))  # tokens of a bar
    figure = go.Figure(
        go.Histogram(
            x=sizes,
            xbins={"start": 0, "end": int(sizes.max()) + width, "size": width},
            marker_color=BLUE,
            hovertemplate="%{x} tokens: %{y} chunks<extra></extra>",
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
    figure.update_xaxes(title="tokens of a chunk", rangemode="tozero")
    figure.update_yaxes(title="chunks")
    return styled(figure, height=220)
