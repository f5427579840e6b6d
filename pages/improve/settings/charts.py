"""The figures of an experiment: quality over two settings, and quality against cost; a click selects."""

from collections.abc import Sequence
from textwrap import wrap

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from engine.evaluation.sweep_row import MEASURES
from engine.layers.tracing import Array
from engine.settings import SETTINGS
from pages.improve.settings.configurations import value_words, values_in_order, varied
from pages.improve.settings.experiments import Experiment
from ui.colours import BLUE, GREY, ORANGE
from ui.export import show_figure
from ui.figures import legend_below, numbered_cells, styled
from ui.report import Report
from ui.text import escape_plotly
from ui.widgets import choice

COSTS = {
    "Index size": (
        "index_bytes",
        "bytes of the index (logarithmic)",
        True,
        "Bytes of vectors, or of BM25's index.",
    ),
    "Chunks": ("n_chunks", "chunks", False, "How many chunks the documents are cut into."),
    "Seconds": (
        "seconds",
        "seconds this configuration took",
        False,
        "The time of a configuration without the work it shares with earlier ones: the first configuration "
        "with new chunks pays for all others with the same chunks, and texts embedded before take no time.",
    ),
}
LABEL_CHARACTERS = 14  # in a line beside or below a map, so that the map fits on a phone
LEVEL_LABELS = 4  # more than these are written upright


def pick(experiment: Experiment, place: int | None) -> None:
    """Select a configuration, or none."""
    st.session_state["experiment-cell"] = {} if place is None else {experiment.key: place}


def hovers_of(experiment: Experiment, metric: str) -> list[str]:
    """Return the hover text of every row: its settings and its value."""
    keys, label = varied(experiment.configurations), MEASURES[metric].label
    hovers = []
    for row in experiment.rows:
        words = [
            f"{SETTINGS[key].label}: {escape_plotly(value_words(row.configuration, key))}" for key in keys
        ]
        hovers.append("<br>".join([*words, f"<b>{label} {row.metrics[metric]:.3f}</b>"]))
    return hovers


def show_heat(report: Report, experiment: Experiment, metric: str) -> None:
    """Draw the choice of two settings, and quality over them."""
    report.header("Over two settings")
    order = ("chunk_tokens", "pooling", "retriever", "splitter")
    axes = varied(row.configuration for row in experiment.rows)
    axes = sorted(axes, key=lambda axis: order.index(axis) if axis in order else len(order))
    if len(axes) < 2:
        few = "Fewer than two settings differ between the configurations, so there is no map to draw."
        report.note(st.info, "", few)
        return
    left, right = st.columns(2)
    labels = {axis: SETTINGS[axis].label for axis in axes}
    words = "Each place shows the best of all configurations with both values."
    down = left.selectbox("Down", axes, format_func=labels.__getitem__, key="heat-down", help=words)
    others = [axis for axis in axes if axis != down]
    across = right.selectbox(
        "Across", others, format_func=labels.__getitem__, key=f"heat-across-{down}", help=words
    )
    figure = heat_of(experiment, metric, down, across)
    alt = f"{MEASURES[metric].label} over two settings"
    show_clickable(report, experiment, figure, f"heat-{metric}", alt)
    st.caption(
        "Click a configuration to see the questions it wins and loses." + (" " + words) * (len(axes) > 2)
    )


def show_costs(report: Report, experiment: Experiment, metric: str) -> None:
    """Draw quality against cost, with the Pareto front."""
    report.header("Quality against cost")
    cost = choice(
        "Cost",
        list(COSTS),
        "experiment-cost",
        "\n".join(f"- **{name}**: {words}" for name, (*_, words) in COSTS.items()),
    )
    figure = cost_of(experiment, metric, cost)
    name = f"cost-{COSTS[cost][0]}-{metric}"
    show_clickable(report, experiment, figure, name, f"{MEASURES[metric].label} against {COSTS[cost][1]}")
    st.caption("The line is the Pareto front: on it, more quality costs more. Click a point to select it.")


