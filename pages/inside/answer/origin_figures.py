"""Figures of where an answer comes from: effects of patches, and the logit lens as a table."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go

from engine.layers.tracing import Array
from ui.colours import BLUE, DIVERGING, ORANGE, paint
from ui.figures import LEGEND_ABOVE, add_line, heat_map, styled
from ui.tokens import token_axis

FEW_ROWS = 16  # of more, every fifth layer is labelled


def effect_map(effects: Array, rows: Sequence[str], columns: Sequence[str], title: str) -> go.Figure:
    """Heat map of effects, ``(n_rows, n_columns)``, 0 in the middle; ``title`` is that of the columns."""
    bound = max(float(np.nanmax(np.abs(effects), initial=0.0)), 0.1)
    look = {"zmin": -bound, "zmax": bound, "colorscale": DIVERGING}
    figure = heat_map(effects, rows, columns, f"%{{y}}, {title} %{{x}}<br>%{{z:.1%}}", ".0%", **look)
    token_axis(figure.update_xaxes, len(columns), title=title, tickangle=0 if title == "head" else -60)
    labelled = [row for row in rows if len(rows) <= FEW_ROWS or row.endswith(("0", "5"))]
    figure.update_yaxes(type="category", tickvals=labelled)
    return styled(figure, height=max(260, 120 + 15 * len(rows)))


def rank_lines(clean: Array, corrupted: Array, names: tuple[str, str]) -> go.Figure:
    """Lines of the answer's rank by layer in both runs, ``(n_layers + 1,)`` each; 1 is on top."""
    figure = go.Figure()
    layers = [-1, *range(len(clean) - 1)]
    for ranks, name, colour in zip((clean, corrupted), names, (BLUE, ORANGE), strict=True):
        add_line(figure, layers, ranks, name, colour, f"layer %{{x}}, {name}<br>rank %{{y:,}}")
    figure.update_xaxes(title="layer (−1: embeddings)")
    figure.update_yaxes(title="rank", type="log", dtick=1, autorange="reversed", tickformat=",")
    figure.update_layout(legend=LEGEND_ABOVE)
    return styled(figure, height=300)


def lens_html(rows: Sequence[Mapping[str, Any]], n_layers: int, answer: str, alt: str) -> str:
    """The most probable next token of each layer after each token read (across), as an HTML table.

    ``rows`` are those of all tokens read, layer by layer; the last layer is on top, and where the table does
    not fit, the last tokens are in sight. Cells are darker the more probable their token is, and those with
    the answer are bold.
    """
    n_read = len(rows) // n_layers
    head = "".join(f'<th scope="col">{escape(row["read"])}</th>' for row in rows[:n_read])
    body = ""
    for first in reversed(range(0, len(rows), n_read)):
        cells = "".join(lens_cell(row, answer) for row in rows[first : first + n_read])
        body += f'<tr><th scope="row">{escape(rows[first]["after"])}</th>{cells}</tr>'
    return (
        f'<div class="gb-table from-end" role="region" aria-label="{escape(alt)}" tabindex="0"><table>'
        f'<caption>{escape(alt)}</caption><thead><tr><th scope="col">after</th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def lens_cell(row: Mapping[str, Any], answer: str) -> str:
    """One cell of `lens_html`."""
    word, probability = escape(row["most probable"]), row["probability"]
    shown = f"<b>{word}</b>" if row["most probable"] == answer else word
    return (
        f'<td style="background:{paint(BLUE, probability)}" '
        f'title="{escape(row["after"])}, after {escape(row["read"])}: {word} {probability:.1%}">'
        f"{shown} <small>{probability:.0%}</small></td>"
    )
