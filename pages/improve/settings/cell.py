"""One cell of an experiment: its settings, and the questions that it wins and loses."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st

from engine.evaluation.metrics import METRICS
from engine.evaluation.questions import Question
from engine.settings import SETTINGS, Configuration
from pages.improve.settings.runs import Experiment
from pages.improve.settings.verdicts import ACROSS_K, Verdict, is_across_k
from ui.configurations import configuration_words
from ui.server_settings import ENCODER
from ui.tables import show_table
from ui.text import escape_markdown

DIFFERENT = 1e-9


def show_cell(experiment: Experiment, place: int, verdict: Verdict, metric: str) -> None:
    """Draw a cell's settings, and the questions that it wins and loses."""
    row, baseline = experiment.rows[place], experiment.rows[0]
    with st.container(border=True, key="experiment-cell-box"):
        st.markdown(f"**{escape_markdown(configuration_words(row.cell))}**")
        st.caption("They stand at the top, too, with what they cost and to be applied.")
        if verdict.word == "baseline":
            st.caption("This is the baseline: it wins and loses nothing against itself.")
            return
        if is_across_k(baseline.cell, row.cell, metric):
            st.info(ACROSS_K, icon=":material/compare:")
            return
        show_questions(
            experiment.questions,
            baseline.values[metric],
            row.values[metric],
            ("The app's", "This cell's"),
            metric,
            f"experiment-questions-{experiment.key}-{place}-{metric}",
        )


def not_of_the_app(cell: Configuration) -> str:
    """Return in words the settings of a cell that the app has no widget for; empty where it has all."""
    missing = []
    if cell.model != ENCODER:
        missing.append(
            f"the model {cell.model}: start the app with the environment variable GLASSBOX_ENCODER set to it"
        )
    k = SETTINGS["k"]
    if not k.allows(cell.k):
        missing.append(f"{cell.k} passages: it takes {k.low} to {k.high}")
    return "" if not missing else "The app has no setting yet for " + "; nor for ".join(missing) + "."


def won_and_lost(before: Sequence[float], after: Sequence[float], metric: str) -> dict[str, list[int]]:
    """Return the places of the questions won, lost and alike, the largest changes first."""
    gains = METRICS[metric].sign * np.subtract(after, before)
    order = np.argsort(-np.abs(gains), kind="stable").tolist()
    return {
        "Won": [place for place in order if gains[place] > DIFFERENT],
        "Lost": [place for place in order if gains[place] < -DIFFERENT],
        "Alike": [place for place in order if abs(gains[place]) <= DIFFERENT],
    }


def show_questions(
    questions: Sequence[Question],
    before: Sequence[float],
    after: Sequence[float],
    names: tuple[str, str],
    metric: str,
    key: str,
) -> None:
    """Draw the questions that one setting wins and loses against another, by their values of a metric."""
    found, label = won_and_lost(before, after, metric), METRICS[metric].label
    counted = {name: f"{name} ({len(places):,})" for name, places in found.items()}
    chosen = st.segmented_control(
        "Questions",
        list(found),
        format_func=counted.__getitem__,
        default="Won" if found["Won"] else "Lost",
        required=True,
        key=key,
        help=f"Won: {label} of the question is better than before. Lost: it is worse.",
    )
    places = found[str(chosen)]
    if not places:
        st.info(f"No question is {str(chosen).lower()}.")
        return

    def line(place: int) -> dict[str, Any]:
        question = questions[place]
        return {
            "Question": question.text,
            names[0]: before[place],
            names[1]: after[place],
            "Document": question.corpus_id,
            "Answer": " … ".join(reference.content for reference in question.references),
        }

    number = st.column_config.NumberColumn(format="%.3f", help=f"{label} of this question.")
    show_table(
        [line(place) for place in places],
        f"The questions that are {str(chosen).lower()}, with their documents and answers",
        {
            "Question": st.column_config.TextColumn(width="large"),
            "Answer": st.column_config.TextColumn(width="large"),
            names[0]: number,
            names[1]: number,
        },
        key,
    )
