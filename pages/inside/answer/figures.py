"""Figures of an answer: certainty of tokens, candidates, passages behind sentences."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from engine.generation.generated_token import Candidate
from engine.layers.tracing import Array
from ui.colours import BLUE, GREY, ORANGE
from ui.figures import LEGEND_ABOVE, heat_map, numbered_cells, styled
from ui.text import escape_plotly
from ui.tokens import LABELLED_TOKENS, token_axis, token_labels, visible_blanks


def certainty_figure(
    tokens: Sequence[str], probabilities: Sequence[float], entropies: Sequence[float], chosen: int
) -> go.Figure:
    """Bars of each token's probability, and below them the entropy of its distribution."""
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
    """Bars of each candidate's probability, and of the sampler's chance to draw it."""
    labels = [
        f"{'<b>' * taken}{rank}. {escape_plotly(visible_blanks(candidate.text))}{' ◂</b>' * taken}"
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
    figure.update_layout(barmode="group", legend=LEGEND_ABOVE)
    return styled(figure, height=120 + 32 * len(labels))


def sentence_map(values: Array, rows: Sequence[str], columns: Sequence[str], are_shares: bool) -> go.Figure:
    """Heat map of sentences and passages, with numbers: shares from 0 up, or drops from 0 both ways."""
    if are_shares:
        shown, number_format = "%{z:.2%}", ".0%"
        look = {"zmin": 0, "zmax": float(values.max()), **numbered_cells("%{z:.1%}")}
    else:
        shown, number_format = "%{z:.3f} nats per token", ".2~g"
        bound = max(float(np.abs(values).max()), 0.1)
        look = {"zmin": -bound, "zmax": bound, "reversescale": True}
        look |= numbered_cells("%{z:.2f}", signed=True)
    down, across = ([escape_plotly(name) for name in names] for names in (rows, columns))
    figure = heat_map(values, down, across, f"%{{y}}<br>%{{x}}: {shown}", number_format, **look)
    figure.update_xaxes(type="category", side="top", tickangle=0)
    figure.update_yaxes(type="category")
    return styled(figure, height=90 + 44 * max(len(rows), 2))
