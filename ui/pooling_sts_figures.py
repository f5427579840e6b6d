"""Figures of poolings measured against people: correlations with intervals, and every pair."""

from collections.abc import Sequence
from textwrap import wrap

import numpy as np
import plotly.graph_objects as go

from engine.evaluation.sts import Correlation, Pair
from engine.layers.tracing import Array
from ui.figures import BLUE, GREEN, GREY, ORANGE, styled
from ui.map_figures import shortened
from ui.maps import plain
from ui.pooling_sts_words import BASELINE, difference, ends, verdict
from ui.poolings import LABELS


def correlation_figure(found: Sequence[Correlation]) -> go.Figure:
    """A point a strategy with its interval, best on top; the mean's own is carried down as a line."""
    colours = {"yes": GREEN, "no": ORANGE, "the same": BLUE, "not sure": GREY}
    names = {
        "yes": "better than the mean",
        "no": "worse",
        "the same": "the mean, or the same",
        "not sure": "not sure",
    }
    shapes = {"yes": "triangle-up", "no": "triangle-down", "the same": "circle", "not sure": "diamond"}
    figure = go.Figure()
    for kind, colour in colours.items():
        own = [one for one in found if verdict(one) == kind and not np.isnan(one.spearman.estimate)]
        if not own:
            continue
        at = [100 * one.spearman.estimate for one in own]
        figure.add_trace(
            go.Scatter(
                x=at,
                y=[axis_label(one.strategy) for one in own],
                mode="markers",
                name=names[kind],
                marker={"size": 11, "color": colour, "symbol": shapes[kind]},
                error_x={
                    "array": [100 * one.spearman.high - x for one, x in zip(own, at, strict=True)],
                    "arrayminus": [x - 100 * one.spearman.low for one, x in zip(own, at, strict=True)],
                    "thickness": 2,
                    "width": 5,
                },
                customdata=[(ends(one.spearman, ".1f"), difference(one.gain)) for one in own],
                hovertemplate="%{y}: %{x:.1f}<br>95 %: %{customdata[0]}<br>to the mean: %{customdata[1]}"
                "<extra></extra>",
            )
        )
    [mean] = [one.spearman.estimate for one in found if one.strategy == BASELINE]
    figure.add_vline(x=100 * mean, line_dash="dot", line_color=BLUE, line_width=1)
    order = [axis_label(one.strategy) for one in found if not np.isnan(one.spearman.estimate)]
    figure.update_yaxes(categoryorder="array", categoryarray=order[::-1], automargin=True)
    figure.update_xaxes(title="Spearman × 100")
    figure.update_layout(legend={"orientation": "h", "y": -0.14, "yanchor": "top", "x": 0})
    return styled(figure, height=120 + 38 * len(order))


def axis_label(strategy: str) -> str:
    """Return a strategy's label on lines short enough for a narrow screen."""
    return "<br>".join(wrap(LABELS.get(strategy, strategy), 18))


def pair_figure(pairs: Sequence[Pair], gold: Array, cosines: Array) -> go.Figure:
    """People's score ``gold (n_pairs,)`` against the cosine ``(n_pairs,)``, a point a pair."""
    kind = go.Scattergl if len(pairs) > 1500 else go.Scatter
    figure = go.Figure(
        kind(
            x=gold,
            y=cosines,
            mode="markers",
            marker={"size": 8, "color": BLUE, "opacity": 0.55, "line": {"width": 0.7, "color": GREY}},
            hovertext=[hover(pair, 160) for pair in pairs],
            hovertemplate="%{hovertext}<br>score %{x:.2f}, cosine %{y:.3f}<extra></extra>",
        )
    )
    figure.update_xaxes(title="people's score")
    figure.update_yaxes(title="cosine")
    figure.update_layout(hoverlabel={"align": "left"}, showlegend=False)
    return styled(figure, height=420)


def hover(pair: Pair, characters: int) -> str:
    """Return both sentences, wrapped and escaped, for Plotly's little HTML."""
    both = [
        "<br>".join(plain(line) for line in wrap(shortened(text, characters), 42))
        for text in (pair.first, pair.second)
    ]
    return "<br>– ".join(["– " + both[0], both[1]])