def show_clickable(report: Report, experiment: Experiment, figure: go.Figure, name: str, alt: str) -> None:
    """Draw and keep a figure whose configurations may be clicked, with its downloads."""
    rows = experiment.rows

    def select_row(points: Sequence[dict[str, object]]) -> None:
        place = picked_row(figure, points)
        if place is not None:
            pick(experiment, place)

    version = f"-{experiment.key}-{len(rows)}"
    show_figure(figure, f"experiment-{name}", alt, select_row, version)
    report.keep_figure(figure)


def best_over(rows: Sequence[int], columns: Sequence[int], quality: Array) -> Array:
    """Return, for every two values of two settings, the place of the best row with both, -1 for none.

    ``rows`` and ``columns`` are the numbers of each cell's values, and greater ``quality`` is better, all
    ``(n_configurations,)``; the result is ``(n_rows, n_columns)``.
    """
    best = np.full((max(rows, default=-1) + 1, max(columns, default=-1) + 1), -1)
    for place in np.argsort(quality, kind="stable"):
        best[rows[place], columns[place]] = place
    return best


def pareto_front(costs: Array, quality: Array) -> list[int]:
    """Return the Pareto-optimal rows, cheapest first: no other is as good for less, or better for as much.

    Both are ``(n_configurations,)``; of equal configurations the first is taken.
    """
    front: list[int] = []
    for place in np.lexsort((-quality, costs)).tolist():
        if not front or quality[place] > quality[front[-1]]:
            front.append(place)
    return front


def heat_of(experiment: Experiment, metric: str, down: str, across: str) -> go.Figure:
    """Return the heat map of quality over two settings: the best row of each two values.

    Each may be clicked, and carries its place.
    """
    configurations = [row.configuration for row in experiment.rows]
    names = [values_in_order(configurations, key) for key in (down, across)]
    numbers = [
        [own.index(value_words(one, key)) for one in configurations]
        for own, key in zip(names, (down, across), strict=True)
    ]
    quality = np.array([row.metrics[metric] for row in experiment.rows])
    best = best_over(numbers[0], numbers[1], MEASURES[metric].sign * quality)
    hovers = hovers_of(experiment, metric)
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
    y, x = np.nonzero(found)
    figure.add_trace(  # a heat map itself takes no clicks
        go.Scatter(
            x=x,
            y=y,
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
    updates = figure.update_yaxes, figure.update_xaxes
    for update, own, key in zip(updates, names, (down, across), strict=True):
        labels, ends = [in_lines(name) for name in own], [-0.5, len(own) - 0.5]
        update(tickvals=list(range(len(own))), ticktext=labels, range=ends, title=SETTINGS[key].label, **axes)
    figure.update_yaxes(range=[len(names[0]) - 0.5, -0.5])
    if len(names[1]) > LEVEL_LABELS:
        figure.update_xaxes(tickangle=-60)
    figure.update_layout(hoverlabel={"align": "left"}, dragmode=False, clickmode="event+select")
    return styled(figure, height=170 + 44 * len(names[0])).update_layout(margin_t=36)


def in_lines(name: str) -> str:
    """Break a value's name into at most two lines."""
    return "<br>".join(map(escape_plotly, wrap(name, LABEL_CHARACTERS, max_lines=2, placeholder="…")))


def cost_of(experiment: Experiment, metric: str, cost: str) -> go.Figure:
    """Return quality against one of the `COSTS`: a point for each row, and the Pareto front.

    The baseline, the first row, is marked.
    """
    attribute, title, logarithmic, _ = COSTS[cost]
    costs = np.array([getattr(row, attribute) for row in experiment.rows], float)
    quality = np.array([row.metrics[metric] for row in experiment.rows])
    front, hovers = pareto_front(costs, MEASURES[metric].sign * quality), hovers_of(experiment, metric)
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
    figure.update_xaxes(title=title, type="log" if logarithmic else "linear", nticks=6, fixedrange=True)
    figure.update_yaxes(title=MEASURES[metric].label, fixedrange=True)
    figure.update_layout(
        legend=legend_below(0.25), hoverlabel={"align": "left"}, dragmode=False, clickmode="event+select"
    )
    return styled(figure, height=420).update_layout(margin_t=36)


def picked_row(figure: go.Figure, points: Sequence[dict[str, object]]) -> int | None:
    """Return the configuration that a click on a figure selected, None for none."""
    for point in points:
        members = figure.data[point["curve_number"]].customdata
        if members is not None:
            return int(members[point["point_index"]])
    return None
