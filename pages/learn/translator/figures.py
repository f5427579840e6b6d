"""Figures of a training and of a translation."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from engine.layers.tracing import Array
from engine.training.language.seq2seq_loop import ExamReport
from ui.colours import BLUE, GREY, ORANGE
from ui.figures import add_line, heat_map, styled
from ui.tokens import token_labels


def progress_figure(reports: Sequence[ExamReport], n_steps: int, least_loss: float) -> go.Figure:
    """Lines of the loss, and below of the share of held-out sources translated correctly."""
    steps = [report.n_updates for report in reports]
    figure = make_subplots(
        rows=2,
        cols=1,
        shared_xaxes=True,
        vertical_spacing=0.16,
        subplot_titles=["loss (nats a token)", "held-out translations right"],
    )
    lines = (
        ("loss", [report.loss for report in reports], BLUE, "%{y:.3f}"),
        ("right", [report.exact for report in reports], ORANGE, "%{y:.0%}"),
    )
    for row, (name, values, colour, shown) in enumerate(lines, start=1):
        mode, hover = "lines+markers" if len(steps) < 3 else "lines", f"step %{{x}}<br>{name} {shown}"
        add_line(figure, steps, values, name, colour, hover, mode=mode, row=row, col=1)
    figure.add_hline(
        y=least_loss,
        line={"dash": "dot", "color": GREY},
        annotation={"text": "no errors", "font_size": 11},
        annotation_position="bottom right",
        row=1,
        col=1,
    )
    figure.update_xaxes(range=[0, n_steps])
    figure.update_xaxes(title="step", row=2, col=1)
    top = max([report.loss for report in reports] + [least_loss])
    figure.update_yaxes(range=[min(0.0, least_loss - 0.4), top * 1.08], nticks=5, row=1, col=1)
    figure.update_yaxes(range=[-0.04, 1.06], tickformat=".0%", nticks=4, row=2, col=1)
    figure.update_annotations(font_size=13, selector={"xanchor": "center"})
    figure.update_layout(showlegend=False)
    return styled(figure, height=400).update_layout(margin_t=40)


def alignment_map(weights: Array, written: Sequence[str], read: Sequence[str]) -> go.Figure:
    """Heat map of cross-attention ``(n_target, n_source)``: written tokens down, read tokens across."""
    rows, columns = token_labels(written), token_labels(read)
    hover = "writing %{y}<br>attends to %{x}<br>%{z:.3f}"
    figure = heat_map(weights, rows, columns, hover, ".1f", zmin=0, zmax=1, xgap=1, ygap=1)
    figure.update_yaxes(type="category", title="written", tickfont_size=12)
    figure.update_xaxes(type="category", tickangle=-60, title="read", tickfont_size=12)
    return styled(figure, height=190 + 30 * max(3, len(written)))


def chosen_weights(layers: Sequence[Array], layer: int, head: int | None) -> Array:
    """Return the weights of a head of a layer, or the mean of its heads: ``(n_target, n_source)``."""
    heads = layers[layer]  # (n_heads, n_target, n_source)
    mean: Array = heads.mean(axis=0)
    return mean if head is None else np.asarray(heads[head])
