"""Documents as HTML, with the sources of an answer marked by number."""

from collections.abc import Sequence
from html import escape
from itertools import groupby, pairwise

from engine.documents.document import Document
from engine.documents.sentences import unwrapped
from engine.generation.prompt import Source
from ui.colours import source_colour
from ui.text import mark_html


def marked(document: Document, sources: Sequence[Source], start: int = 0, end: int | None = None) -> str:
    """Return ``document.text[start:end]`` escaped, spans marked by number, shared parts by the better's."""
    end = len(document.text) if end is None else end
    shown = unwrapped(document.text, start, end)
    inner = {place for source in sources for place in (source.start, source.end) if start < place < end}

    def best(piece: tuple[int, int]) -> int:
        """Number of the best source that covers a piece, 0 where none does."""
        covering = (s.number for s in sources if s.start <= piece[0] and piece[1] <= s.end)
        return min(covering, default=0)

    html, numbered = "", set()
    for number, group in groupby(pairwise([start, *sorted(inner), end]), key=best):
        pieces = list(group)
        text = escape(shown[pieces[0][0] - start : pieces[-1][1] - start])
        if number:
            label = "" if number in numbered else f"<sup><b>[{number}]</b></sup> "
            numbered.add(number)
            text = mark_html(f"{label}{text}", source_colour(number))
        html += text
    return html


def in_context(document: Document, sources: Sequence[Source], characters: int) -> str:
    """Return sources of one document, marked, with up to ``characters`` on either side of them."""
    start = min(source.start for source in sources) - characters
    end = max(source.end for source in sources) + characters
    return from_place(document, sources, start, end - start)


def from_place(document: Document, sources: Sequence[Source], start: int, characters: int) -> str:
    """Return up to ``characters`` of a document from a place on, with its sources marked."""
    end = min(len(document.text), start + characters)
    start = max(0, start)
    before = "…" if start > 0 else ""
    after = "…" if end < len(document.text) else ""
    return before + marked(document, sources, start, end) + after
