"""Figures of the worked example, and its matrices as HTML tables in brackets, with all digits."""

from collections.abc import Sequence
from html import escape

import numpy as np
import plotly.graph_objects as go
import streamlit as st
from plotly.subplots import make_subplots

from engine.inspection.model.worked_example import WORDS, BlockMagnitude
from engine.layers.activation import softmax
from engine.layers.tracing import Array
from ui.colours import BLUE, FAINT, GREY, ORANGE, SEQUENTIAL
from ui.figures import add_line, legend_below, numbered_cells, probability_bars, styled
from ui.text import escape_plotly
from ui.tokens import token_labels

FLOAT32_MAX = float(np.finfo(np.float32).max)
EXP_LIMIT = float(np.log(FLOAT32_MAX))  # exp of more is infinite in float32
DIVISORS = np.geomspace(1, 100, 81)
BRACKET = "border:solid currentColor;border-width:0 1px;border-radius:6px"
CELL = "padding:1px clamp(4px,1.2vw,8px);text-align:right;border:0;white-space:nowrap"
NAME = f"padding:1px 10px 1px 0;text-align:left;border:0;white-space:nowrap;{FAINT}"


def saturation_figure(scores: Array, words: Sequence[str], divisor: float) -> go.Figure:
    """Lines of each query's largest weight against the divisor of its scores, ``(n_query, n_key)``."""
    figure = go.Figure()
    largest = softmax(scores / DIVISORS[:, None, None]).max(axis=-1)  # (n_divisors, n_query)
    for word, weights, colour, dash in zip(words, largest.T, (BLUE, ORANGE), ("solid", "dash"), strict=True):
        label = escape_plotly(word)
        hover = label + "<br>divided by %{x:.3g}: %{y:.6f}"
        add_line(figure, DIVISORS, weights, label, colour, hover, line_dash=dash)
    for place, label in ((np.sqrt(3), "√3"), (30.0, "30")):
        here = " ◂" if np.isclose(place, divisor) else ""
        figure.add_vline(x=place, line={"dash": "dot", "color": GREY})
        figure.add_annotation(x=np.log10(place), y=1.02, yanchor="bottom", text=label + here, showarrow=False)
    figure.update_xaxes(title="scores divided by", type="log", range=[0, 2], tickvals=[1, 3, 10, 30, 100])
    figure.update_yaxes(title="largest weight", range=[0.45, 1.02])
    figure.update_layout(legend=legend_below(0.3))
    return styled(figure, height=330).update_layout(margin_t=40)


