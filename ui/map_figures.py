"""Figures of chunks as points in a plane."""

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

import numpy as np
import plotly.graph_objects as go

from engine.documents.document import Chunk
from engine.inspection.map import Plane
from engine.layers.tracing import Array
from ui.figures import BLUE, GREEN, GREY, ORANGE, styled
from ui.maps import plain

WEBGL_POINTS = 1_500  # more are drawn by the graphics card; fewer look sharper without
# Okabe and Ito's colours, each in two shapes; whatever comes after the last shares grey.
COLOURS = (BLUE, ORANGE, GREEN, "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
SHAPES = ("circle", "diamond")
# Cividis without its darkest end, which dark pages swallow.
SIMILARITY_COLOURS = ["#35456C", "#666970", "#948E77", "#C8B866", "#FEE838"]


def document_groups(chunks: Sequence[Chunk]) -> tuple[Array, list[str]]:
    """Return each chunk's document as a number, and the documents' names, that of most chunks first."""
    names, members = np.unique([chunk.document for chunk in chunks], return_inverse=True)
    order = np.argsort(-np.bincount(members), kind="stable")
    return np.argsort(order)[members], [str(names[number]) for number in order]


def group_figure(points: Array, chunks: Sequence[Chunk], groups: Array, names: Sequence[str]) -> go.Figure:
    """Points in a colour and shape for each group; the groups after the last share grey.

    ``points`` is ``(n, 2)``, ``groups (n,)`` counts from 0.
    """
    looks = [(colour, shape) for shape in SHAPES for colour in COLOURS]
    if len(names) > len(looks):
        names = [*names[: len(looks)], f"{len(names) - len(looks):,} more"]
        groups = np.minimum(groups, len(looks))
        looks.append((GREY, "circle"))
    figure = go.Figure()
    for number, (name, (colour, shape)) in enumerate(zip(names, looks, strict=False)):
        members = np.flatnonzero(groups == number)
        label = f"{plain(shortened(name, 34))} ({len(members):,})"
        figure.add_trace(
            scatter(points, chunks, members, name=label, marker={"color": colour, "symbol": shape})
        )
    return figure


def similarity_trace(points: Array, chunks: Sequence[Chunk], cosines: Array) -> Any:
    """Points as bright as they are near to the question; ``cosines`` is ``(n,)``."""
    bar = {"title": {"text": "cosine"}, "thickness": 12, "tickformat": ".1f"}
    marker = {"color": cosines, "colorscale": SIMILARITY_COLOURS, "colorbar": bar}
    members = np.argsort(cosines)  # the nearest drawn last, on top
    marker["color"] = cosines[members]
    return scatter(points, chunks, members, name="chunks", marker=marker, cosines=cosines)


def scatter(
    points: Array,
    chunks: Sequence[Chunk],
    members: Array,
    name: str,
    marker: dict[str, Any],
    cosines: Array | None = None,
) -> Any:
    """Some of the points as a trace, by the graphics card where there are many in all."""
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
            hover(chunks[row], characters, None if cosines is None else cosines[row]) for row in members
        ],
        hoverinfo="text",
    )


def question_trace(place: Array, question: str) -> go.Scatter:
    """The question as a star."""
    text = "<br>".join(plain(line) for line in wrap(shortened(question, 160), 42))
    return go.Scatter(
        x=place[:1],
        y=place[1:],
        mode="markers",
        name="the question",
        marker={"symbol": "star", "size": 19, "color": "#FFFFFF", "line": {"width": 2, "color": "#D55E00"}},
        unselected={"marker": {"opacity": 1}},
        hovertext=[f"<b>Question</b><br>{text}"],
        hoverinfo="text",
    )


def hover(chunk: Chunk, characters: int, cosine: float | None) -> str:
    """Return a chunk's document and beginning, wrapped and escaped, for Plotly's little HTML."""
    lines = [plain(line) for line in wrap(shortened(" ".join(chunk.text.split()), characters), 42)]
    near = [] if cosine is None else [f"cosine {cosine:.3f}"]
    return "<br>".join([f"<b>{plain(shortened(chunk.document, 42))}</b>", *near, *lines])


def shortened(text: str, characters: int) -> str:
    """Return the beginning of a text, with an ellipsis where it goes on."""
    return text if len(text) <= characters else text[: characters - 1].rstrip() + "…"


def finish(figure: go.Figure, plane: Plane) -> None:
    """Give a map its axes: on PCA one unit is as long either way, and each says what share it holds."""
    if plane.explained is None:
        titles = ["UMAP 1 (no unit)", "UMAP 2 (no unit)"]
    else:
        titles = [f"axis {n}: {part:.1%} of the variance" for n, part in enumerate(plane.explained, start=1)]
        figure.update_yaxes(scaleanchor="x", scaleratio=1)
    figure.update_xaxes(title=titles[0], showticklabels=plane.explained is not None, zeroline=False)
    figure.update_yaxes(title=titles[1], showticklabels=plane.explained is not None, zeroline=False)
    figure.update_layout(
        legend={"orientation": "h", "y": -0.14, "yanchor": "top", "x": 0, "itemsizing": "constant"},
        hoverlabel={"align": "left"},
        dragmode="select",
    )
    n_named = sum(trace.showlegend is not False for trace in figure.data)
    styled(figure, height=500 + 14 * n_named)


def figure_config() -> dict[str, Any]:
    """Settings of the map's own buttons."""
    buttons = [["toImage"], ["select2d", "lasso2d", "pan2d"], ["zoomIn2d", "zoomOut2d", "resetScale2d"]]
    image = {"format": "png", "filename": "map-of-chunks", "scale": 2}
    return {
        "modeBarButtons": buttons,
        "displayModeBar": True,
        "displaylogo": False,
        "toImageButtonOptions": image,
    }


def rows_of(figure: go.Figure, points: Sequence[dict[str, Any]]) -> list[int]:
    """Return the chunks that selected points stand for, in order; the question stands for none."""
    members = [figure.data[point["curve_number"]].customdata for point in points]
    places = [point["point_index"] for point in points]
    return sorted({int(of[place]) for of, place in zip(members, places, strict=True) if of is not None})
