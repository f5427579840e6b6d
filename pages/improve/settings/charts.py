"""The figure of an experiment, quality against cost, in which a click selects a configuration."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from engine.evaluation.sweep_row import MEASURES
from engine.layers.tracing import Array
from engine.settings import SETTINGS
from pages.improve.settings.experiments import Experiment, value_words, varied
from ui.colours import BLUE, GREY, ORANGE
from ui.export import show_figure
from ui.figures import add_line, legend_below, styled
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

    def select_row(points: Sequence[dict[str, object]]) -> None:
        place = picked_row(figure, points)
        if place is not None:
            pick(experiment, place)

    name, version = f"cost-{COSTS[cost][0]}-{metric}", f"-{experiment.key}-{len(experiment.rows)}"
    alt = f"{MEASURES[metric].label} against {COSTS[cost][1]}"
    show_figure(figure, f"experiment-{name}", alt, select_row, version)
    report.keep_figure(figure)
    st.caption("The line is the Pareto front: on it, more quality costs more. Click a point to select it.")


def pareto_front(costs: Array, quality: Array) -> list[int]:
    """Return the Pareto-optimal rows, cheapest first: no other is as good for less, or better for as much.

    Both are ``(n_configurations,)``; of equal configurations the first is taken.
    """
    front: list[int] = []
    for place in np.lexsort((-quality, costs)).tolist():
        if not front or quality[place] > quality[front[-1]]:
            front.append(place)
    return front


def cost_of(experiment: Experiment, metric: str, cost: str) -> go.Figure:
    """Return quality against one of the `COSTS`: a point for each row, and the Pareto front.

    The baseline, the first row, is marked.
    """
    attribute, title, logarithmic, _ = COSTS[cost]
    costs = np.array([getattr(row, attribute) for row in experiment.rows], float)
    quality = np.array([row.metrics[metric] for row in experiment.rows])
    front, hovers = pareto_front(costs, quality), hovers_of(experiment, metric)
    others = np.setdiff1d(np.arange(1, len(costs)), front)
    figure = go.Figure()
    steps = {"line_width": 1.5, "line_shape": "hv", "hoverinfo": "skip", "showlegend": False}
    add_line(figure, costs[front], quality[front], "", BLUE, "", **steps)
    groups = (
        ("beaten by another", others, GREY, "circle", 9),
        ("none is better for less", np.setdiff1d(front, [0]), BLUE, "diamond", 12),
        ("the app's settings", np.array([0]), ORANGE, "star", 16),
    )
    for name, members, colour, shape, size in groups:
        figure.add_scatter(
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
    figure.update_xaxes(title=title, type="log" if logarithmic else "linear", nticks=6, fixedrange=True)
    figure.update_yaxes(title=MEASURES[metric].label, fixedrange=True, autorangeoptions_clipmax=1.02)
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
