"""Plotly figures of several pages, and the look that all figures share."""

from collections.abc import Iterable, Sequence
from textwrap import wrap

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from engine.documents.document import Chunk
from engine.generation.prompt import Prompt
from engine.layers.tracing import Array
from engine.wording import beginning, shortened
from ui.colours import BLACK, BLUE, GREEN, GREY, NUMBERED, NUMBERED_DIVERGING, ORANGE, SEQUENTIAL
from ui.text import escape_plotly
from ui.tokens import token_axis, token_labels


def prompt_parts(prompt: Prompt) -> dict[str, tuple[int, str]]:
    """Return the tokens and the colour of each part of a prompt that it has, by name."""
    parts = {
        "passages": (prompt.source_tokens, ORANGE),
        "question": (prompt.question_tokens, BLUE),
        "earlier turns": (prompt.turn_tokens, GREEN),
    }
    rest = len(prompt.ids) - sum(count for count, _ in parts.values())
    parts["instructions and template"] = rest, GREY
    return {name: part for name, part in parts.items() if part[0]}


def prompt_figure(prompt: Prompt) -> go.Figure:
    """One stacked bar of the tokens of each part of a prompt, and its budget as a line."""
    figure = go.Figure(
        [
            go.Bar(
                x=[count],
                y=["tokens"],
                name=f"{name} ({count})",
                orientation="h",
                marker_color=colour,
                hovertemplate=f"{name}: {count} tokens<extra></extra>",
            )
            for name, (count, colour) in prompt_parts(prompt).items()
        ]
    )
    figure.add_vline(
        x=prompt.max_tokens,
        line_dash="dot",
        annotation_text=f"budget {prompt.max_tokens}",
        annotation_position="top left",
    )
    figure.update_layout(barmode="stack", legend=legend_below(0.1))
    figure.update_yaxes(visible=False)
    figure.update_xaxes(visible=False)
    return styled(figure, height=170)


def show_prompt_parts(prompt: Prompt) -> None:
    """Draw the tokens of each part of a prompt."""
    parts = ", ".join(f"{name} {count}" for name, (count, _) in prompt_parts(prompt).items())
    st.plotly_chart(
        prompt_figure(prompt),
        config={"displayModeBar": False},
        alt=f"Tokens of a prompt, of at most {prompt.max_tokens}: {parts}",
    )


