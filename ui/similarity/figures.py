"""Figures and painted texts of contributions to a similarity: blue adds to it, orange subtracts from it."""

from collections.abc import Iterable, Sequence
from html import escape
from math import isnan

import numpy as np
import plotly.graph_objects as go
from streamlit.column_config import NumberColumn

from engine.inspection.pooling.similarity_decomposition import TextUnit, TokenizedText
from engine.layers.tracing import Array
from engine.wording import shortened
from ui.chunk_paint import STRUCK
from ui.colours import BLUE, GREY, ORANGE, faded, paint
from ui.figures import heat_map, numbered_bars, styled
from ui.text import escape_plotly
from ui.tokens import LABELLED_TOKENS, token_axis, visible_blanks

# 0 is transparent, so that it has the page's colour in both themes. Half of the largest value has more than
# half the opacity, so that middle values are visible on dark pages too.
SCALE = [
    [0, faded(ORANGE, 1)],
    [0.25, faded(ORANGE, 0.65)],
    [0.5, faded(ORANGE, 0)],
    [0.5, faded(BLUE, 0)],
    [0.75, faded(BLUE, 0.65)],
    [1, faded(BLUE, 1)],
]
LABEL_CHARACTERS = 18
MOST_BARS = 12
TEXT_HEIGHT = 260
NUMBER = NumberColumn(format="%+.4f")
SPECIAL_CHIP = f"border:1px solid {GREY};font-family:monospace;font-size:12px;padding:1px 4px;margin:0 3px"


def contribution_map(matrix: Array, rows: Sequence[TextUnit], columns: Sequence[TextUnit]) -> go.Figure:
    """Heat map ``(n_rows, n_columns)`` of each pair's contribution, up to the 99.5 % quantile."""
    present = np.abs(matrix[matrix != 0])
    bound = float(np.quantile(present, 0.995)) if present.size else 1.0
    down, across = unit_labels(rows), unit_labels(columns)
    figure = heat_map(
        matrix.astype(np.float32),
        down,
        across,
        "%{y}<br>with %{x}<br>%{z:+.5f}",
        ".2g",
        zmin=-bound,
        zmax=bound,
        colorscale=SCALE,
        colorbar={"thickness": 10, "tickformat": ".2g", "nticks": 5, "orientation": "h", "y": 1.02},
    )
    token_axis(figure.update_yaxes, len(down), showgrid=False)
    token_axis(figure.update_xaxes, len(across), tickangle=-60, showgrid=False)
    row_height = 22 if len(down) <= LABELLED_TOKENS else 4
    styled(figure, height=int(np.clip(190 + row_height * len(down), 280, 900)))
    return figure.update_layout(margin_t=76)  # room for the colours' bar, and for the camera above it


def numbered(place: int, label: str) -> str:
    """Return a label with its place, which is unique even if the word is repeated."""
    return f"{place} {visible_blanks(label)}"


def unit_labels(of_text: Sequence[TextUnit]) -> list[str]:
    """Return a short, unique name for each unit, escaped for Plotly."""
    return [
        escape_plotly(shortened(numbered(number, each.label), LABEL_CHARACTERS))
        for number, each in enumerate(of_text)
    ]


def won_bars(n_won: Array, of_text: Sequence[TextUnit]) -> go.Figure:
    """Bars of the units that won most dimensions, ``(n_units,)``, best at the top."""
    best = np.argsort(-n_won, kind="stable")[:MOST_BARS]
    labels = unit_labels(of_text)
    names = [labels[number] for number in best]
    colours = [GREY if of_text[number].special else BLUE for number in best]
    figure = numbered_bars(n_won[best], names, map(str, n_won[best]), colours, "%{y}: %{x} dimensions")
    figure.update_yaxes(autorange="reversed", type="category")
    figure.update_xaxes(title="dimensions won", range=[0, float(n_won.max()) * 1.2])
    return styled(figure, height=110 + 22 * len(best))


def painted(read: TokenizedText, of_text: Sequence[TextUnit], values: Array, name: str) -> str:
    """Return a text as HTML, each unit coloured by its value; text beyond the token limit is struck through.

    ``values`` is ``(n_units,)``, ``name`` their name in tooltips. Special tokens are chips at their places.
    The scale is that of the text.
    """
    own = [abs(value) for each, value in zip(of_text, values, strict=True) if not each.special]
    largest = max(own, default=0.0) or float(np.abs(values).max()) or 1.0
    html, done = [], 0
    for each, value in zip(of_text, values, strict=True):
        style, title = colour_of(value, largest), f'title="{escape(each.label)}: {name} {value:+.4f}"'
        if each.special:
            html.append(f'<span {title} style="{style};{SPECIAL_CHIP}">{escape(each.label)}</span>')
        elif each.end > done:  # one character can be several tokens: the first is drawn
            start = max(each.start, done)
            html.append(escape(read.text[done:start]))
            html.append(f'<span {title} style="{style}">{escape(read.text[start : each.end])}</span>')
            done = each.end
    rest = escape(read.text[done:])
    if read.tokens_truncated:
        rest = f'<del style="{STRUCK}" title="not read">{rest}</del>'
    return "".join(html) + rest


def painted_parts(text: str, drops: Iterable[tuple[int, int, float]], largest: float) -> str:
    """Return a text as HTML, its parts coloured by what leaving them out does: blue where they raise a score.

    ``drops`` are start, end and the fall of the score without that part; where it is NaN, the part is
    underlined.
    """
    html, place = "", 0
    for start, end, drop in drops:
        if isnan(drop):
            style, title = "text-decoration:underline dotted", "holds the answer"
        else:
            style, title = colour_of(drop, largest or 1.0), f"{drop:+.3f}"
        html += escape(text[place:start])
        html += f'<span title="{title}" style="{style}">{escape(text[start:end])}</span>'
        place = end
    return html + escape(text[place:])


def colour_of(value: float, largest: float) -> str:
    """Return the style of a value: blue above 0, orange below, stronger with distance."""
    colour = paint(BLUE if value >= 0 else ORANGE, min(abs(value) / largest, 1.0))
    return f"background:{colour};border-radius:3px"
