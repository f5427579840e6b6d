"""Figures of tensors and of attention, readable from 5 tokens to 512."""

from collections.abc import Sequence
from html import escape

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from engine.layers.tracing import Array
from ui.figures import BLUE, GREY, ORANGE, styled

# Both scales read the same to colour-blind eyes.
SEQUENTIAL, DIVERGING = "Cividis", "RdBu"
LABELLED_TOKENS = 48  # more labels than this overlap
GRID_CELLS = 48  # cells along a side of a small map
TENSOR_COLUMNS = 384
ARCS = 12
ARC_POINTS = np.linspace(0, np.pi, 25)


def plain(text: str) -> str:
    """Escape what Plotly would take for markup; quotes it shows as they are."""
    return escape(text, quote=False)


def token_labels(tokens: Sequence[str]) -> list[str]:
    """Return a name for each token that no other has; Plotly reads a little HTML, so it is escaped."""
    return [f"{number} {plain(token)}" for number, token in enumerate(tokens)]


def tensor_map(tensor: Array, rows: Sequence[str], columns: str) -> go.Figure:
    """Heat map of a matrix, ``(n_rows, n_columns)``; values on either side of 0 have colours of their own.

    Matrices wider than `TENSOR_COLUMNS` show, of some neighbouring columns, the value farthest from 0.
    """
    step = -(-tensor.shape[1] // TENSOR_COLUMNS)
    shown = farthest_from_zero(tensor, step)
    bound = float(np.quantile(np.abs(shown), 0.995)) or 1.0
    signed = bool((shown < 0).any())
    figure = go.Figure(
        go.Heatmap(
            z=shown,
            x=np.arange(shown.shape[1]) * step,
            y=list(rows),
            zmin=-bound if signed else 0,
            zmax=bound,
            colorscale=DIVERGING if signed else SEQUENTIAL,
            reversescale=signed,
            colorbar={"thickness": 12, "tickformat": ".2g"},
            hovertemplate="%{y}<br>" + columns + " %{x}<br>%{z:.4g}<extra></extra>",
        )
    )
    figure.update_xaxes(title=columns)
    token_axis(figure.update_yaxes, len(rows), autorange="reversed")
    return styled(figure, height=min(520, 140 + 18 * len(rows)))


def farthest_from_zero(tensor: Array, step: int) -> Array:
    """Of every ``step`` columns, keep the value farthest from 0."""
    if step == 1:
        return tensor
    padding = -tensor.shape[1] % step
    blocks = np.pad(tensor, ((0, 0), (0, padding))).reshape(len(tensor), -1, step)
    places = np.abs(blocks).argmax(axis=-1)[..., None]
    return np.take_along_axis(blocks, places, axis=-1)[..., 0]


def weights_map(weights: Array, tokens: Sequence[str], causal: bool) -> go.Figure:
    """Heat map of attention: queries down, keys across, ``(n_query, n_key)``.

    Where it is ``causal``, the keys that the mask hides stay empty. The few largest values share a
    colour, so that one bright diagonal does not leave all else dark.
    """
    visible = np.tri(len(weights), dtype=bool) if causal else np.ones(weights.shape, bool)
    labels = token_labels(tokens)
    figure = go.Figure(
        go.Heatmap(
            z=np.where(visible, weights, np.nan),
            x=labels,
            y=labels,
            zmin=0,
            zmax=float(np.quantile(weights[visible], 0.995)),
            colorscale=SEQUENTIAL,
            colorbar={"thickness": 12, "tickformat": ".2g"},
            hovertemplate="from %{y}<br>to %{x}<br>%{z:.4f}<extra></extra>",
        )
    )
    token_axis(figure.update_yaxes, len(labels), title="from (query)", autorange="reversed")
    token_axis(figure.update_xaxes, len(labels), title="to (key)", tickangle=-60)
    return styled(figure, height=620)


def token_axis(update: object, n_tokens: int, **settings: object) -> None:
    """Set up an axis of tokens: all their labels where they fit, else only where the mouse is."""
    assert callable(update)
    update(type="category", showticklabels=n_tokens <= LABELLED_TOKENS, tickfont_size=11, **settings)


def head_grid(weights: Array, chosen: int) -> go.Figure:
    """Small maps of all heads of a layer, ``(n_heads, n_query, n_key)``, each on its own scale."""
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
            colorscale=SEQUENTIAL,
            zmin=0,
            showscale=False,
            hovertemplate=f"head {number}: %{{z:.3f}}<extra></extra>",
        )
        figure.add_trace(small, row=number // n_columns + 1, col=number % n_columns + 1)
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False, autorange="reversed")
    figure.update_annotations(font_size=12)
    styled(figure, height=170 * -(-n_heads // n_columns) + 30)
    return figure.update_layout(margin_t=54)  # room for the camera above the titles


def largest_of_blocks(matrix: Array, n_cells: int) -> Array:
    """Shrink a square matrix to at most ``n_cells`` a side; each cell is the largest value of its block."""
    step = -(-len(matrix) // n_cells)
    padding = -len(matrix) % step
    padded = np.pad(matrix, (0, padding))
    side = len(padded) // step
    return padded.reshape(side, step, side, step).max(axis=(1, 3))


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
            figure.add_scatter(
                x=x,
                y=side * y,
                mode="lines",
                line={"width": 1 + 9 * share / float(values[strongest[0]]), "color": colour},
                opacity=0.65,
                name=f"{plain(tokens[token])} {verb} {other} {plain(tokens[other])}: {share:.3f}",
                hovertemplate="%{fullData.name}<extra></extra>",
                showlegend=False,
            )
        named.update(strongest if len(tokens) > LABELLED_TOKENS else range(len(tokens)))
    places = sorted(named)
    figure.add_scatter(
        x=places,
        y=[0] * len(places),
        mode="markers",
        marker={"size": [11 if place == token else 5 for place in places], "color": GREY},
        hovertext=[f"{place} {plain(tokens[place])}" for place in places],
        hoverinfo="text",
        showlegend=False,
    )
    shown = [place for place in places if far_enough(place, token, len(tokens))]
    figure.update_xaxes(
        tickvals=shown,
        ticktext=[plain(tokens[place]) for place in shown],
        tickangle=-60,
        showgrid=False,
        zeroline=False,
        range=[-1, len(tokens)],
    )
    figure.update_yaxes(visible=False)
    return styled(figure, height=420)


def far_enough(place: int, token: int, n_tokens: int) -> bool:
    """Whether a label fits beside the chosen token's, which always has one."""
    return place == token or n_tokens <= LABELLED_TOKENS or abs(place - token) > n_tokens / LABELLED_TOKENS


def layer_head_map(values: Array, name: str, number_format: str) -> go.Figure:
    """Heat map of one number a head, layers down: ``(n_layers, n_heads)``."""
    figure = go.Figure(
        go.Heatmap(
            z=values,
            colorscale=SEQUENTIAL,
            colorbar={"thickness": 12, "tickformat": number_format},
            texttemplate=f"%{{z:{number_format}}}" if values.size <= 72 else None,
            hovertemplate=f"layer %{{y}}, head %{{x}}<br>{name} %{{z:{number_format}}}<extra></extra>",
        )
    )
    figure.update_xaxes(title="head", dtick=1)
    figure.update_yaxes(title="layer", autorange="reversed", dtick=1 if len(values) <= 12 else 5)
    return styled(figure, height=max(260, 90 + 18 * len(values)))


def similarity_map(cosines: Array) -> go.Figure:
    """Heat map of the cosines between one token's vectors after each layer, ``(n, n)``."""
    names = ["embedding", *(f"layer {number}" for number in range(len(cosines) - 1))]
    figure = go.Figure(
        go.Heatmap(
            z=cosines,
            x=names,
            y=names,
            zmin=min(0.0, float(cosines.min())),
            zmax=1,
            colorscale=SEQUENTIAL,
            colorbar={"thickness": 12, "tickformat": ".1f"},
            texttemplate="%{z:.2f}" if len(cosines) <= 8 else None,
            hovertemplate="%{y} and %{x}<br>cosine %{z:.3f}<extra></extra>",
        )
    )
    figure.update_xaxes(tickangle=-60)
    figure.update_yaxes(autorange="reversed")
    return styled(figure, height=420)


def probability_bars(tokens: Sequence[str], probabilities: Sequence[float]) -> go.Figure:
    """Bars of the most probable next tokens, best at the top."""
    labels = [f"{rank}. {plain(readable(token))}" for rank, token in enumerate(tokens, start=1)]
    figure = go.Figure(
        go.Bar(
            x=list(probabilities),
            y=labels,
            orientation="h",
            marker_color=BLUE,
            text=[f"{value:.1%}" for value in probabilities],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{y}: %{x:.4f}<extra></extra>",
        )
    )
    figure.update_yaxes(autorange="reversed")
    figure.update_xaxes(tickformat=".0%", range=[0, max(probabilities) * 1.25])
    return styled(figure, height=90 + 24 * len(labels))


def readable(token: str) -> str:
    """Return a token with its white space made visible."""
    return token.replace(" ", "␣").replace("\n", "↵").replace("\t", "⇥") or "∅"
