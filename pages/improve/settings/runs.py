"""The list of runs, two settings compared question by question, and the deletion of a run."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

import numpy as np
import streamlit as st
from streamlit.column_config import NumberColumn

from engine.errors import GlassboxError
from engine.evaluation.significance import LEVEL, compare
from engine.evaluation.sweep_row import MEASURES, SweepRow
from engine.wording import counted
from pages.improve.settings.conclusion import ACROSS_K, difference_words, is_across_k
from pages.improve.settings.experiments import (
    Experiment,
    known_experiments,
    remove,
    running_experiment,
    shared_questions,
    value_words,
    varied,
)
from pages.improve.settings.results import metric_choice, show_questions
from ui.data_folder import kept_folder
from ui.tables import show_table
from ui.text import escape_markdown, p_words

METRIC = "mrr"


def show_runs() -> None:
    """Draw the list of runs, a comparison of two settings, and the deletion of a run."""
    now = running_experiment()
    known = known_experiments(but=None if now is None else now.key)
    experiments = {key: one for key, one in known.items() if one.rows}
    if not experiments:
        st.info("No run has ended yet. Run the grid on the tab “Grid”; its results are kept here.")
        return
    show_table(
        [run_line(experiment) for experiment in experiments.values()],
        "Every run with its size, and the best settings it found",
        {
            "The app's MRR": NumberColumn(format="%.3f", help="MRR of the settings the app had then."),
            "Best MRR": NumberColumn(format="%.3f", help="MRR of the best configuration."),
        },
    )
    st.caption(
        "Runs are gone when you close this session, unless you save your work: the button is in the sidebar."
        if kept_folder() is None
        else "Runs stay on this machine, for everybody who opens this app there, until you delete them."
    )
    show_comparison(experiments)
    with st.expander("Delete a run", icon=":material/delete:"):
        key = st.selectbox(
            "Run to delete",
            list(experiments),
            format_func=lambda key: experiments[key].title,
            key="experiment-delete",
            help="Deletes the run from this session, and from workspaces saved from now on.",
        )
        st.button("Delete it", on_click=remove, args=(experiments[key],), icon=":material/delete:")


def run_line(experiment: Experiment) -> dict[str, Any]:
    """Return a run as a line of the table."""
    best = max(experiment.rows, key=lambda row: row.metrics[METRIC])
    return {
        "Run": experiment.name,
        "Began": experiment.time.replace("T", " "),
        "Configurations": f"{len(experiment.rows):,} of {len(experiment.configurations):,}",
        "Questions": len(experiment.questions),
        "Documents": len(experiment.documents),
        "The app's MRR": experiment.rows[0].metrics[METRIC],
        "Best MRR": best.metrics[METRIC],
        "Best settings": experiment.words(best.configuration),
    }


def show_comparison(experiments: dict[str, Experiment]) -> None:
    """Draw the choice of two configurations of any runs, and compare them question by question."""
    st.header("Two settings, question by question")
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
    metric = metric_choice([before, after], "compare-measure", METRIC, of_answers=False)
    if is_across_k(before.configuration, after.configuration, metric):
        st.info(ACROSS_K, icon=":material/compare:")
        return
    label = MEASURES[metric].label
    values_before, values_after = before.values[metric], after.values[metric]
    old, new = [values_before[place] for place in own], [values_after[place] for place in others]
    found = compare(np.array(old), np.array(new))
    is_sure = found.p_value < LEVEL
    st.write(
        f"{label} of A is {fmean(old):.3f}, of B {fmean(new):.3f}: "
        f"B − A is {difference_words(found)}, {p_words(found.p_value)}. "
        + ("" if is_sure else "Chance alone explains that. ")
    )
    n_left_out = len(first.questions) + len(second.questions) - 2 * len(own)
    if n_left_out:
        st.caption(f"On {counted(len(own), 'question')} that both runs asked; left out: {n_left_out:,}.")
    st.caption(
        "The p-value is for this one comparison. Where B was chosen as the best of many, it is too small: "
        "use the verdict under Results, which is corrected for their number."
    )
    show_questions(
        [first.questions[place] for place in own],
        old,
        new,
        ("A", "B"),
        metric,
        f"compare-questions-{first.key}-{before.configuration}-{second.key}-{after.configuration}-{metric}",
    )


def cell_choice(
    name: str, experiments: dict[str, Experiment], default: int, is_best: bool
) -> tuple[Experiment, SweepRow]:
    """Draw the choice of a run and of one of its configurations, the best or the baseline first."""
    key = st.selectbox(
        f"Run {name}",
        list(experiments),
        default,
        format_func=lambda key: experiments[key].title,
        key=f"compare-run-{name}",
        help="Both must have searched the same documents; they are compared on the questions both asked.",
    )
    experiment = experiments[key]
    order = sorted(experiment.rows, key=lambda row: -row.metrics[METRIC])
    rows: Sequence[SweepRow] = order if is_best else (experiment.rows[0], *order)
    places = list(dict.fromkeys(experiment.rows.index(row) for row in rows))
    axes = varied(experiment.configurations)

    def words(place: int) -> str:
        row = experiment.rows[place]
        mark = ", the app's settings then" if place == 0 else ""
        values = " / ".join(value_words(row.configuration, axis) for axis in axes) or "the only setting"
        return f"{row.metrics[METRIC]:.3f}: {values}{mark}"

    place = st.selectbox(
        f"Configuration {name}",
        places,
        format_func=words,
        key=f"compare-cell-{name}-{key}",
        help="Best MRR first.",
    )
    return experiment, experiment.rows[place]
