"""Figures of tensors and of attention, for 5 to 512 tokens."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from engine.layers.tracing import Array
from ui.colours import BLUE, DIVERGING, GREY, ORANGE, SEQUENTIAL
from ui.figures import add_line, heat_map, numbered_cells, styled
from ui.text import escape_plotly
from ui.tokens import LABELLED_TOKENS, token_axis

GRID_CELLS, GRID_TICKS = 48, 8  # along a side of a small map
TENSOR_COLUMNS = 384
ARCS = 12
ARC_POINTS = np.linspace(0, np.pi, 25)


def tensor_map(
    tensor: Array, rows: Sequence[str], title: str, columns: Sequence[str] | None = None
) -> go.Figure:
    """Heat map of a matrix ``(n_rows, n_columns)``; values below 0 have their own colours.

    Of one wider than `TENSOR_COLUMNS`, each cell is the value farthest from 0 of some columns.
    """
    step = -(-tensor.shape[1] // TENSOR_COLUMNS)
    shown = farthest_from_zero(tensor, step)
    bound = float(np.quantile(np.abs(shown), 0.995)) or 1.0
    signed = bool((shown < 0).any())
    figure = heat_map(
        shown,
        list(rows),
        np.arange(shown.shape[1]) * step if columns is None else list(columns)[::step],
        "%{y}<br>" + title + " %{x}<br>%{z:.4g}",
        ".2g",
        zmin=-bound if signed else 0,
        zmax=bound,
        colorscale=DIVERGING if signed else SEQUENTIAL,
        reversescale=signed,
    )
    if columns is None:
        figure.update_xaxes(title=title)
    else:
        token_axis(figure.update_xaxes, len(columns), title=title, tickangle=-60)
    token_axis(figure.update_yaxes, len(rows))
    return styled(figure, height=min(520, 140 + 18 * len(rows)))


def farthest_from_zero(tensor: Array, step: int) -> Array:
    """Return the value farthest from 0 of every ``step`` columns."""
    if step == 1:
        return tensor
    padding = -tensor.shape[1] % step
    blocks = np.pad(tensor, ((0, 0), (0, padding))).reshape(len(tensor), -1, step)
    places = np.abs(blocks).argmax(axis=-1)[..., None]
    return np.take_along_axis(blocks, places, axis=-1)[..., 0]


def head_grid(weights: Array, chosen: int, labels: Sequence[str]) -> go.Figure:
    """Small maps of a layer's heads, ``(n_heads, n_query, n_key)``, with tokens, each on its own scale."""
    first = list(labels)[:: block_size(len(labels), GRID_CELLS)]
    n_heads = len(weights)
    n_columns = 4 if n_heads % 4 == 0 else 3
    titles = [f"<b>head {i} ◂</b>" if i == chosen else f"head {i}" for i in range(n_heads)]
    figure = make_subplots(
        rows=-(-n_heads // n_columns),
        cols=n_columns,
        subplot_titles=titles,
        horizontal_spacing=0.03,
        vertical_spacing=0.09,
    )
    for number, head in enumerate(weights):
        small = go.Heatmap(
            z=largest_of_blocks(head, GRID_CELLS),
            x=first,
            y=first,
            colorscale=SEQUENTIAL,
            zmin=0,
            showscale=False,
            hovertemplate=f"head {number}<br>from %{{y}}<br>to %{{x}}<br>%{{z:.3f}}<extra></extra>",
        )
        figure.add_trace(small, row=number // n_columns + 1, col=number % n_columns + 1)
    look = {
        "type": "category",
        "nticks": GRID_TICKS,
        "tickfont_size": 9,
        "showticklabels": False,
        "automargin": True,
    }
    figure.update_xaxes(**look, tickangle=-60)
    figure.update_yaxes(**look, autorange="reversed")
    figure.update_yaxes(col=1, showticklabels=True)
    figure.update_xaxes(row=-(-n_heads // n_columns), showticklabels=True)
    figure.update_annotations(font_size=12)
    styled(figure, height=170 * -(-n_heads // n_columns) + 30)
    return figure.update_layout(margin_t=54)  # room for the camera above the titles


def largest_of_blocks(matrix: Array, n_cells: int) -> Array:
    """Shrink a square matrix to at most ``n_cells`` a side; each cell is the largest value of its block."""
    step = block_size(len(matrix), n_cells)
    padding = -len(matrix) % step
    padded = np.pad(matrix, (0, padding))
    side = len(padded) // step
    return padded.reshape(side, step, side, step).max(axis=(1, 3))


def block_size(n: int, n_cells: int) -> int:
    """Return how many of ``n`` rows one of at most ``n_cells`` cells stands for."""
    return -(-n // n_cells)


def arcs(weights: Array, tokens: Sequence[str], token: int) -> go.Figure:
    """Arcs from one token to those it attends to (above), and from those that attend to it (below).

    ``weights`` is ``(n_query, n_key)``; the strongest `ARCS` of each kind are drawn, as wide as they
    are strong.
    """
    figure = go.Figure()
    named = {token}
    for values, side, colour, verb in (
        (weights[token], 1, BLUE, "attends to"),
        (weights[:, token], -1, ORANGE, "is attended to by"),
    ):
        strongest = [int(i) for i in np.argsort(-values)[:ARCS] if values[i] > 0]
        for other in strongest:
            middle, radius = (token + other) / 2, abs(token - other) / 2
            x, y = middle + radius * np.cos(ARC_POINTS), radius * np.sin(ARC_POINTS)
            if other == token:  # a small circle on its own place
                x, y = token + 0.3 * np.sin(2 * ARC_POINTS), 0.3 * (1 - np.cos(2 * ARC_POINTS))
            share = float(values[other])
            width = 1 + 9 * share / float(values[strongest[0]])
            name = escape_plotly(f"{tokens[token]} {verb} {other} {tokens[other]}: {share:.3f}")
            look = {"line_width": width, "opacity": 0.65, "showlegend": False}
            add_line(figure, x, side * y, name, colour, "%{fullData.name}", **look)
        named.update(strongest if len(tokens) > LABELLED_TOKENS else range(len(tokens)))
    places = sorted(named)
    figure.add_scatter(
        x=places,
        y=[0] * len(places),
        mode="markers",
        marker={"size": [11 if place == token else 5 for place in places], "color": GREY},
        hovertext=[f"{place} {escape_plotly(tokens[place])}" for place in places],
        hoverinfo="text",
        showlegend=False,
    )
    apart = len(tokens) / LABELLED_TOKENS  # of a label and that of the token, which always has one
    shown = [place for place in places if place == token or apart <= 1 or abs(place - token) > apart]
    figure.update_xaxes(
        tickvals=shown,
        ticktext=[escape_plotly(tokens[place]) for place in shown],
        tickangle=-60,
        showgrid=False,
        zeroline=False,
        range=[-1, len(tokens)],
    )
    figure.update_yaxes(visible=False)
    return styled(figure, height=420)


def similarity_map(cosines: Array, names: Sequence[str]) -> go.Figure:
    """Heat map of the cosines between one token's vectors after each layer, ``(n, n)``."""
    look = numbered_cells("%{z:.2f}") if len(cosines) <= 8 else {}
    lowest, hover = min(0.0, float(cosines.min())), "%{y} and %{x}<br>cosine %{z:.3f}"
    figure = heat_map(cosines, names, names, hover, ".1f", zmin=lowest, zmax=1, **look)
    figure.update_xaxes(tickangle=-60)
    return styled(figure, height=420)