# Legend in one row above a figure; traces in the order in which they were added.
LEGEND_ABOVE = {"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0, "traceorder": "normal"}


def legend_below(distance: float) -> dict[str, object]:
    """Return a legend in rows below a figure; the distance is a share of the height of its axes."""
    return {"orientation": "h", "y": -distance, "yanchor": "top", "x": 0}


def styled(figure: go.Figure, height: int) -> go.Figure:
    """Give a figure the shared margins and size."""
    figure.update_layout(height=height, margin={"l": 0, "r": 8, "t": 24, "b": 8}, font_size=13)
    return figure


def add_line(
    figure: go.Figure,
    x: Iterable[object],
    y: Iterable[float],
    name: str,
    colour: str,
    hover: str,
    **options: object,
) -> None:
    """Add a line; ``hover`` is the text over a point, and ``options`` are those of `go.Scatter`."""
    look = {"mode": "lines", "line_color": colour, "line_width": 3} | options
    figure.add_scatter(x=list(x), y=list(y), name=name, hovertemplate=f"{hover}<extra></extra>", **look)


def numbered_bars(
    values: Iterable[float],
    labels: Iterable[str],
    numbers: Iterable[str],
    colours: str | Sequence[str],
    hover: str,
    **options: object,
) -> go.Figure:
    """Horizontal bars of one colour, or one each, with their numbers at the ends, and a text over a bar."""
    return go.Figure(
        go.Bar(
            x=list(values),
            y=list(labels),
            orientation="h",
            marker_color=colours,
            text=list(numbers),
            textposition="outside",
            cliponaxis=False,
            hovertemplate=f"{hover}<extra></extra>",
            **options,
        )
    )


def heat_map(
    values: Array,
    rows: Sequence[str] | None,
    columns: Sequence[str] | Array | None,
    hover: str,
    number_format: str,
    **options: object,
) -> go.Figure:
    """Heat map of ``(n_rows, n_columns)`` with the first row at the top.

    ``hover`` is the text over a cell, ``number_format`` that of the colour bar; ``options`` are those of
    `go.Heatmap`, and replace the sequential colours and the bar.
    """
    bar = {"thickness": 12, "tickformat": number_format}
    look = {"colorscale": SEQUENTIAL, "colorbar": bar, "hovertemplate": f"{hover}<extra></extra>"}
    heat = go.Heatmap(z=values, x=columns, y=rows, **(look | options))
    return go.Figure(heat).update_yaxes(autorange="reversed")


def numbered_cells(template: str, signed: bool = False) -> dict[str, object]:
    """Return options of `go.Heatmap` for a number in each cell, in colours on which it can be read."""
    scale = NUMBERED_DIVERGING if signed else NUMBERED
    return {"texttemplate": template, "textfont_color": BLACK, "colorscale": scale}


def weights_map(weights: Array, tokens: Sequence[str], causal: bool) -> go.Figure:
    """Heat map of attention: queries down, keys across, ``(n_query, n_key)``, without what a mask hides.

    Values above the 99.5th percentile share a colour: one bright diagonal does not leave the rest dark.
    """
    visible = np.tri(len(weights), dtype=bool) if causal else np.ones(weights.shape, bool)
    labels = token_labels(tokens)
    highest = float(np.quantile(weights[visible], 0.995))
    shown, hover = np.where(visible, weights, np.nan), "from %{y}<br>to %{x}<br>%{z:.4f}"
    figure = heat_map(shown, labels, labels, hover, ".2g", zmin=0, zmax=highest)
    token_axis(figure.update_yaxes, len(labels), title="from (query)")
    token_axis(figure.update_xaxes, len(labels), title="to (key)", tickangle=-60)
    return styled(figure, height=620)


def token_map(
    weights: Array, queries: Sequence[str], keys: Sequence[str], names: tuple[str, str]
) -> go.Figure:
    """Heat map of a head's attention, ``(n_query, n_key)``; ``names`` are those of rows and columns."""
    rows, columns = token_labels(queries), token_labels(keys)
    figure = heat_map(weights, rows, columns, "from %{y}<br>to %{x}<br>%{z:.4f}", ".2g", zmin=0)
    token_axis(figure.update_yaxes, len(rows), title=names[0])
    token_axis(figure.update_xaxes, len(columns), title=names[1], tickangle=-60)
    return styled(figure, height=200 + 18 * len(rows))


def layer_head_map(values: Array, name: str, number_format: str) -> go.Figure:
    """Heat map of one number per head, layers down: ``(n_layers, n_heads)``."""
    hover = f"layer %{{y}}, head %{{x}}<br>{name} %{{z:{number_format}}}"
    look = numbered_cells(f"%{{z:{number_format}}}") if values.size <= 72 else {}
    figure = heat_map(values, None, None, hover, number_format, **look)
    figure.update_xaxes(title="head", dtick=1)
    figure.update_yaxes(title="layer", dtick=1 if len(values) <= 12 else 5)
    return styled(figure, height=max(260, 90 + 18 * len(values)))


def probability_bars(
    probabilities: Sequence[float], labels: Sequence[str], colours: str | Sequence[str]
) -> go.Figure:
    """Bars of probabilities from top to bottom, in one colour or one for each bar."""
    names, numbers = map(escape_plotly, labels), [f"{value:.1%}" for value in probabilities]
    figure = numbered_bars(probabilities, names, numbers, colours, "%{y}: %{x:.4%}")
    figure.update_yaxes(autorange="reversed", type="category")
    figure.update_xaxes(tickformat=".0%", range=[0, max(probabilities) * 1.25])
    return styled(figure, height=75 + 25 * len(labels))


def chunk_hover(chunk: Chunk, characters: int, cosine: float | None) -> str:
    """Return a chunk's document and beginning, wrapped and escaped for Plotly."""
    lines = [escape_plotly(line) for line in wrap(beginning(chunk.text, characters), 42)]
    near = [] if cosine is None else [f"cosine {cosine:.3f}"]
    return "<br>".join([f"<b>{escape_plotly(shortened(chunk.document, 42))}</b>", *near, *lines])
