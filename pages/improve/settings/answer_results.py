"""The answers of one configuration: figures with intervals, two charts, and every question."""

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st
from streamlit.column_config import NumberColumn, TextColumn

from engine.evaluation.answers import (
    ANSWER_METRICS,
    AnswerQuestion,
    AnswerRow,
    Coverage,
    ReliabilityBin,
    answer_metrics,
    coverage_curve,
    reliability,
)
from engine.generation.settings import AnswerSettings
from ui.colours import BLUE, GREY, ORANGE
from ui.export import show_figure
from ui.figures import LEGEND_ABOVE, add_line, styled
from ui.tables import show_csv, show_selectable, show_table
from ui.text import escape_markdown, show_text
from ui.widgets import kept

SHOWN = ("right", "answered", "wrong_confident", "refused_rightly", "refused_wrongly", "found")
CARD_WIDTH = 156  # pixels: six in a row on a wide screen, two on a phone
FEWEST_QUESTIONS = 15  # with fewer, the figures show chance only
FILTERS: dict[str, Callable[[AnswerRow], bool]] = {
    "All": lambda row: True,
    "Wrong and confident": lambda row: row.wrong_confident,
    "Wrong": lambda row: outcome(row) == "wrong",
    "Refused wrongly": lambda row: outcome(row) == "refused wrongly",
    "Unanswerable, not refused": lambda row: not row.question.is_answerable and row.status != "refused",
}
COUNTED = {  # questions, by what a metric is of
    "all": "all questions",
    "answerable": "questions whose answers are in the documents",
    "unanswerable": "questions whose answers are not in the documents",
}
HEIGHT = 360
POINTS = {"mode": "lines+markers", "line_width": 2, "cliponaxis": False}  # of `add_line`
SHARES = {"tickformat": ".0%", "fixedrange": True, "zeroline": False}


def show_answer_results(rows: Sequence[AnswerRow], settings: AnswerSettings, key: str) -> None:
    """Draw the answers of one configuration: figures, charts and every question; ``key`` is unique to it."""
    found = answer_metrics(rows)
    with st.container(horizontal=True, gap="xsmall", key="answers-metrics"):
        for name in (name for name in SHOWN if name in found):
            metric, value = ANSWER_METRICS[name], found[name]
            with st.container(width=CARD_WIDTH, gap="xxsmall"):
                words = f"{metric.help} Counted: {COUNTED[metric.of]}."
                label = metric.label[0].upper() + metric.label[1:]
                st.metric(label, percent(value.estimate), help=words)
                st.caption(f"95 %: {100 * value.low:.0f} to {percent(value.high)}")
    show_charts(rows, settings.answer_threshold)
    show_answer_rows(rows, settings.write, key)


def percent(share: float) -> str:
    """``0.637 -> "64 %"``."""
    return f"{100 * share:.0f} %"


def show_charts(rows: Sequence[AnswerRow], threshold: float) -> None:
    """Draw how well confidence tells right from wrong, and what a threshold does, with their numbers."""
    if len(rows) < FEWEST_QUESTIONS:
        st.caption(f"How often it is right by how sure it is, is drawn from {FEWEST_QUESTIONS} questions on.")
        return
    bins, curve = reliability(rows), coverage_curve(rows)
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("**Is it as often right as it is sure?**")
        shares = ", ".join(f"{each.confidence:.0%} sure {each.right:.0%} right" for each in bins)
        show_figure(
            reliability_figure(bins),
            "answers-reliability",
            alt=f"How sure the app is against the share right, in bins of equally many answers: {shares}",
        )
        chance = 1 / np.sqrt(min(each.n for each in bins))  # two standard errors of a share, at most
        st.caption(
            f"Each point is about {bins[-1].n:,} answers. Above the diagonal the app is right more often "
            f"than sure, below it less often; up to {percent(min(1.0, chance))} off it may be chance."
        )
    with right:
        st.markdown("**How many are answered, and how many of those are right?**")
        now = at_threshold(curve, threshold)
        answered = "none is answered"
        if now is not None:
            answered = f"{percent(now.answered)} of all are answered, {percent(now.right)} of those rightly"
        show_figure(
            coverage_figure(curve, threshold),
            "answers-coverage",
            alt=f"The share of questions answered against the share right of those, for every threshold; "
            f"at that of this run, {percent(threshold)}, {answered}",
        )
        n_empty = sum(not row.question.is_answerable for row in rows)
        most = f" The documents hold {percent(1 - n_empty / len(rows))} of the answers." if n_empty else ""
        st.caption(
            f"In this run, from {percent(threshold)} sure on: {answered}.{most} A higher threshold moves to "
            "the left; “Answered from” on the page “Ask your documents” sets it."
        )
    with st.expander("The numbers of both figures", icon=":material/table:", key="answers-numbers"):
        labels = {"confidence": "Sure", "answered": "Answered", "right": "Right", "n": "Answers"}
        percents = NumberColumn(format="%.1f %%")
        figures: dict[str, Sequence[ReliabilityBin] | Sequence[Coverage]] = {
            "Answers by how sure the app is": bins,
            "Every threshold": curve,
        }
        for title, records in figures.items():
            st.caption(title)
            show_table(
                [
                    {labels[name]: value if name == "n" else 100 * value for name, value in vars(one).items()}
                    for one in records
                ],
                title,
                {label: percents for name, label in labels.items() if name != "n"},
            )


