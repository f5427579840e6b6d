"""Figures of an experiment: quality over two settings, and quality against cost."""

from collections.abc import Sequence
from textwrap import wrap

import numpy as np
import plotly.graph_objects as go

from engine.layers.tracing import Array
from ui.colours import BLUE, GREY, ORANGE
from ui.figures import legend_below, numbered_cells, styled
from ui.text import escape_plotly

LABEL_CHARACTERS = 14  # in a line beside or below a map, so that the map fits on a phone
LEVEL_LABELS = 4  # more than these are written upright


def best_over(rows: Sequence[int], columns: Sequence[int], quality: Array) -> Array:
    """Return, for every two values of two settings, the place of the best cell with both, -1 for none.

    ``rows`` and ``columns`` are the numbers of each cell's values, and greater ``quality`` is better, all
    ``(n_cells,)``; the result is ``(n_rows, n_columns)``.
    """
    best = np.full((max(rows, default=-1) + 1, max(columns, default=-1) + 1), -1)
    for place in np.argsort(quality, kind="stable"):
        best[rows[place], columns[place]] = place
    return best


def pareto_front(costs: Array, quality: Array) -> list[int]:
    """Return the Pareto-optimal cells, cheapest first: no other is as good for less, or better for as much.

    Both are ``(n_cells,)``; of equal cells the first is taken.
    """
    front: list[int] = []
    for place in np.lexsort((-quality, costs)).tolist():
        if not front or quality[place] > quality[front[-1]]:
            front.append(place)
    return front


def heat_figure(
    best: Array,
    quality: Array,
    hovers: Sequence[str],
    names: tuple[Sequence[str], Sequence[str]],
    titles: tuple[str, str],
) -> go.Figure:
    """Heat map of the best cell for every two values; each may be clicked, and carries its place.

    Parameters
    ----------
    best
        Of `best_over`, ``(n_rows, n_columns)``.
    quality, hovers
        Of the cells, ``(n_cells,)``.
    names, titles
        Of the values and of the settings, down and across.
    """
    found = best >= 0
    values = np.where(found, quality[best], np.nan)
    low, high = np.nanmin(values), np.nanmax(values)
    figure = go.Figure(
        go.Heatmap(
            z=values,
            zmin=low,
            zmax=max(high, low + 1e-3),
            showscale=False,
            **numbered_cells("%{z:.3f}"),
            xgap=2,
            ygap=2,
            hoverinfo="skip",
        )
    )
    down, across = np.nonzero(found)
    figure.add_trace(  # a heat map itself takes no clicks
        go.Scatter(
            x=across,
            y=down,
            mode="markers",
            marker={"size": 34, "symbol": "square", "opacity": 0},
            selected={"marker": {"opacity": 0}},
            unselected={"marker": {"opacity": 0}},
            customdata=best[found],
            hovertext=[hovers[place] for place in best[found]],
            hovertemplate="%{hovertext}<extra></extra>",
            showlegend=False,
        )
    )
    axes = {"showgrid": False, "zeroline": False, "fixedrange": True}
    for update, own, title in zip((figure.update_yaxes, figure.update_xaxes), names, titles, strict=True):
        labels = [in_lines(name) for name in own]
        update(
            tickvals=list(range(len(own))), ticktext=labels, range=[-0.5, len(own) - 0.5], title=title, **axes
        )
    figure.update_yaxes(range=[len(names[0]) - 0.5, -0.5])
    if len(names[1]) > LEVEL_LABELS:
        figure.update_xaxes(tickangle=-60)
    figure.update_layout(hoverlabel={"align": "left"}, dragmode=False, clickmode="event+select")
    return styled(figure, height=170 + 44 * len(names[0])).update_layout(margin_t=36)


def in_lines(name: str) -> str:
    """Break a value's name into at most two lines."""
    return "<br>".join(map(escape_plotly, wrap(name, LABEL_CHARACTERS, max_lines=2, placeholder="…")))


def cost_figure(
    costs: Array,
    quality: Array,
    front: Sequence[int],
    hovers: Sequence[str],
    titles: tuple[str, str],
    logarithmic: bool,
) -> go.Figure:
    """Quality against cost: a point for each cell, the baseline (the first) marked, and the Pareto front.

    Parameters
    ----------
    costs, quality, hovers
        Of the cells, ``(n_cells,)``.
    front
        The cells of `pareto_front`.
    titles
        Of the two axes, cost and quality.
    logarithmic
        Whether the axis of costs is logarithmic.
    """
    others = np.setdiff1d(np.arange(1, len(costs)), front)
    figure = go.Figure(
        go.Scatter(
            x=costs[front],
            y=quality[front],
            mode="lines",
            line={"color": BLUE, "width": 1.5, "shape": "hv"},
            hoverinfo="skip",
            showlegend=False,
        )
    )
    groups = (
        ("beaten by another", others, GREY, "circle", 9),
        ("none is better for less", np.setdiff1d(front, [0]), BLUE, "diamond", 12),
        ("the app's settings", np.array([0]), ORANGE, "star", 16),
    )
    for name, members, colour, shape, size in groups:
        figure.add_trace(
            go.Scatter(
                x=costs[members],
                y=quality[members],
                mode="markers",
                name=name,
                marker={"color": colour, "symbol": shape, "size": size},
                customdata=members,
                hovertext=[hovers[place] for place in members],
                hovertemplate="%{hovertext}<extra></extra>",
                unselected={"marker": {"opacity": 0.7}},
            )
        )
    figure.update_xaxes(title=titles[0], type="log" if logarithmic else "linear", nticks=6, fixedrange=True)
    figure.update_yaxes(title=titles[1], fixedrange=True)
    figure.update_layout(
        legend=legend_below(0.25), hoverlabel={"align": "left"}, dragmode=False, clickmode="event+select"
    )
    return styled(figure, height=420).update_layout(margin_t=36)


def picked_cell(figure: go.Figure, points: Sequence[dict[str, object]]) -> int | None:
    """Return the cell that a click on a figure selected, None for none."""
    for point in points:
        members = figure.data[point["curve_number"]].customdata
        if members is not None:
            return int(members[point["point_index"]])
    return None
