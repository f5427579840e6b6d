"""Reports: one HTML page each, which opens without the app and without network, in both themes and on paper.

Text given to these functions is escaped. What is HTML already has the type `Html`, so that mypy finds text
that is taken for HTML.
"""

import platform
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from html import escape
from importlib.metadata import version
from typing import Literal, NewType

import plotly.graph_objects as go
import streamlit as st
from plotly.offline import get_plotlyjs

from ui.colours import GREEN, GREY, ORANGE, REPORT_DARK, REPORT_LIGHT, WHITE, faded
from ui.export import standalone
from ui.tables import names_of
from ui.text import Strong, text_html

Html = NewType("Html", str)
Tone = Literal["good", "unsure", "plain"]

TONES: dict[Tone, str] = {"good": GREEN, "unsure": ORANGE, "plain": GREY}
PACKAGES = ("numpy", "faiss-cpu", "bm25s", "numba")
LONG_CELL = 40  # characters from which on a cell of a table is broken into lines
MANY_COLUMNS = 10  # with more, a table is printed across the paper
LONG_FACT = 60  # characters from which on a fact has a row of its own
STEM_WORDS = 8  # of the subject, in the name of a file
# The browser fetches nothing for this page, whatever is in it; its scripts are Plotly's.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:"
PRINTED_WIDTH = 640  # pixels of a figure on paper, whose width the browser does not tell before it prints
PRINTING = f"""
const figures = () => document.querySelectorAll(".js-plotly-plot");
const resize = (layout) => () => figures().forEach((one) => Plotly.relayout(one, layout));
addEventListener("beforeprint", resize({{ width: {PRINTED_WIDTH} }}));
addEventListener("afterprint", resize({{ width: null, autosize: true }}));
"""


def variables(colours: Mapping[str, str]) -> str:
    """Return colours as CSS variables."""
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())


STYLE = f"""
:root {{ color-scheme: light dark; {variables(REPORT_LIGHT)} }}
@media screen and (prefers-color-scheme: dark) {{ :root {{ {variables(REPORT_DARK)} }} }}
* {{ box-sizing: border-box }}
html {{ -webkit-text-size-adjust: 100%; text-size-adjust: 100% }}
body {{ font: 16px/1.6 system-ui, sans-serif; color: var(--text); background: var(--page); margin: 0 }}
main {{ max-width: 54rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem }}
h1 {{ font-size: 1.75rem; line-height: 1.25; margin: .25rem 0 1.25rem; overflow-wrap: anywhere }}
h2 {{ font-size: 1.25rem; line-height: 1.3; margin: 0 0 .75rem }}
h3 {{ font-size: 1rem; margin: 1.5rem 0 .25rem; overflow-wrap: anywhere }}
section {{ margin-top: 2rem; padding-top: 1.5rem; border-top: 1px solid var(--line) }}
p {{ margin: .5rem 0; overflow-wrap: anywhere }}
.faint, .kind {{ color: var(--faint); font-size: .875rem }}
.kind {{ margin: 0 }}
.note {{ border-left: 4px solid; border-radius: 4px; padding: .5rem 1rem; margin: .75rem 0 }}
.text {{ margin: .5rem 0 }}
blockquote {{ margin: 1rem 0; padding: .1rem 0 .1rem 1rem; border-left: 3px solid var(--line) }}
ul {{ margin: .5rem 0; padding-left: 1.25rem }} li {{ overflow-wrap: anywhere }}
blockquote p {{ margin: .25rem 0 0 }}
dl {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(10rem, 1fr)) }}
dl {{ gap: .75rem 1rem; margin: 1rem 0; font-size: .9375rem; line-height: 1.45 }}
dt {{ color: var(--faint); font-size: .875rem }} dd {{ margin: 0; overflow-wrap: anywhere }}
dl .long {{ grid-column: 1 / -1 }}
.wide {{ overflow-x: auto; margin: 1rem 0 }}
table {{ border-collapse: collapse; font-size: .875rem; line-height: 1.4 }}
th, td {{ border-bottom: 1px solid var(--line); padding: .4rem .75rem; white-space: nowrap }}
th, td {{ text-align: left; vertical-align: top }} th {{ color: var(--faint); font-weight: 600 }}
th:first-child, td:first-child {{ padding-left: 0 }}
.number {{ text-align: right; font-variant-numeric: tabular-nums }}
td.long {{ white-space: normal; overflow-wrap: anywhere; min-width: 15rem }}
pre {{ background: var(--code); border-radius: 4px; padding: 1rem; overflow-x: auto; font-size: .875rem }}
figure {{ margin: 1rem 0 }}
.js-plotly-plot :is(.xtick, .ytick, .g-xtitle, .g-ytitle, .legend, .infolayer, .cbaxis) text,
.js-plotly-plot :is(.bartext-outside, .textpoint text) {{ fill: var(--text) !important }}
.js-plotly-plot :is(.gridlayer, .zerolinelayer) path {{ stroke: var(--line) !important }}
footer {{ margin-top: 2.5rem; padding-top: 1rem; border-top: 1px solid var(--line) }}
@page {{ margin: 16mm 14mm }}
@page across {{ size: landscape; margin: 12mm 10mm }}
@media print {{
  * {{ print-color-adjust: exact; -webkit-print-color-adjust: exact }}
  body {{ font-size: 10.5pt }} main {{ max-width: none; padding: 0 }}
  h2, h3 {{ break-after: avoid }} tr, blockquote, .note, figure {{ break-inside: avoid }}
  .wide {{ overflow: visible }} table {{ font-size: 8.5pt }}
  th, td {{ white-space: normal; padding: .25rem .4rem }} td.long {{ min-width: 0 }}
  section:has(.many) {{ page: across }} .many table {{ font-size: 7pt }}
  .many :is(th, td) {{ padding: .2rem .3rem }}
  pre {{ white-space: pre-wrap; overflow-wrap: anywhere }}
}}
"""


