"""Figures of chunks as points in a plane."""

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

import numpy as np
import plotly.graph_objects as go

from engine.documents.document import Chunk
from engine.inspection.vectors.chunk_map import Projection
from engine.layers.tracing import Array
from engine.wording import shortened
from ui.colours import CATEGORIES, COSINE_SCALE, GREY, VERMILION, WHITE
from ui.figures import chunk_hover, legend_below, styled
from ui.text import escape_plotly

WEBGL_POINTS = 1_500  # more are drawn by the graphics card; fewer look sharper without it
SHAPES = ("circle", "diamond")
MOST_NAMED = 10  # groups in the legend, the largest
MAP_CONFIG = {  # the buttons of the map
    "modeBarButtons": [
        ["toImage"],
        ["select2d", "lasso2d", "pan2d"],
        ["zoomIn2d", "zoomOut2d", "resetScale2d"],
    ],
    "displayModeBar": True,
    "displaylogo": False,
    "toImageButtonOptions": {"format": "png", "filename": "map-of-chunks", "scale": 2},
}


def document_groups(chunks: Sequence[Chunk]) -> tuple[Array, list[str]]:
    """Return each chunk's document as a number, and the documents' names, most chunks first."""
    names, members = np.unique([chunk.document for chunk in chunks], return_inverse=True)
    order = np.argsort(-np.bincount(members), kind="stable")
    return np.argsort(order)[members], [str(names[number]) for number in order]


def group_figure(points: Array, chunks: Sequence[Chunk], groups: Array, names: Sequence[str]) -> go.Figure:
    """Points ``(n, 2)`` with a colour and shape for each group, ``(n,)`` from 0; the last ones are grey."""
    looks = [(colour, shape) for shape in SHAPES for colour in CATEGORIES]
    if len(names) > len(looks):
        names = [*names[: len(looks)], f"{len(names) - len(looks):,} more"]
        groups = np.minimum(groups, len(looks))
        looks.append((GREY, "circle"))
    figure = go.Figure()
    for number, (name, (colour, shape)) in enumerate(zip(names, looks, strict=False)):
        members = np.flatnonzero(groups == number)
        label = f"{escape_plotly(shortened(name, 34))} ({len(members):,})"
        figure.add_trace(
            scatter(points, chunks, members, name=label, marker={"color": colour, "symbol": shape})
        )
        figure.data[-1].showlegend = number < MOST_NAMED  # others are named where one points at them
    return figure


def similarity_trace(points: Array, chunks: Sequence[Chunk], cosines: Array) -> Any:
    """Points coloured by their cosine with the question, ``(n,)``; the nearest are drawn on top."""
    bar = {"title": {"text": "cosine"}, "thickness": 12, "tickformat": ".1f"}
    members = np.argsort(cosines)
    marker = {"color": cosines[members], "colorscale": COSINE_SCALE, "colorbar": bar}
    return scatter(points, chunks, members, name="chunks", marker=marker, cosines=cosines)


def scatter(
    points: Array,
    chunks: Sequence[Chunk],
    members: Array,
    name: str,
    marker: dict[str, Any],
    cosines: Array | None = None,
) -> Any:
    """Some of the points as a trace, drawn by the graphics card if there are many in all."""
    many = len(chunks) > WEBGL_POINTS
    kind = go.Scattergl if many else go.Scatter
    characters = 90 if many else 220
    return kind(
        x=points[members, 0].astype(np.float32),
        y=points[members, 1].astype(np.float32),
        mode="markers",
        name=name,
        showlegend=cosines is None,
        marker={"size": 6 if many else 9, "opacity": 0.85, "line": {"width": 0.7, "color": GREY}} | marker,
        customdata=members,
        hovertext=[
            chunk_hover(chunks[row], characters, None if cosines is None else cosines[row]) for row in members
        ],
        hoverinfo="text",
    )


def question_trace(place: Array, question: str) -> go.Scatter:
    """The question as a star."""
    text = "<br>".join(escape_plotly(line) for line in wrap(shortened(question, 160), 42))
    return go.Scatter(
        x=place[:1],
        y=place[1:],
        mode="markers",
        name="the question",
        marker={"symbol": "star", "size": 19, "color": WHITE, "line": {"width": 2, "color": VERMILION}},
        unselected={"marker": {"opacity": 1}},
        hovertext=[f"<b>Question</b><br>{text}"],
        hoverinfo="text",
    )


def finish(figure: go.Figure, plane: Projection) -> None:
    """Set up the axes: on PCA with equal scales, each titled by its share of the variance."""
    if plane.explained is None:
        titles = ["UMAP 1 (no unit)", "UMAP 2 (no unit)"]
    else:
        titles = [f"axis {n}: {part:.1%} of the variance" for n, part in enumerate(plane.explained, start=1)]
        figure.update_yaxes(scaleanchor="x", scaleratio=1)
    figure.update_xaxes(title=titles[0], showticklabels=plane.explained is not None, zeroline=False)
    figure.update_yaxes(title=titles[1], showticklabels=plane.explained is not None, zeroline=False)
    figure.update_layout(
        legend=legend_below(0.14) | {"itemsizing": "constant"},
        hoverlabel={"align": "left"},
        dragmode="select",
    )
    n_named = sum(trace.showlegend is not False for trace in figure.data)
    styled(figure, height=500 + 14 * n_named)


def rows_of(figure: go.Figure, points: Sequence[dict[str, Any]]) -> list[int]:
    """Return the sorted numbers of the selected chunks; the point of the question is ignored."""
    members = [figure.data[point["curve_number"]].customdata for point in points]
    places = [point["point_index"] for point in points]
    return sorted({int(of[place]) for of, place in zip(members, places, strict=True) if of is not None})
