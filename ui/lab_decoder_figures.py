"""Figures of a training: losses and gradients over the steps, and the attention of one written token."""

from collections.abc import Sequence
from math import log

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from engine.layers.tracing import Array
from engine.training.loop import StepReport
from ui.figures import BLUE, GREEN, GREY, ORANGE, styled
from ui.maps import SEQUENTIAL, token_axis, token_labels

SMOOTHED = 0.7  # how much of the mean so far stays, at each step
DRAWN_POINTS = 400  # more a line cannot show


def learning_figure(reports: Sequence[StepReport], vocab_size: int) -> go.Figure:
    """Losses over the steps, smoothed training loss and held-out loss; below, the length of the gradients."""
    every = max(len(reports) // DRAWN_POINTS, 1)
    shown = [*reports[::every], reports[-1]]
    steps = [report.step for report in shown]
    smooth = smoothed([report.loss for report in reports])
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.1, row_heights=[0.68, 0.32])
    line(figure, steps, [*smooth[::every], smooth[-1]], "training", BLUE, 1)
    held_out = [report for report in reports if report.held_out_loss is not None]
    losses = [report.held_out_loss or 0.0 for report in held_out]
    line(figure, [report.step for report in held_out], losses, "held out", ORANGE, 1, "lines+markers")
    line(figure, [steps[0], steps[-1]], [log(vocab_size)] * 2, "guessing", GREY, 1, "lines", "dot")
    line(figure, steps, [report.grad_norm for report in shown], "gradient length", GREEN, 2)
    figure.update_yaxes(title="loss (nats a token)", row=1, col=1)
    figure.update_yaxes(title="gradient", rangemode="tozero", row=2, col=1)
    figure.update_xaxes(title="step", row=2, col=1)
    figure.update_layout(legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0})
    return styled(figure, height=420)


def line(
    figure: go.Figure,
    steps: Sequence[int],
    values: Sequence[float],
    name: str,
    colour: str,
    row: int,
    mode: str = "lines",
    dash: str = "solid",
) -> None:
    """Add a line to one of the two parts."""
    figure.add_scatter(
        x=list(steps),
        y=list(values),
        name=name,
        mode=mode,
        line={"color": colour, "width": 2, "dash": dash},
        marker={"size": 6},
        hovertemplate=f"step %{{x}}<br>{name} %{{y:.3f}}<extra></extra>",
        row=row,
        col=1,
    )


def smoothed(values: Sequence[float]) -> list[float]:
    """Exponential moving mean, corrected for its beginning as Adam's are."""
    mean, result = 0.0, []
    for number, value in enumerate(values, start=1):
        mean = SMOOTHED * mean + (1 - SMOOTHED) * value
        result.append(mean / (1 - SMOOTHED**number))
    return result


def step_attention(attention: Array, tokens: Sequence[str]) -> go.Figure:
    """Heat map of where every head looked for one token: ``(n_layers, n_heads, n_seen)``."""
    n_layers, n_heads, n_seen = attention.shape
    rows = [f"layer {layer} head {head}" for layer in range(n_layers) for head in range(n_heads)]
    figure = go.Figure(
        go.Heatmap(
            z=attention.reshape(-1, n_seen),
            x=token_labels(tokens),
            y=rows,
            zmin=0,
            zmax=float(np.quantile(attention, 0.99)),
            colorscale=SEQUENTIAL,
            colorbar={"thickness": 12, "tickformat": ".2g", "nticks": 5},
            hovertemplate="%{y}<br>to %{x}<br>%{z:.4f}<extra></extra>",
        )
    )
    figure.update_yaxes(autorange="reversed", type="category", tickfont_size=11)
    token_axis(figure.update_xaxes, n_seen, tickangle=-60)
    return styled(figure, height=160 + 20 * len(rows))