def report_button(kind: str, subject: str, build: Callable[[], str]) -> None:
    """Draw the download of a report, which is built when it is pressed; ``subject`` names the file."""
    st.download_button(
        "Report (HTML)",
        build,
        f"{file_stem(kind, subject)}.html",
        "text/html",
        key=f"report-{kind}",
        help="All of this as one page to keep or to send, which opens without the app and without network.",
        type="tertiary",
        icon=":material/download:",
        on_click="ignore",
    )


def file_stem(kind: str, subject: str) -> str:
    """``"answer", "Who built it?" -> "answer-who-built-it"``."""
    return "-".join([kind, *re.findall(r"[^\W_]+", subject.lower())[:STEM_WORDS]])[:80]


def page_html(kind: str, title: str, *parts: Html) -> str:
    """Return a whole page with a title; ``kind`` says what it reports."""
    body, now = "".join(parts), datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    scripts = ""
    if "<figure" in body:  # only a figure has that: all text is escaped
        scripts = f"<script>{get_plotlyjs()}</script><script>{PRINTING}</script>"
    versions = ", ".join([f"Python {platform.python_version()}", *map(installed, PACKAGES)])
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style>{scripts}</head><body><main>"
        f'<p class="kind">Glassbox · {escape(kind)}</p><h1>{escape(title)}</h1>{body}'
        f"<footer>{paragraph(f'Written {now} with {versions}.', faint=True)}</footer></main></body></html>"
    )


def installed(package: str) -> str:
    """``"numpy 2.2.0"``."""
    return f"{package} {version(package)}"


def element(tag: str, html: str, style_class: str = "") -> Html:
    """Return HTML in an element, with a class of the style sheet if it has one."""
    attribute = f' class="{style_class}"' if style_class else ""
    return Html(f"<{tag}{attribute}>{html}</{tag}>")


def section(title: str, *parts: Html) -> Html:
    """Return a section under a heading."""
    return Html(f"<section><h2>{escape(title)}</h2>{''.join(parts)}</section>")


def heading(text: str) -> Html:
    """Return a heading within a section."""
    return Html(f"<h3>{escape(text)}</h3>")


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


def note(tone: Tone, *parts: str) -> Html:
    """Return a paragraph that stands out."""
    colour = TONES[tone]
    style = f"border-color:{colour};background:{faded(colour, 0.12)}"
    return Html(f'<div class="note" style="{style}">{sentence_html(*parts)}</div>')


def text_block(html: Html) -> Html:
    """Return a text of documents or of a model with its line breaks."""
    return Html(f'<div class="text">{text_html(html)}</div>')


def quotation(html: Html, source: str = "") -> Html:
    """Return a quotation with its source under it."""
    below = paragraph(source, faint=True) if source else ""
    return Html(f"<blockquote>{text_html(html)}{below}</blockquote>")


def facts(values: Mapping[str, str]) -> Html:
    """Return named values; long ones have a row of their own."""
    pairs = (
        element("div", f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>", "long" * (len(value) > LONG_FACT))
        for name, value in values.items()
    )
    return Html(f"<dl>{''.join(pairs)}</dl>")


def bullets(texts: Iterable[str]) -> Html:
    """Return a list."""
    return element("ul", "".join(element("li", escape(text)) for text in texts))


def code(text: str) -> Html:
    """Return lines of code."""
    return Html(f'<pre tabindex="0">{escape(text)}</pre>')


def table(rows: Sequence[Mapping[str, object]], formats: Mapping[str, str] | None = None) -> Html:
    """Return rows as a table; ``formats`` are those of columns of numbers, ``{:.3f}`` of other floats."""
    formats, names = formats or {}, names_of(rows)
    numeric = {name for name in names if any(isinstance(row.get(name), int | float) for row in rows)}
    lines = ["".join(element("th", escape(name), "number" * (name in numeric)) for name in names)]
    for row in rows:
        cells = (cell(row.get(name), formats.get(name), name in numeric) for name in names)
        lines.append("".join(cells))
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    style = "wide many" if len(names) > MANY_COLUMNS else "wide"
    return Html(f'<div class="{style}" tabindex="0"><table>{body}</table></div>')


def cell(value: object, number_format: str | None, is_number: bool) -> Html:
    """Return a cell of a table; None is an empty one."""
    text = "" if value is None else str(value)
    if isinstance(value, int | float):
        text = (number_format or ("{:.3f}" if isinstance(value, float) else "{:,}")).format(value)
    return element("td", escape(text), "number" if is_number else "long" * (len(text) > LONG_CELL))


def figures(titled: Mapping[str, go.Figure]) -> Html:
    """Return figures under their titles, in the colours of the page; `page_html` adds Plotly's script."""
    clear = faded(WHITE, 0)
    look = {"paper_bgcolor": clear, "plot_bgcolor": clear, "legend_bgcolor": clear}
    config = {"displaylogo": False, "responsive": True}
    parts: Iterable[str] = (
        heading(title)
        + "<figure>"
        + standalone(figure)
        .update_layout(**look)
        .to_html(full_html=False, include_plotlyjs=False, config=config)
        + "</figure>"
        for title, figure in titled.items()
    )
    return Html("".join(parts))
