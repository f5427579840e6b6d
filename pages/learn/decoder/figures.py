"""Figures of a training: losses and gradients over the steps, and the attention of one generated token."""

from collections.abc import Sequence
from math import log

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from engine.layers.tracing import Array
from engine.training.language.small_decoder_loop import UpdateReport
from ui.colours import BLUE, GREEN, GREY, ORANGE
from ui.figures import LEGEND_ABOVE, add_line, heat_map, styled
from ui.tokens import token_axis, token_labels

SMOOTHED = 0.7  # weight of the previous mean at each step
DRAWN_POINTS = 400  # most points of a line
HOVER = "step %{x}<br>%{fullData.name} %{y:.3f}"


def learning_figure(reports: Sequence[UpdateReport], vocab_size: int) -> go.Figure:
    """Lines of the smoothed training loss and the held-out loss; below, the norm of the gradients."""
    every = max(len(reports) // DRAWN_POINTS, 1)
    shown = [*reports[::every], reports[-1]]
    steps = [report.update for report in shown]
    smooth = smoothed([report.loss for report in reports])
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.1, row_heights=[0.68, 0.32])
    add_line(figure, steps, [*smooth[::every], smooth[-1]], "training", BLUE, HOVER, row=1, col=1)
    held_out = {report.update: report.held_out_loss for report in reports if report.held_out_loss is not None}
    look = {"mode": "lines+markers", "row": 1, "col": 1}
    add_line(figure, held_out, held_out.values(), "held out", ORANGE, HOVER, **look)
    ends, guessing = [steps[0], steps[-1]], [log(vocab_size)] * 2
    add_line(figure, ends, guessing, "guessing", GREY, HOVER, line_dash="dot", row=1, col=1)
    gradients = [report.grad_norm for report in shown]
    add_line(figure, steps, gradients, "gradient length", GREEN, HOVER, row=2, col=1)
    figure.update_yaxes(title="loss (nats a token)", row=1, col=1)
    figure.update_yaxes(title="gradient", rangemode="tozero", row=2, col=1)
    figure.update_xaxes(title="step", row=2, col=1)
    figure.update_layout(legend=LEGEND_ABOVE)
    return styled(figure, height=420)


def smoothed(values: Sequence[float]) -> list[float]:
    """Return the exponential moving mean, bias-corrected as in Adam."""
    mean, result = 0.0, []
    for number, value in enumerate(values, start=1):
        mean = SMOOTHED * mean + (1 - SMOOTHED) * value
        result.append(mean / (1 - SMOOTHED**number))
    return result


def step_attention(attention: Array, tokens: Sequence[str]) -> go.Figure:
    """Heat map of the attention of all heads for one token, ``(n_layers, n_heads, n_seen)``."""
    n_layers, n_heads, n_seen = attention.shape
    rows = [f"layer {layer} head {head}" for layer in range(n_layers) for head in range(n_heads)]
    values, columns = attention.reshape(-1, n_seen), token_labels(tokens)
    highest = float(np.quantile(attention, 0.99))
    figure = heat_map(
        values, rows, columns, "%{y}<br>to %{x}<br>%{z:.4f}", ".2g", zmin=0, zmax=highest, colorbar_nticks=5
    )
    figure.update_yaxes(type="category", tickfont_size=11)
    token_axis(figure.update_xaxes, n_seen, tickangle=-60)
    return styled(figure, height=160 + 20 * len(rows))
