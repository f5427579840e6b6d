"""The results of asked questions: figures with intervals, the last runs, two charts, and every question."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import streamlit as st

from engine.evaluation.answers import (
    ANSWER_METRICS,
    AnswerRow,
    answer_metrics,
    coverage_curve,
    reliability,
)
from engine.evaluation.bootstrap import Interval, mean_interval
from pages.improve.settings.answer_figures import at_threshold, coverage_figure, reliability_figure
from pages.improve.settings.answer_runs import AnswerRun, answer_runs, differing
from pages.improve.settings.answer_table import show_answers
from ui.export import arrays_of, show_figure
from ui.tables import show_table
from ui.text import escape_markdown

SHOWN = ("right", "answered", "wrong_confident", "refused_rightly", "refused_wrongly", "found")
CARD_WIDTH = 156  # pixels: six beside each other on a wide screen, two on a phone
FEW = 15  # questions; with fewer, the figures show chance alone


def show_answer_results() -> None:
    """Draw the results of one of the session's runs, the newest first."""
    runs = answer_runs()
    if not runs:
        return
    st.header("Results")
    place = 0
    if len(runs) > 1:
        place = st.selectbox(
            "Run",
            range(len(runs)),
            format_func=lambda number: runs[number].title,
            key=f"answers-shown-{runs[0].time}",
            help="The last runs of this session, the newest first.",
        )
    run = runs[place]
    asked = [row.question for row in run.rows]
    earlier = next((other for other in runs[place + 1 :] if other.rows_of(asked)), None)
    show_metrics(run, earlier)
    with st.expander("Settings of this run", icon=":material/tune:"):
        for label, value in run.settings.items():
            st.markdown(f"{label}: **{escape_markdown(value)}**")
    show_runs_table(runs)
    show_charts(run)
    show_answers(run)


def show_metrics(run: AnswerRun, earlier: AnswerRun | None) -> None:
    """Draw the figures of a run with their intervals, and their differences to an earlier one."""
    found = answer_metrics(run.rows)
    before = earlier.rows_of([row.question for row in run.rows]) if earlier else []
    with st.container(horizontal=True, gap="xsmall", key="answers-metrics"):
        for name in (name for name in SHOWN if name in found):
            metric, value = ANSWER_METRICS[name], found[name]
            change = difference(name, before, run.rows) if before else None
            with st.container(width=CARD_WIDTH, gap="xxsmall"):
                st.metric(
                    label_of(name),
                    percent(value.estimate),
                    None if change is None else f"{100 * change.estimate:+.1f} points",
                    "off" if change is None else delta_colour(change, metric.higher_is_better),
                    delta_arrow="off" if change is None or not change.estimate else "auto",
                    help=f"{metric.help} Counted: {questions_counted(metric.of)}.",
                )
                st.caption(f"95 %: {100 * value.low:.0f} to {percent(value.high)}")
    if earlier is not None:
        labels = differing([run, earlier])
        was = " · ".join(f"{label} {earlier.settings.get(label, 'none')}" for label in labels)
        st.caption(
            f"The differences are to the run of {escape_markdown(earlier.time[11:])}, on the same questions, "
            + (f"with {escape_markdown(was)}. " if was else "with the same settings. ")
            + "A grey one is within what chance explains."
        )


def difference(name: str, before: Sequence[AnswerRow], after: Sequence[AnswerRow]) -> Interval:
    """Return how much a metric changed between rows of the same questions, with its interval."""
    metric = ANSWER_METRICS[name]
    changes = [
        float(metric.value(new)) - float(metric.value(old))
        for old, new in zip(before, after, strict=True)
        if metric.counts(new.question)
    ]
    return mean_interval(np.array(changes))


def delta_colour(change: Interval, higher_is_better: bool) -> Literal["off", "normal", "inverse"]:
    """Return the colour of a difference: none where its interval holds 0."""
    if change.low <= 0 <= change.high:
        return "off"
    return "normal" if higher_is_better else "inverse"


def label_of(name: str) -> str:
    """Return the label of one of `ANSWER_METRICS`, as a heading."""
    label = ANSWER_METRICS[name].label
    return label[0].upper() + label[1:]


