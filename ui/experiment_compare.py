"""The runs of a session over time, and two of them question by question."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

import numpy as np
import streamlit as st

from engine.errors import GlassboxError
from engine.evaluation.significance import compare
from engine.evaluation.sweep_row import SweepRow
from ui.answer import escape_markdown
from ui.experiment_cell import cell_line, show_questions
from ui.experiment_files import FOLDER, known_experiments, remove
from ui.experiment_running import running
from ui.experiment_runs import Experiment, shared_questions
from ui.experiment_verdicts import ACROSS_K, ALPHA, MEASURES, is_across_k, p_words, said
from ui.experiment_words import cell_words, varied

MEASURE = "mrr"


def show_runs() -> None:
    """Draw the runs there are, with the ways to compare two and to delete one."""
    now = running()
    experiments = known_experiments(but=None if now is None else now.begun.key)
    if not experiments:
        st.info("No run has ended yet. Run the grid on the tab “Grid”; whatever it measures is kept here.")
        return
    st.dataframe(
        [run_line(experiment) for experiment in experiments.values()],
        hide_index=True,
        column_config={
            "The app's MRR": st.column_config.NumberColumn(
                format="%.3f", help="Of the settings the app had."
            ),
            "Best MRR": st.column_config.NumberColumn(format="%.3f", help="Of the best cell."),
        },
        alt="Every run with its size, and the best settings it found",
    )
    st.caption(
        "Runs are gone when you close this session, unless you save the workspace on the page “Documents and "
        "chunks”: it takes them along."
        if FOLDER is None
        else "Runs stay on this machine, where everybody who opens this app sees them, until you delete them."
    )
    show_comparison(experiments)
    show_delete(experiments)


def run_line(experiment: Experiment) -> dict[str, Any]:
    """Return what the table says of a run."""
    best = best_row(experiment)
    return {
        "Run": experiment.name,
        "Began": experiment.time.replace("T", " "),
        "Cells": f"{len(experiment.rows):,} of {len(experiment.cells):,}",
        "Questions": len(experiment.questions),
        "Documents": len(experiment.documents),
        "The app's MRR": experiment.rows[0].metrics[MEASURE],
        "Best MRR": best.metrics[MEASURE],
        "Best settings": cell_words(best.cell, varied(experiment.cells)),
    }


def best_row(experiment: Experiment) -> SweepRow:
    """Return the row with the highest MRR; of equal ones the first."""
    return max(experiment.rows, key=lambda row: row.metrics[MEASURE])


def show_comparison(experiments: dict[str, Experiment]) -> None:
    """Draw two cells of any runs, question by question."""
    st.subheader("Two settings, question by question")
    keys = list(experiments)
    left, right = st.columns(2)
    with left:
        first, before = cell_choice("A", experiments, len(keys) - 1, is_best=False)
    with right:
        second, after = cell_choice("B", experiments, 0, is_best=True)
    try:
        own, others = shared_questions(first, second)
    except GlassboxError as error:
        st.warning(escape_markdown(str(error)), icon=":material/compare:")
        return
    measure = st.segmented_control(
        "Measure",
        list(MEASURES),
        format_func=lambda name: MEASURES[name][0],
        default=MEASURE,
        required=True,
        key="compare-measure",
        help="By which questions are won and lost.",
    )
    if is_across_k(before.cell, after.cell, str(measure)):
        st.info(ACROSS_K, icon=":material/compare:")
        return
    label = MEASURES[str(measure)][0]
    values_before, values_after = before.values[str(measure)], after.values[str(measure)]
    old, new = [values_before[place] for place in own], [values_after[place] for place in others]
    found = compare(np.array(old), np.array(new))
    is_sure = found.p_value < ALPHA
    st.write(
        f"{label} of A is {fmean(old):.3f}, of B {fmean(new):.3f}: "
        f"B − A is {said(found)}, {p_words(found.p_value)}. "
        + ("" if is_sure else "Chance alone explains that. ")
    )
    n_left_out = len(first.questions) + len(second.questions) - 2 * len(own)
    if n_left_out:
        st.caption(f"By the {len(own):,} questions that both asked; {n_left_out:,} are left out.")
    st.caption(
        "The p-value is of this one comparison: where you chose B as the best of many, it is too small, and "
        "the verdict under Results, corrected for their number, is the one to go by."
    )
    show_questions(
        [first.questions[place] for place in own],
        old,
        new,
        ("A", "B"),
        label,
        f"compare-questions-{first.key}-{before.cell}-{second.key}-{after.cell}-{measure}",
    )


def cell_choice(
    name: str, experiments: dict[str, Experiment], default: int, is_best: bool
) -> tuple[Experiment, SweepRow]:
    """Draw the choice of a run and of one of its cells; the best first, or the baseline."""
    key = st.selectbox(
        f"Run {name}",
        list(experiments),
        default,
        format_func=lambda key: f"{experiments[key].name}, {experiments[key].time.replace('T', ' ')}",
        key=f"compare-run-{name}",
        help="Runs of the same documents are compared, by the questions that both asked.",
    )
    experiment = experiments[key]
    order = sorted(experiment.rows, key=lambda row: -row.metrics[MEASURE])
    rows: Sequence[SweepRow] = order if is_best else (experiment.rows[0], *order)
    places = list(dict.fromkeys(experiment.rows.index(row) for row in rows))
    axes = varied(experiment.cells)

    def words(place: int) -> str:
        row = experiment.rows[place]
        mark = ", the app's settings then" if place == 0 else ""
        return f"{row.metrics[MEASURE]:.3f}: {cell_line(row.cell, axes)}{mark}"

    place = st.selectbox(
        f"Cell {name}",
        places,
        format_func=words,
        key=f"compare-cell-{name}-{key}",
        help="Best MRR first.",
    )
    return experiment, experiment.rows[place]


def show_delete(experiments: dict[str, Experiment]) -> None:
    """Draw the way to delete a run."""
    with st.expander("Delete a run", icon=":material/delete:"):
        key = st.selectbox(
            "Run to delete",
            list(experiments),
            format_func=lambda key: f"{experiments[key].name}, {experiments[key].time.replace('T', ' ')}",
            key="experiment-delete",
            help="It is gone from this session, and from a workspace that is saved from now on.",
        )
        st.button("Delete it", on_click=remove, args=(experiments[key],), icon=":material/delete:")
