"""The effect of each setting of an experiment, on average over its grid."""

from dataclasses import astuple

import numpy as np
import streamlit as st

from engine.evaluation.main_effects import MainEffect, main_effects
from engine.evaluation.metrics import METRICS
from engine.settings import SETTINGS
from pages.improve.settings.code import has_baseline
from pages.improve.settings.runs import Experiment
from ui.configurations import value_words, values_in_order, varied
from ui.tables import show_table
from ui.text import signed_interval

REFERENCE = "compared with this"


def effects_of(experiment: Experiment, metric: str) -> dict[str, list[MainEffect]]:
    """Return the effects of the values of every setting that differs; none where fewer than two settings do.

    A baseline that is no part of the grid is left out; so is k for metrics that depend on it.
    """
    rows = experiment.rows[0 if has_baseline(experiment.cells) else 1 :]
    values = np.array([row.values[metric] for row in rows], np.float64)  # (n_rows, n_questions)
    axes = [axis for axis in varied(row.cell for row in rows) if axis != "k" or not METRICS[metric].at_k]
    effects = {}
    for axis in axes if len(axes) > 1 else []:
        levels = [value_words(row.cell, axis) for row in rows]
        in_use, order = value_words(experiment.cells[0], axis), values_in_order(experiment.cells, axis)
        found = main_effects(values, levels, in_use if in_use in levels else levels[0])
        effects[axis] = sorted(found, key=lambda effect: order.index(str(effect.value)))
    return effects


@st.cache_resource(max_entries=8, show_spinner="Averaging over the grid…", scope="session")
def kept_effects(key: str, metric: str, _experiment: Experiment) -> dict[str, list[MainEffect]]:
    """Return the `effects_of` an experiment; cached by its key."""
    return effects_of(_experiment, metric)


def show_effects(experiment: Experiment, metric: str) -> None:
    """Draw a line for each value of each setting, where the whole grid is measured."""
    effects = kept_effects(experiment.key, metric, experiment) if experiment.is_whole else {}
    if not effects:
        return
    st.header("Each setting on average")
    label = METRICS[metric].label
    show_table(
        [effect_line(axis, effect, label) for axis, found in effects.items() for effect in found],
        "Each value of each setting with its mean over the grid, and its difference to the value in use",
        {
            label: st.column_config.NumberColumn(format="%.3f", help="Mean over all cells with the value."),
            "95 % interval": st.column_config.TextColumn(help="The bootstrap over questions."),
            "Difference": st.column_config.TextColumn(
                width="medium",
                help="To the value in use, or to the first where that is no part of the grid, with its 95 % "
                "interval over the questions. It is not corrected for the number of values.",
            ),
        },
    )
    st.caption(
        "The mean over all cells with a value: its effect whatever the other settings are. More is averaged "
        "than in one cell, so an effect may be clear where no cell is better than the app's settings beyond "
        "chance."
    )


def effect_line(axis: str, effect: MainEffect, label: str) -> dict[str, object]:
    """Return an effect as a line of the table."""
    interval = effect.mean
    return {
        "Setting": SETTINGS[axis].label,
        "Value": effect.value,
        label: interval.estimate,
        "95 % interval": f"{interval.low:.3f} – {interval.high:.3f}",
        "Difference": signed_interval(*astuple(effect.difference)) if effect.difference else REFERENCE,
        "Cells": effect.n_cells,
    }