def growth_figure(sizes: Sequence[BlockMagnitude], shift: bool) -> go.Figure:
    """Lines of the largest score and output of each block, up to the first NaN."""
    blocks = np.arange(1, len(sizes) + 1)
    scores = np.array([size.largest_score for size in sizes])
    outputs = np.array([size.largest_output for size in sizes])
    figure = go.Figure()
    for name, values, colour, dash in (
        ("largest score", scores, BLUE, "solid"),
        ("largest output", outputs, ORANGE, "dash"),
    ):
        shown = np.where(np.isfinite(values) & (values > 0), values, np.nan)
        look = {"mode": "lines+markers", "line_dash": dash, "marker_size": 8}
        add_line(figure, blocks, shown, name, colour, f"block %{{x}}<br>{name} %{{y:.4g}}", **look)
    first = first_nan(sizes)
    if first:
        figure.add_vrect(
            x0=first - 0.5,
            x1=len(sizes) + 0.5,
            fillcolor=GREY,
            opacity=0.25,
            line_width=0,
            annotation_text="NaN",
            annotation_position="top right",
        )
    if not shift:
        figure.add_hline(y=EXP_LIMIT, line={"dash": "dot", "color": GREY})
        figure.add_annotation(
            x=len(sizes) + 0.5,
            y=np.log10(EXP_LIMIT),
            xanchor="right",
            yanchor="bottom",
            showarrow=False,
            text=f"exp overflows above {EXP_LIMIT:.1f}",
        )
    figure.update_xaxes(title="block", range=[0.5, len(sizes) + 0.5], dtick=1 if len(sizes) <= 12 else 4)
    lowest, highest = decades([*scores, *outputs] + [EXP_LIMIT] * (not shift))
    figure.update_yaxes(
        type="log", range=[lowest, highest], dtick=max(1, (highest - lowest) // 6), exponentformat="power"
    )
    figure.update_layout(legend=legend_below(0.3))
    return styled(figure, height=340).update_layout(margin_t=34)


def decades(values: Sequence[float]) -> tuple[int, int]:
    """Return the powers of ten that enclose all finite values above 0."""
    logs = np.log10([value for value in values if np.isfinite(value) and value > 0] or [1.0])
    return int(np.floor(logs.min() - 0.1)), int(np.ceil(logs.max() + 0.1))


def first_nan(sizes: Sequence[BlockMagnitude]) -> int | None:
    """Return the number of the first block with a NaN or infinite output, counted from 1."""
    bad = (number for number, size in enumerate(sizes, start=1) if not np.isfinite(size.largest_output))
    return next(bad, None)


def head_maps(heads: Sequence[Array], queries: Sequence[str], keys: Sequence[str], causal: bool) -> go.Figure:
    """Heat maps ``(n_query, n_key)`` of two heads side by side, without what a causal mask hides."""
    visible = np.tri(len(queries), len(keys), dtype=bool) if causal else True
    figure = make_subplots(
        rows=1, cols=2, subplot_titles=["head 1", "head 2"], horizontal_spacing=0.06, shared_yaxes=True
    )
    for number, weights in enumerate(heads, start=1):
        figure.add_heatmap(
            z=np.where(visible, weights, np.nan),
            x=token_labels(keys),
            y=token_labels(queries),
            zmin=0,
            zmax=1,
            showscale=False,
            xgap=1,
            ygap=1,
            **(numbered_cells("%{z:.2f}") if len(keys) <= 4 else {"colorscale": SEQUENTIAL}),
            hovertemplate="from %{y}<br>to %{x}<br>%{z:.6f}<extra></extra>",
            row=1,
            col=number,
        )
    figure.update_yaxes(autorange="reversed", type="category", tickfont_size=11)
    figure.update_xaxes(type="category", tickangle=-60, tickfont_size=11)
    return styled(figure, height=150 + 28 * max(3, len(queries)))


def vocabulary_bars(probabilities: Array, words: Sequence[str]) -> go.Figure:
    """Bars of the probability of every word, ``(vocab_size,)``; the most probable has its own colour."""
    best = int(np.argmax(probabilities))
    colours = [ORANGE if number == best else BLUE for number in range(len(words))]
    return probability_bars(probabilities.tolist(), words, colours).update_xaxes(visible=False)


def show_matrices(*matrices: tuple[str, Array], rows: Sequence[str] = WORDS) -> None:
    """Draw matrices ``(len(rows), n_columns)`` with their names, side by side where there is room."""
    boxes = "".join(
        f'<div style="max-width:100%">{matrix_html(name, matrix, rows)}</div>' for name, matrix in matrices
    )
    st.html(f'<div style="display:flex;flex-wrap:wrap;gap:14px 36px;margin:4px 0 8px">{boxes}</div>')


def matrix_html(name: str, matrix: Array, rows: Sequence[str]) -> str:
    """Return a matrix under its name; one wider than the screen scrolls sideways."""
    lines = "".join(
        f'<tr><th scope="row" style="{NAME};font-weight:normal">{escape(row)}</th>'
        + "".join(f'<td style="{CELL}">{readable_number(value)}</td>' for value in values)
        + "</tr>"
        for row, values in zip(rows, matrix, strict=True)
    )
    size = " × ".join(map(str, matrix.shape))
    return (
        f'<div style="margin-bottom:4px"><b>{escape(name)}</b> '
        f'<span style="{FAINT};font-size:0.85em">{size}</span></div>'
        f'<div style="overflow-x:auto" tabindex="0" role="region" aria-label="{escape(name)}">'
        f'<table style="border-collapse:separate;border-spacing:0;width:auto;{BRACKET};padding:2px 4px;'
        f'font-family:monospace;font-size:clamp(0.7rem,2.9vw,0.85rem);margin:0">{lines}</table></div>'
    )


def readable_number(value: float) -> str:
    """Return a number with up to eight decimals; a very small or large one as a power of ten."""
    if not np.isfinite(value):
        return "NaN" if np.isnan(value) else ("−∞" if value < 0 else "∞")
    if value and not 1e-4 <= abs(value) < 1e7:
        return f"{value:.8e}".replace("-", "−")
    return np.format_float_positional(value, precision=8, trim="-").replace("-", "−")