def show_answer_rows(every: Sequence[AnswerRow], write: bool, key: str) -> None:
    """Draw every question, those of a chosen outcome, and the one that is selected."""
    groups = {name: [row for row in every if holds(row)] for name, holds in FILTERS.items()}
    name = st.pills(
        "Show",
        list(groups),
        format_func=lambda name: f"{name} ({len(groups[name]):,})",
        default="All",
        required=True,
        **kept("answers-filter"),
    )
    rows = groups[str(name)]
    if not rows:
        st.info("There is no such question in this run.")
        return
    lines = [table_line(row, write) for row in rows]
    table, box = f"answers-table-{key}-{name}", f"answers-row-{key}-{name}"

    show_selectable(
        lines,
        "Questions with their outcomes, and what was shown for each",
        {
            "Question": TextColumn(width="medium"),
            "Known answer": TextColumn(width="medium", help="As in the file: | divides spellings, & parts."),
            "Sure (%)": NumberColumn(format="%.0f"),
            "Quoted": TextColumn(width="large"),
            "The model's words": TextColumn(width="large"),
            "Seconds": NumberColumn(format="%.1f"),
        },
        table,
        lambda row: st.session_state.update({box: row}),
    )
    show_csv(lines, "answers", "answers")
    chosen = st.selectbox(
        "Read in full",
        range(len(rows)),
        index=None,
        format_func=lambda number: f"{rows[number].question.text} ({outcome(rows[number])})",
        key=box,
        placeholder="Choose a question, or select its row",
    )
    if chosen is not None:
        show_row(rows[chosen])


def outcome(row: AnswerRow) -> str:
    """Return whether a row is right or wrong, or was refused rightly or wrongly."""
    if row.status == "refused":
        return "refused wrongly" if row.question.is_answerable else "refused rightly"
    return "right" if row.right else "wrong"


def table_line(row: AnswerRow, write: bool) -> dict[str, Any]:
    """Return a row as a line of the table; the model's words only if it wrote."""
    line = {
        "Question": row.question.text,
        "Outcome": outcome(row),
        "Status": row.status,
        "Sure (%)": round(100 * row.confidence, 1),
        "Known answer": known_words(row.question),
        "Quoted": "\n".join(row.quotes),
    }
    if write:
        line["The model's words"] = row.text
    return line | {"Found": "yes" if row.found else "no", "Document": row.question.document}


def known_words(question: AnswerQuestion) -> str:
    """Return a short answer as it is written in a file; without one, that words of a passage are right."""
    words = " & ".join(" | ".join(part) for part in question.answer.parts)
    return words or ("words of the labelled passage" if question.spans else "")


def show_row(row: AnswerRow) -> None:
    """Draw a question with its known answer and all that was shown for it."""
    parts = {
        "Known answer": known_words(row.question) or "none: it is not in the documents",
        f"Quoted ({row.status}, {row.confidence:.0%} sure)": "\n".join(row.quotes) or "nothing",
        "The model's words": row.text or "none",
    }
    with st.container(border=True, key="answers-row"):
        st.markdown(f"**{escape_markdown(row.question.text)}**")
        for label, text in parts.items():
            st.caption(label)
            show_text(escape(text))


def reliability_figure(bins: Sequence[ReliabilityBin]) -> go.Figure:
    """Confidence against the share right, a point for each bin; on the diagonal both are the same."""
    figure, diagonal = go.Figure(), {"line_dash": "dot", "line_width": 1.5, "hoverinfo": "skip"}
    add_line(figure, (0, 1), (0, 1), "as sure as right", GREY, "", **diagonal)
    sure, right = [each.confidence for each in bins], [each.right for each in bins]
    hover = "%{customdata} answers<br>%{x:.0%} sure<br>%{y:.0%} right"
    points = POINTS | {"marker_size": 11, "customdata": [each.n for each in bins]}
    add_line(figure, sure, right, "measured", BLUE, hover, **points)
    return in_shares(figure, "how sure the app is", "share right")


def coverage_figure(curve: Sequence[Coverage], threshold: float) -> go.Figure:
    """Share answered against the share right of those, with the threshold of the run marked."""
    figure, hover = go.Figure(), "%{x:.0%} of all answered<br>%{y:.0%} of those right"
    answered, right = [each.answered for each in curve], [each.right for each in curve]
    points = POINTS | {"marker_size": 4, "customdata": [each.confidence for each in curve]}
    sure = f"answered from %{{customdata:.0%}} sure<br>{hover}"
    add_line(figure, answered, right, "each threshold", BLUE, sure, **points)
    if (now := at_threshold(curve, threshold)) is not None:
        star = POINTS | {"mode": "markers", "marker_symbol": "star", "marker_size": 17}
        name = f"this run, {threshold:.0%}"
        add_line(figure, [now.answered], [now.right], name, ORANGE, f"this run: {hover}", **star)
    return in_shares(figure, "share of all questions answered", "share right of those")


def at_threshold(curve: Sequence[Coverage], threshold: float) -> Coverage | None:
    """Return the point of a threshold, None where it lets no answer through."""
    return next((each for each in reversed(curve) if each.confidence >= threshold), None)


def in_shares(figure: go.Figure, across: str, up: str) -> go.Figure:
    """Give a figure two axes of shares, 0 to 100 %, and the shared look."""
    figure.update_xaxes(title=across, range=[0, 1], **SHARES)
    figure.update_yaxes(title=up, range=[0, 1.02], **SHARES)
    figure.update_layout(legend=LEGEND_ABOVE, dragmode=False)
    return styled(figure, HEIGHT).update_layout(margin={"t": 40, "r": 16})
