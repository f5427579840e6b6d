"""Figures of a tuning: losses by epoch, and the gain of each metric."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from engine.training.search.cross_validation import CrossValidated, MetricChange
from ui.colours import BLUE, GREEN, GREY, ORANGE
from ui.figures import add_line, legend_below, styled

LEGEND = legend_below(0.28)


def loss_figure(run: CrossValidated) -> go.Figure:
    """Lines of each fold's loss by epoch, on the training questions and on those held out."""
    figure = go.Figure()
    for fold, curves in enumerate(run.losses):
        for curve, name, colour, dash in zip(
            curves, ("trained on", "held out"), (BLUE, ORANGE), ("solid", "dash"), strict=True
        ):
            epochs, losses = np.array(curve).T
            look = {"mode": "lines+markers" if len(epochs) < 15 else "lines", "line_dash": dash}
            hover = f"fold {fold + 1}, {name}<br>epoch %{{x}}: %{{y:.3f}}"
            shown = {"legendgroup": name, "showlegend": fold == 0, "line_width": 2}
            add_line(figure, epochs, losses, name, colour, hover, **look, **shown)
    figure.update_xaxes(title="epoch", rangemode="tozero", dtick=1 if epochs[-1] <= 12 else None)
    figure.update_yaxes(title="loss (nats)")
    figure.update_layout(legend=LEGEND)
    return styled(figure, height=330)


def gain_figure(changes: Sequence[tuple[str, MetricChange]]) -> go.Figure:
    """Points of each metric's difference with its 95 % interval."""
    figure = go.Figure()
    names = [name for name, _ in changes]
    found = [one.comparison for _, one in changes]
    colours = [GREEN if c.low > 0 else ORANGE if c.high < 0 else GREY for c in found]
    figure.add_scatter(
        x=[c.difference for c in found],
        y=names,
        mode="markers",
        marker={"size": 11, "color": colours},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [c.high - c.difference for c in found],
            "arrayminus": [c.difference - c.low for c in found],
            "color": GREY,
        },
        customdata=[[c.low, c.high, c.p_value] for c in found],
        hovertemplate="%{y}: %{x:+.3f}<br>95 % interval %{customdata[0]:+.3f} to %{customdata[1]:+.3f}"
        "<br>p = %{customdata[2]:.4f}<extra></extra>",
    )
    figure.add_vline(x=0, line={"dash": "dot", "color": GREY})
    figure.update_xaxes(title="after minus before")
    figure.update_yaxes(autorange="reversed", automargin=True)
    return styled(figure, height=90 + 38 * len(names))
