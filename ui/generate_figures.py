"""Figures of an answer: how sure the model was, what its sentences rest on, and what the KV cache saves."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from engine.generation.cache_cost import CacheCost
from engine.generation.step import Candidate
from engine.inspection.positions import DistanceScores
from engine.layers.tracing import Array
from ui.figures import BLUE, GREEN, GREY, ORANGE, styled
from ui.maps import DIVERGING, LABELLED_TOKENS, SEQUENTIAL, plain, readable, token_axis, token_labels

LINE_COLOURS = {"learned": ORANGE, "sinusoidal": GREEN, "RoPE": BLUE, "ALiBi": "#CC79A7"}


def certainty_figure(
    tokens: Sequence[str], probabilities: Sequence[float], entropies: Sequence[float], chosen: int
) -> go.Figure:
    """Bars of each token's probability, and below them the entropy of what might have come instead."""
    labels = token_labels(tokens)
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.12, row_heights=[0.6, 0.4])
    colours = [ORANGE if number == chosen else BLUE for number in range(len(tokens))]
    figure.add_bar(
        x=labels,
        y=list(probabilities),
        marker_color=colours,
        hovertemplate="%{x}<br>probability %{y:.1%}<extra></extra>",
        row=1,
        col=1,
    )
    figure.add_scatter(
        x=labels,
        y=list(entropies),
        mode="lines+markers",
        line_color=GREY,
        marker={"color": colours, "size": 7},
        hovertemplate="%{x}<br>entropy %{y:.2f} nats<extra></extra>",
        row=2,
        col=1,
    )
    token_axis(figure.update_xaxes, len(labels), tickangle=-60)
    figure.update_xaxes(showticklabels=False, row=1, col=1)
    figure.update_yaxes(title="probability", range=[0, 1.02], tickformat=".0%", row=1, col=1)
    figure.update_yaxes(title="entropy (nats)", rangemode="tozero", row=2, col=1)
    figure.update_layout(showlegend=False)
    return styled(figure, height=380 if len(labels) <= LABELLED_TOKENS else 320)


def candidate_bars(candidates: Sequence[Candidate], chosen: int) -> go.Figure:
    """Bars of what the model gives each candidate, and of the chance the sampler makes of it."""
    labels = [
        f"{'<b>' * taken}{rank}. {plain(readable(candidate.text))}{' ◂</b>' * taken}"
        for rank, candidate in enumerate(candidates, start=1)
        for taken in [candidate.token_id == chosen]
    ]
    parts = (
        ("probability", BLUE, [candidate.probability for candidate in candidates]),
        ("chance", ORANGE, [candidate.chance for candidate in candidates]),
    )
    figure = go.Figure(
        [
            go.Bar(
                x=values,
                y=labels,
                name=name,
                orientation="h",
                marker_color=colour,
                hovertemplate=f"%{{y}}<br>{name} %{{x:.2%}}<extra></extra>",
            )
            for name, colour, values in parts
        ]
    )
    figure.update_yaxes(autorange="reversed", type="category")
    figure.update_xaxes(tickformat=".0%", rangemode="tozero")
    figure.update_layout(
        barmode="group",
        legend={"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
    )
    return styled(figure, height=120 + 32 * len(labels))


def share_map(shares: Array, rows: Sequence[str], columns: Sequence[str]) -> go.Figure:
    """Heat map of shares of attention, ``(n_sentences, n_columns)``, from 0 to the largest."""
    heat = go.Heatmap(
        z=shares,
        zmin=0,
        zmax=float(shares.max()),
        colorscale=SEQUENTIAL,
        texttemplate="%{z:.1%}",
        colorbar={"thickness": 10, "tickformat": ".0%"},
        hovertemplate="%{y}<br>%{x}: %{z:.2%}<extra></extra>",
    )
    return pair_map(heat, rows, columns)


def fall_map(falls: Array, rows: Sequence[str], columns: Sequence[str]) -> go.Figure:
    """Heat map of falls of log-probability per token, ``(n_sentences, n_columns)``, 0 in the middle."""
    bound = max(float(np.abs(falls).max()), 0.1)
    heat = go.Heatmap(
        z=falls,
        zmin=-bound,
        zmax=bound,
        colorscale=DIVERGING,
        reversescale=True,
        texttemplate="%{z:.2f}",
        colorbar={"thickness": 10, "tickformat": ".2~g"},
        hovertemplate="%{y}<br>%{x}: %{z:.3f} nats per token<extra></extra>",
    )
    return pair_map(heat, rows, columns)


def pair_map(heat: go.Heatmap, rows: Sequence[str], columns: Sequence[str]) -> go.Figure:
    """Give a heat map of sentences and passages its axes."""
    heat.x, heat.y = [plain(name) for name in columns], [plain(name) for name in rows]
    figure = go.Figure(heat)
    figure.update_xaxes(type="category", side="top", tickangle=0)
    figure.update_yaxes(type="category", autorange="reversed")
    return styled(figure, height=90 + 44 * max(len(rows), 2))


def cache_figure(cost: CacheCost) -> go.Figure:
    """Lines of the milliseconds that one more token takes, with and without the cache, over the length."""
    figure = go.Figure()
    parts = (
        ("without the cache", ORANGE, "dash", cost.uncached_s),
        ("with the cache", BLUE, "solid", cost.cached_s),
    )
    for name, colour, dash, seconds in parts:
        figure.add_scatter(
            x=list(cost.lengths),
            y=[1000 * second for second in seconds],
            name=name,
            mode="lines+markers",
            line={"color": colour, "dash": dash},
            hovertemplate=f"{name}<br>%{{x}} tokens before it<br>%{{y:,.0f}} ms<extra></extra>",
        )
    figure.update_xaxes(title="tokens before it", rangemode="tozero")
    figure.update_yaxes(title="ms for one more token", rangemode="tozero")
    figure.update_layout(legend={"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0})
    return styled(figure, height=320)


def positions_figure(schemes: Sequence[DistanceScores]) -> go.Figure:
    """Lines of how a score changes with the distance; where it is not the distance alone, a band."""
    figure = go.Figure()
    for scheme in schemes:
        colour = LINE_COLOURS[scheme.scheme]
        for name, change, low, high in zip(
            scheme.lines, scheme.change, scheme.lowest, scheme.highest, strict=True
        ):
            if not np.array_equal(low, high):
                figure.add_scatter(
                    x=[*scheme.distances, *scheme.distances[::-1]],
                    y=[*low, *high[::-1]],
                    fill="toself",
                    fillcolor=colour,
                    opacity=0.2,
                    line_width=0,
                    hoverinfo="skip",
                    showlegend=False,
                )
            figure.add_scatter(
                x=scheme.distances,
                y=change,
                name=name,
                mode="lines",
                line_color=colour,
                hovertemplate=f"{name}<br>distance %{{x}}: %{{y:.2f}}<extra></extra>",
            )
    figure.update_xaxes(title="distance in tokens")
    figure.update_yaxes(title="change of the score")
    figure.update_layout(showlegend=False)
    return styled(figure, height=300)
