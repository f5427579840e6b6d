"""Text as HTML or Markdown, always escaped, and numbers as words."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import streamlit as st

from engine.documents.document import Chunk
from engine.wording import beginning, error_words, some_of, without_directions
from ui.colours import FAINT, QUOTE_EDGE

QUOTE = f"border-inline-start:3px solid {QUOTE_EDGE};padding-inline-start:10px;margin:2px 0 10px"
# Each paragraph in the direction of its first letter, which is right to left in Hebrew and Arabic; and an
# element of ``dir="auto"`` with its edge on that side.
DIRECTION_STYLE = """
:is([dir=auto], p, li, td, th, dd, h1, h2, h3, pre, textarea, input) { unicode-bidi: plaintext }
:is(h1, h2, h3, p):not(button *) { text-align: start }
"""


def show_text(html: str, height: int | None = None) -> None:
    """Draw escaped text with its line breaks; with a height in pixels it scrolls."""
    st.html(text_html(html, height))


def text_html(html: str, height: int | None = None) -> str:
    """Wrap escaped text so that its line breaks are kept and long words break too."""
    box = f"max-height:{height}px;overflow-y:auto;" if height else ""
    style = f"white-space:pre-wrap;overflow-wrap:anywhere;line-height:1.6;{box}"
    focus = ' tabindex="0"' if height else ""
    return f'<div dir="auto" style="{style}"{focus}>{html}</div>'


def mark_html(html: str, colour: str) -> str:
    """Return HTML marked in a colour."""
    return f'<mark style="background:{colour};color:inherit;border-radius:3px;padding:1px 0">{html}</mark>'


def faint_html(text: str) -> str:
    """Return a text as HTML in a faint colour; nothing for none."""
    return f'<span style="{FAINT}">{escape(text)}</span>' if text else ""


def passage_label(number: int, colour: str) -> str:
    """Return a passage's number as HTML, on its colour."""
    return f'<b style="background:{colour};padding:2px 6px;border-radius:3px">[{number}]</b>'


def show_error(error: Exception | str) -> None:
    """Draw an error or its message literally, whatever Markdown characters it has."""
    st.error(escape_markdown(error_words(error)), icon=":material/error:")


def escape_markdown(text: str) -> str:
    """Return text that Markdown shows unchanged, without marks that would turn the words behind it."""
    return "".join(
        f"\\{character}" if character in r"\`*_{}[]()#+-.!|<>$~:&" else character
        for character in without_directions(text)
    )


def escape_html(text: str) -> str:
    """Return text that HTML shows unchanged, in a line with other words; marks as in `escape_markdown`."""
    return escape(without_directions(text))


class Strong(str):
    """A part of a sentence in bold, on pages and in reports."""

    __slots__ = ()


def sentence_markdown(*parts: str) -> str:
    """Return a sentence, escaped, its `Strong` parts in bold."""
    return "".join(
        f"**{escape_markdown(part)}**" if isinstance(part, Strong) else escape_markdown(part)
        for part in parts
    )


def escape_plotly(text: str) -> str:
    """Escape text for Plotly's subset of HTML, which shows quotation marks; marks as in `escape_markdown`."""
    return escape(without_directions(text), quote=False)


def chunk_quote(chunk: Chunk, characters: int, *above: str) -> str:
    """Return the beginning of a chunk as a quotation, escaped, below lines of HTML."""
    lines = "\n".join([*above, escape(beginning(chunk.text, characters)) or "<em>blank</em>"])
    return f'<div dir="auto" style="{QUOTE}">{lines}</div>'


def help_list(entries: Iterable[Any]) -> str:
    """Return entries of a table as a list in Markdown, each label with its help."""
    return "\n".join(f"- **{entry.label}**: {entry.help}" for entry in entries)


def listed(names: Sequence[str]) -> str:
    """``["a", "b", "c", "d"] -> "a, b, c and 1 more"``, escaped for Markdown."""
    return escape_markdown(some_of(names, 3))


def joined(names: Sequence[str], last: str) -> str:
    """``["a", "b", "c"], "or" -> "a, b or c"``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"


def readable_seconds(seconds: float) -> str:
    """``0.0042 -> "4.2 ms"``, ``2.13 -> "2.1 s"``: a duration that was measured, once, by two digits."""
    rounded = float(f"{seconds:.2g}")
    return f"{rounded:g} s" if rounded >= 1 else f"{rounded * 1000:g} ms"


def signed_interval(difference: float, low: float, high: float) -> str:
    """``"+0.021 [+0.004, +0.040]"``."""
    return f"{difference:+.3f} [{low:+.3f}, {high:+.3f}]"


def p_words(p_value: float) -> str:
    """``"p = 0.012"`` or ``"p < 0.001"``."""
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"
