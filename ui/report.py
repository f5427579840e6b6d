"""A page drawn and kept at once, to be saved as one HTML page that opens without the app and network.

Text given to these functions is escaped. What is HTML already has the type `Html`, so that mypy finds text
that is taken for HTML.
"""

import platform
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import NewType

import plotly.graph_objects as go
import streamlit as st
from plotly.offline import get_plotlyjs
from streamlit.delta_generator import DeltaGenerator

from ui.colours import WHITE, faded, stylesheet
from ui.export import standalone
from ui.tables import Columns, Rows, show_table, table_html, table_style
from ui.text import DIRECTION_STYLE, Strong, escape_markdown, sentence_markdown, show_text, text_html
from ui.widgets import download, show_metrics

Html = NewType("Html", str)
Part = Html | Callable[[], Html]  # tables and figures become HTML only where the page is saved

PACKAGES = ("numpy", "faiss-cpu", "bm25s", "numba")
FIGURE_WIDTH = 640  # pixels, which paper has as well
STEM_WORDS = 8  # of the subject, in the name of a file
# The browser fetches nothing for this page, whatever is in it; its scripts are Plotly's.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:"
STYLE = stylesheet(Path(__file__).with_name("report.css"))


class Report:
    """The parts of a page in order: each method draws one and keeps it as HTML."""

    def __init__(self, *parts: Part) -> None:
        self.parts = list(parts)

    def header(self, text: str) -> None:
        """Draw and keep a heading."""
        st.header(escape_markdown(text))
        self.parts.append(element("h2", escape(text)))

    def sentence(self, *parts: str) -> None:
        """Draw and keep a paragraph, its `Strong` parts in bold."""
        st.write(sentence_markdown(*parts))
        self.parts.append(paragraph(*parts))

    def caption(self, text: str, help: str | None = None) -> None:
        """Draw and keep a paragraph that is small and grey; its help is only on the page."""
        st.caption(escape_markdown(text), help=help)
        self.parts.append(paragraph(text, faint=True))

    def note(self, draw: Callable[..., object], icon: str, *parts: str) -> None:
        """Draw and keep a paragraph that stands out, by `st.info`, `st.success` or `st.warning`."""
        draw(sentence_markdown(*parts), icon=icon or None)
        self.parts.append(element("p", sentence_html(*parts), "note"))

    def text(self, html: str, height: int | None = None) -> None:
        """Draw and keep escaped text with its line breaks; with a height in pixels it scrolls on the page."""
        show_text(html, height)
        self.parts.append(Html(text_html(html)))

    def table(self, rows: Rows, alt: str, columns: Columns | None = None) -> None:
        """Draw and keep a table; the parameters are those of `show_table`."""
        show_table(rows, alt, columns)
        self.keep_table(rows, alt, columns)

    def keep_table(self, rows: Rows, alt: str, columns: Columns | None = None) -> None:
        """Keep a table that is drawn elsewhere."""
        self.parts.append(partial(table, rows, alt, columns))

    def metrics(self, figures: Mapping[str, tuple[str, str | None, str]], alt: str) -> None:
        """Draw and keep values by their labels, each with its change and its meaning."""
        show_metrics(figures)
        rows = [
            {"Figure": label, "Value": f"{value} ({change})" if change else value, "Meaning": meaning}
            for label, (value, change, meaning) in figures.items()
        ]
        self.keep_table(rows, alt)

    def figure(self, figure: go.Figure, alt: str) -> None:
        """Draw and keep a figure, which ``alt`` tells in words."""
        st.plotly_chart(figure, config={"displayModeBar": False}, alt=alt)
        self.keep_figure(figure)

    def keep_figure(self, figure: go.Figure) -> None:
        """Keep a figure that is drawn elsewhere."""
        self.parts.append(partial(figure_html, figure))

    def expander(self, title: str, icon: str | None = None) -> DeltaGenerator:
        """Return a box that opens, and keep its title as a heading of what is drawn in it."""
        self.parts.append(element("h3", escape(title)))
        return st.expander(title, icon=icon)

    def button(self, kind: str, subject: str) -> None:
        """Draw the download of all parts as one page, also of those that are drawn below the button."""
        download(
            "Report (HTML)",
            partial(page_html, kind, subject, self.parts),
            f"{file_stem(kind, subject)}.html",
            "All of this as one page to keep or to send, which opens without the app and network.",
            type="tertiary",
        )


def file_stem(kind: str, subject: str) -> str:
    """``"answer", "Who built it?" -> "answer-who-built-it"``."""
    return "-".join([kind, *re.findall(r"[^\W_]+", subject.lower())[:STEM_WORDS]])[:80]


def page_html(kind: str, title: str, parts: Sequence[Part]) -> str:
    """Return a whole page with a title; ``kind`` says what it reports."""
    body = "".join(part() if callable(part) else part for part in parts)
    now = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    # Only a figure has that: all text is escaped.
    script = f"<script>{get_plotlyjs()}</script>" if "<figure" in body else ""
    packages = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{table_style()}{DIRECTION_STYLE}{STYLE}</style>{script}</head><body><main>"
        f"{paragraph(f'Glassbox · {kind}', faint=True)}<h1>{escape(title)}</h1>{body}<hr>"
        f"{paragraph(f'Written {now} with Python {platform.python_version()}, {packages}.', faint=True)}"
        "</main></body></html>"
    )


def element(tag: str, html: str, style_class: str = "") -> Html:
    """Return HTML in an element, with a class of the style sheet if it has one."""
    attribute = f' class="{style_class}"' if style_class else ""
    return Html(f"<{tag}{attribute}>{html}</{tag}>")


def sentence_html(*parts: str) -> Html:
    """Return a sentence, its `Strong` parts in bold."""
    return Html(
        "".join(
            f"<strong>{escape(part)}</strong>" if isinstance(part, Strong) else escape(part) for part in parts
        )
    )


def paragraph(*parts: str, faint: bool = False) -> Html:
    """Return a paragraph, small and grey where it is ``faint``."""
    return element("p", sentence_html(*parts), "faint" * faint)


def facts(values: Mapping[str, str]) -> Html:
    """Return named values."""
    pairs = (f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in values.items())
    return element("dl", "".join(pairs))


def table(rows: Rows, alt: str, columns: Columns | None = None) -> Html:
    """Return rows as a table; the parameters are those of `show_table`."""
    return Html(table_html(rows, alt, columns) if rows else "")


def figure_html(figure: go.Figure) -> Html:
    """Return a figure in the colours of the reader's theme; `page_html` adds Plotly's script."""
    clear = faded(WHITE, 0)
    look = {"paper_bgcolor": clear, "plot_bgcolor": clear, "legend_bgcolor": clear, "width": FIGURE_WIDTH}
    drawn = standalone(figure).update_layout(**look)
    return element("figure", drawn.to_html(full_html=False, include_plotlyjs=False))
