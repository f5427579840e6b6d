"""The figures of an experiment on the page; a click on a cell selects it."""

from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from engine.evaluation.metrics import METRICS
from engine.settings import SETTINGS, SWEPT
from pages.improve.settings.figures import best_over, cost_figure, heat_figure, pareto_front, picked_cell
from pages.improve.settings.runs import Experiment
from pages.improve.settings.verdicts import shown_metrics
from ui.configurations import value_words, values_in_order, varied
from ui.export import show_save
from ui.text import escape_plotly

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
        "seconds this cell took",
        False,
        "The time of a cell without the work it shares with earlier ones: the first cell with new chunks "
        "pays for all others with the same chunks, and texts embedded before take no time.",
    ),
}


def pick(experiment: Experiment, place: int | None) -> None:
    """Select a cell, or none."""
    st.session_state["experiment-cell"] = {} if place is None else {experiment.key: place}


def hovers_of(experiment: Experiment, metric: str) -> list[str]:
    """Return the hover text of every row: its settings and its value."""
    axes, label = varied(experiment.cells), METRICS[metric].label
    return [
        "<br>".join(
            [f"{SETTINGS[axis].label}: {escape_plotly(value_words(row.cell, axis))}" for axis in axes]
            + [f"<b>{label} {row.metrics[metric]:.3f}</b>"]
        )
        for row in experiment.rows
    ]


def heat_axes(experiment: Experiment) -> list[str]:
    """Return the settings that differ between cells, the most interesting first."""
    order = ("chunk_tokens", "pooling", "retriever", "splitter")
    axes = varied(row.cell for row in experiment.rows)
    return sorted(axes, key=lambda axis: order.index(axis) if axis in order else len(order))


def axis_label(axis: str) -> str:
    """Return the name of a setting."""
    return SETTINGS[axis].label


def heat_of(experiment: Experiment, metric: str, down: str, across: str) -> go.Figure:
    """Return the heat map of quality over two settings: the best cell of each two values."""
    cells = [row.cell for row in experiment.rows]
    names = [values_in_order(cells, axis) for axis in (down, across)]
    numbers = [
        [own.index(value_words(cell, axis)) for cell in cells]
        for own, axis in zip(names, (down, across), strict=True)
    ]
    quality = np.array([row.metrics[metric] for row in experiment.rows])
    best = best_over(numbers[0], numbers[1], METRICS[metric].sign * quality)
    hovers = hovers_of(experiment, metric)
    return heat_figure(
        best, quality, hovers, (names[0], names[1]), (SETTINGS[down].label, SETTINGS[across].label)
    )


def cost_of(experiment: Experiment, metric: str, cost: str) -> go.Figure:
    """Return the figure of quality against one of the `COSTS`."""
    attribute, title, logarithmic, _ = COSTS[cost]
    costs = np.array([getattr(row, attribute) for row in experiment.rows], float)
    quality = np.array([row.metrics[metric] for row in experiment.rows])
    titles = title, METRICS[metric].label
    front = pareto_front(costs, METRICS[metric].sign * quality)
    return cost_figure(costs, quality, front, hovers_of(experiment, metric), titles, logarithmic)


def show_heat(experiment: Experiment, metric: str) -> None:
    """Draw the choice of two settings, and quality over them."""
    st.header("Over two settings")
    axes = heat_axes(experiment)
    if len(axes) < 2:
        st.info("Fewer than two settings differ between the cells, so there is no map to draw.")
        return
    left, right = st.columns(2)
    words = "Each place shows the best of all cells with both values."
    down = left.selectbox("Down", axes, format_func=axis_label, key="heat-down", help=words)
    others = [axis for axis in axes if axis != down]
    across = right.selectbox("Across", others, format_func=axis_label, key=f"heat-across-{down}", help=words)
    figure = heat_of(experiment, metric, down, across)
    show_clickable(experiment, figure, f"heat-{metric}", f"{METRICS[metric].label} over two settings")
    st.caption("Click a cell to see the questions it wins and loses." + (" " + words) * (len(axes) > 2))


def show_costs(experiment: Experiment, metric: str) -> None:
    """Draw quality against cost, with the Pareto front."""
    st.header("Quality against cost")
    cost = st.segmented_control(
        "Cost",
        list(COSTS),
        default="Index size",
        required=True,
        key="experiment-cost",
        persist_state="session",
        help="\n".join(f"- **{name}**: {words}" for name, (*_, words) in COSTS.items()),
    )
    figure = cost_of(experiment, metric, str(cost))
    name = f"cost-{COSTS[str(cost)][0]}-{metric}"
    show_clickable(experiment, figure, name, f"{METRICS[metric].label} against {COSTS[str(cost)][1]}")
    st.caption("The line is the Pareto front: on it, more quality costs more. Click a point to select it.")


def show_clickable(experiment: Experiment, figure: go.Figure, name: str, alt: str) -> None:
    """Draw a figure whose cells may be clicked, with its downloads."""
    key = f"experiment-{name}-{experiment.key}-{len(experiment.rows)}"

    def take() -> None:
        place = picked_cell(figure, st.session_state[key].selection.points)
        if place is not None:
            pick(experiment, place)

    buttons = {"modeBarButtons": [["toImage"]], "displayModeBar": True, "displaylogo": False}
    image = {"toImageButtonOptions": {"format": "png", "filename": name, "scale": 2}}
    st.plotly_chart(
        figure, config={**buttons, **image}, key=key, on_select=take, selection_mode="points", alt=alt
    )
    columns = ("n_chunks", "index_bytes", "seconds")
    numbers: dict[str, Any] = {name: [getattr(row, name) for row in experiment.rows] for name in columns}
    numbers |= {
        metric: [row.metrics[metric] for row in experiment.rows] for metric in shown_metrics(experiment.rows)
    }
    numbers |= {axis: [str(getattr(row.cell, axis)) for row in experiment.rows] for axis in SWEPT}
    show_save(figure, f"experiment-{name}", {name: np.array(values) for name, values in numbers.items()})