def questions_counted(of: str) -> str:
    """Say which questions a metric counts."""
    return {
        "all": "all questions",
        "answerable": "questions whose answers are in the documents",
        "unanswerable": "questions whose answers are not in the documents",
    }[of]


def percent(share: float) -> str:
    """``0.637 -> "64 %"``."""
    return f"{100 * share:.0f} %"


def show_runs_table(runs: Sequence[AnswerRun]) -> None:
    """Draw the session's last runs: the settings that differ, and the figures."""
    if len(runs) < 2:
        return
    lines = []
    for run in runs:
        figures = {name: value.estimate for name, value in answer_metrics(run.rows).items()}
        lines.append(
            {"Run": run.title}
            | {label: run.settings.get(label, "") for label in differing(runs)}
            | {label_of(name): 100 * figures[name] for name in ANSWER_METRICS if name in figures}
        )
    with st.expander(f"The last {len(runs)} runs", icon=":material/history:", expanded=True):
        show_table(
            lines,
            "The last runs of this session, the settings in which they differ, and their figures",
            {
                label_of(name): st.column_config.NumberColumn(format="%.0f %%", help=metric.help)
                for name, metric in ANSWER_METRICS.items()
            },
        )


def show_charts(run: AnswerRun) -> None:
    """Draw how well confidence tells right from wrong, and what a threshold does, with their numbers."""
    if len(run.rows) < FEW:
        st.caption(f"How often it is right by how sure it is, is drawn from {FEW} questions on.")
        return
    bins, curve, answer_at = reliability(run.rows), coverage_curve(run.rows), run.answers.answer_threshold
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("**Is it as often right as it is sure?**")
        shares = ", ".join(f"{each.confidence:.0%} sure {each.right:.0%} right" for each in bins)
        show_figure(
            reliability_figure(bins),
            "answers-reliability",
            arrays_of(bins, "confidence", "right", "n"),
            alt=f"How sure the app is against the share right, in bins of equally many answers: {shares}",
        )
        chance = 1 / np.sqrt(min(each.n for each in bins))  # two standard errors of a share, at most
        st.caption(
            f"Each point is about {bins[-1].n:,} answers. Above the diagonal the app is right more often "
            f"than sure, below it less often; up to {percent(min(1.0, chance))} beside it may be chance."
        )
    with right:
        st.markdown("**How many are answered, and how many of those are right?**")
        now = at_threshold(curve, answer_at)
        answered = "none is answered"
        if now is not None:
            answered = f"{percent(now.answered)} of all are answered, {percent(now.right)} of those rightly"
        show_figure(
            coverage_figure(curve, answer_at),
            "answers-coverage",
            arrays_of(curve, "confidence", "answered", "right"),
            alt=f"The share of questions answered against the share right of those, for every threshold; "
            f"at that of this run, {percent(answer_at)}, {answered}",
        )
        n_empty = sum(not row.question.answer for row in run.rows)
        most = (
            f" The documents hold {percent(1 - n_empty / len(run.rows))} of the answers." if n_empty else ""
        )
        st.caption(
            f"In this run, from {percent(answer_at)} sure on: {answered}.{most} A higher threshold moves to "
            "the left; “Answered from” on the page “Ask your documents” sets it."
        )
    with st.expander("The numbers of both figures", icon=":material/table:", key="answers-numbers"):
        show_numbers("Answers by how sure the app is", bins, ("confidence", "right", "n"))
        show_numbers("Every threshold", curve, ("confidence", "answered", "right"))


def show_numbers(title: str, records: Sequence[object], names: Sequence[str]) -> None:
    """Draw the numbers of a figure as a table."""
    labels = {"confidence": "Sure", "answered": "Answered", "right": "Right", "n": "Answers"}
    st.caption(title)
    show_table(
        [
            {labels[name]: getattr(record, name) * (1 if name == "n" else 100) for name in names}
            for record in records
        ],
        title,
        {labels[name]: st.column_config.NumberColumn(format="%.1f %%") for name in names if name != "n"},
    )
