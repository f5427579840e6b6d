"""Chunks painted on the text that they were cut from."""

from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise

from engine.documents.document import Chunk, Document
from engine.wording import counted
from ui.colours import CHUNK_TINTS, NEVER_READ
from ui.text import escape_html, faint_html
from ui.tokens import AS_ENCODER_COUNTS

# Text that is never read is struck through and tinted.
STRUCK = f"text-decoration:line-through 1px;background:{NEVER_READ};color:inherit"


def painted(
    document: Document, chunks: Sequence[Chunk], read_ends: Mapping[int, int], start: int, end: int
) -> str:
    """Return ``document.text[start:end]`` escaped, each chunk in its tint with its number before it.

    Text of two chunks is striped in both tints. ``read_ends`` maps the number of each chunk `near_to` that
    text to the character where reading stops; text that no chunk is read up to is struck through.
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
    """Return the numbers of the chunks that overlap ``document.text[start:end]``."""
    return [number for number, chunk in enumerate(chunks) if chunk.start < end and chunk.end > start]


def label(number: int, chunk: Chunk) -> str:
    """Return a chunk's number, counted from 1, its size and position on hovering, and its context in grey."""
    place = " › ".join(chunk.headings) or "no heading"
    page = f", page {chunk.page}" if chunk.page else ""
    where = f"characters {chunk.start:,}–{chunk.end:,}{page}, {place}"
    title = f"{counted(chunk.n_tokens, 'token')} {AS_ENCODER_COUNTS}, {where}"
    style = "padding:0 4px;margin:0 2px;border-radius:3px;border:1px solid currentColor;font-weight:600"
    before = " › ".join(chunk.context.split("\n"))
    context = f"{faint_html(before)} " if before else ""
    return f'<sup title="{escape_html(title)}" style="{style}">{number + 1}</sup>{context}'


def piece(text: str, covering: Sequence[int], is_lost: bool) -> str:
    """Return escaped text in the tints of the chunks that cover it."""
    if not covering:
        return text
    if is_lost:
        return f'<del style="{STRUCK}">{text}</del>'
    tints = [CHUNK_TINTS[number % len(CHUNK_TINTS)] for number in covering]
    background = tints[0]
    if len(tints) > 1:
        stripes = f"{tints[0]} 0 7px,{tints[1]} 7px 14px"
        background = f"repeating-linear-gradient(135deg,{stripes})"
    return f'<mark style="background:{background};color:inherit;padding:1px 0">{text}</mark>'
