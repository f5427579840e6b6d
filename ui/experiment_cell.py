"""One cell of an experiment: the questions it wins and loses, and its settings for the app."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st

from engine.evaluation.grid import Cell
from engine.evaluation.questions import Question
from ui.answer import escape_markdown
from ui.experiment_runs import Experiment
from ui.experiment_verdicts import ACROSS_K, MEASURES, Verdict, is_across_k
from ui.experiment_words import AXES, cell_words, value_words
from ui.models import ENCODER, load_encoder
from ui.settings import COUNTS, take_settings

DIFFERENT = 1e-9
TABLE_HEIGHT = 300


def show_cell(experiment: Experiment, place: int, verdict: Verdict, measure: str) -> None:
    """Draw what a cell is, what it wins and loses, and the button that applies it to the app."""
    row, baseline = experiment.rows[place], experiment.rows[0]
    with st.container(border=True, key="experiment-cell-box"):
        words, button = st.columns([4, 1], vertical_alignment="center")
        words.markdown(f"**{escape_markdown(cell_words(row.cell))}**")
        button.button(
            "Use these settings",
            key="experiment-use",
            icon=":material/check:",
            on_click=use_settings,
            args=(row.cell,),
            width="stretch",
            help="Moves the app's own settings: splitter, sizes, overlap, pooling, tokens read, retriever, "
            "passages. Every page then works with them.",
        )
        if used := st.session_state.pop("experiment-used", None):
            st.success(escape_markdown(used), icon=":material/check_circle:")
        if left_out := not_of_the_app(row.cell):
            st.caption(escape_markdown(left_out))
        if verdict.word == "baseline":
            st.caption("This is the baseline: it wins and loses nothing against itself.")
            return
        if is_across_k(baseline.cell, row.cell, measure):
            st.info(ACROSS_K, icon=":material/compare:")
            return
        show_questions(
            experiment.questions,
            baseline.values[measure],
            row.values[measure],
            ("The app's", "This cell's"),
            MEASURES[measure][0],
            f"experiment-questions-{experiment.key}-{place}-{measure}",
        )


def use_settings(cell: Cell) -> None:
    """Move the app's own widgets to a cell's settings."""
    encoder = load_encoder()
    limit = encoder.token_limit(None) if cell.max_tokens is None else cell.max_tokens
    wanted = {
        "splitter": cell.splitter,
        "chunk_tokens": cell.chunk_tokens,
        "overlap": cell.overlap,
        "max_tokens": limit,
        "pooling": cell.pooling,
        "retriever": cell.retriever,
        "k": cell.k,
    }
    take_settings(wanted, encoder.config.max_positions)
    state = st.session_state
    taken = {key for key, value in wanted.items() if state.get(key) == value}
    axes = [axis for axis in AXES if axis in taken]
    state["experiment-used"] = f"The app now has {cell_words(cell, axes)}."


def not_of_the_app(cell: Cell) -> str:
    """Say what of a cell the app has no setting for."""
    missing = []
    if cell.model != ENCODER:
        missing.append(
            f"the model {cell.model}: start the app with the environment variable GLASSBOX_ENCODER set to it"
        )
    low, high = COUNTS["k"]
    if not low <= cell.k <= high:
        missing.append(f"{cell.k} passages: it takes {low} to {high}")
    return "" if not missing else "The app has no setting yet for " + "; nor for ".join(missing) + "."


def changes(before: Sequence[float], after: Sequence[float]) -> dict[str, list[int]]:
    """Return the questions that are won, lost and alike, the largest changes first."""
    gains = np.subtract(after, before)
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
    label: str,
    key: str,
) -> None:
    """Draw the questions that one setting wins and loses against another, by their values of a measure."""
    found = changes(before, after)
    counted = {name: f"{name} ({len(places):,})" for name, places in found.items()}
    chosen = st.segmented_control(
        "Questions",
        list(found),
        format_func=counted.__getitem__,
        default="Won" if found["Won"] else "Lost",
        required=True,
        key=key,
        help=f"Won: {label} of the question is higher than before. Lost: it is lower.",
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
    st.dataframe(
        [line(place) for place in places],
        hide_index=True,
        height="content" if len(places) < 8 else TABLE_HEIGHT,
        column_config={
            "Question": st.column_config.TextColumn(width="large"),
            "Answer": st.column_config.TextColumn(width="large"),
            names[0]: number,
            names[1]: number,
        },
        alt=f"The questions that are {str(chosen).lower()}, with their documents and answers",
    )


def cell_line(cell: Cell, axes: Sequence[str]) -> str:
    """``"64 / mean / dense"``: the values alone, for a list to choose from."""
    return " / ".join(value_words(cell, axis) for axis in axes) or "the only setting"
