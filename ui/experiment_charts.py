"""An experiment's figures on the page: each cell of them may be clicked to look into it."""

from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from ui.experiment_figures import best_over, cost_figure, heat_figure, picked_cell
from ui.experiment_runs import Experiment
from ui.experiment_verdicts import MEASURES
from ui.experiment_words import AXES, in_order, value_words, varied
from ui.export import show_save
from ui.maps import plain

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
        "What a cell took beyond what it shares with those before it: the first with new chunks pays for all "
        "that search the same ones, and what was embedded before is free.",
    ),
}


def pick(experiment: Experiment, place: int) -> None:
    """Choose a cell to look into."""
    st.session_state["experiment-cell"] = {experiment.key: place}


def hovers_of(experiment: Experiment, measure: str) -> list[str]:
    """Say of every row what it is, for figures."""
    axes, label = varied(experiment.cells), MEASURES[measure][0]
    return [
        "<br>".join(
            [f"{AXES[axis]}: {plain(value_words(row.cell, axis))}" for axis in axes]
            + [f"<b>{label} {row.metrics[measure]:.3f}</b>"]
        )
        for row in experiment.rows
    ]


def heat_axes(experiment: Experiment) -> list[str]:
    """Return the settings that a map can be drawn over, those that say most first."""
    order = ("chunk_tokens", "pooling", "retriever", "splitter")
    axes = varied(row.cell for row in experiment.rows)
    return sorted(axes, key=lambda axis: order.index(axis) if axis in order else len(order))


def heat_of(experiment: Experiment, measure: str, down: str, across: str) -> go.Figure:
    """Make the map of quality over two settings, the best of all others."""
    cells = [row.cell for row in experiment.rows]
    names = [in_order(cells, axis) for axis in (down, across)]
    numbers = [
        [own.index(value_words(cell, axis)) for cell in cells]
        for own, axis in zip(names, (down, across), strict=True)
    ]
    quality = np.array([row.metrics[measure] for row in experiment.rows])
    best = best_over(numbers[0], numbers[1], quality)
    hovers = hovers_of(experiment, measure)
    return heat_figure(best, quality, hovers, (names[0], names[1]), (AXES[down], AXES[across]))


def cost_of(experiment: Experiment, measure: str, cost: str) -> go.Figure:
    """Make the figure of quality against one of the `COSTS`."""
    attribute, title, logarithmic, _ = COSTS[cost]
    costs = np.array([getattr(row, attribute) for row in experiment.rows], float)
    quality = np.array([row.metrics[measure] for row in experiment.rows])
    titles = title, MEASURES[measure][0]
    return cost_figure(costs, quality, hovers_of(experiment, measure), titles, logarithmic)


def show_heat(experiment: Experiment, measure: str) -> None:
    """Draw quality over two settings, with the choice of them."""
    st.subheader("Over two settings")
    axes = heat_axes(experiment)
    if len(axes) < 2:
        st.info("Fewer than two settings differ between the cells: the table says it all.")
        return
    left, right = st.columns(2)
    words = "Of all cells that have both values, the best one's is shown."
    down = left.selectbox("Down", axes, format_func=AXES.__getitem__, key="heat-down", help=words)
    others = [axis for axis in axes if axis != down]
    across = right.selectbox(
        "Across", others, format_func=AXES.__getitem__, key=f"heat-across-{down}", help=words
    )
    figure = heat_of(experiment, measure, down, across)
    show_clickable(experiment, figure, f"heat-{measure}", f"{MEASURES[measure][0]} over two settings")
    st.caption("Click a cell to see the questions it wins and loses." + (" " + words) * (len(axes) > 2))


def show_costs(experiment: Experiment, measure: str) -> None:
    """Draw quality against cost, with the cells that none beats on both."""
    st.subheader("Quality against cost")
    cost = st.segmented_control(
        "Cost",
        list(COSTS),
        default="Index size",
        required=True,
        key="experiment-cost",
        persist_state="session",
        help="\n".join(f"- **{name}**: {words}" for name, (*_, words) in COSTS.items()),
    )
    figure = cost_of(experiment, measure, str(cost))
    name = f"cost-{COSTS[str(cost)][0]}-{measure}"
    show_clickable(experiment, figure, name, f"{MEASURES[measure][0]} against {COSTS[str(cost)][1]}")
    st.caption("The line is the Pareto front: on it, more quality costs more. Click a point to look into it.")


def show_clickable(experiment: Experiment, figure: go.Figure, name: str, alt: str) -> None:
    """Draw a figure whose cells may be clicked, with the ways to take it away."""
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
    numbers |= {measure: [row.metrics[measure] for row in experiment.rows] for measure in MEASURES}
    numbers |= {axis: [str(getattr(row.cell, axis)) for row in experiment.rows] for axis in AXES}
    show_save(figure, f"experiment-{name}", {name: np.array(values) for name, values in numbers.items()})
