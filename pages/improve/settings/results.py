"""The tab of results: the conclusion, a table with verdicts, one row, and each setting on average."""

from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

import numpy as np
import streamlit as st
from streamlit.column_config import NumberColumn, ProgressColumn, TextColumn

from engine.evaluation.bootstrap import MainEffect, main_effects
from engine.evaluation.questions import Question
from engine.evaluation.setting_order import setting_orders
from engine.evaluation.significance import LEVEL
from engine.evaluation.sweep_row import MEASURES, RIGHT, SweepRow, retrieves_every_chunk
from engine.settings import SETTINGS, Configuration
from engine.wording import counted
from pages.improve.settings.answer_results import show_answer_results
from pages.improve.settings.charts import COSTS, pick, show_costs
from pages.improve.settings.conclusion import (
    ACROSS_K,
    DRAFT_WORDS,
    ELSEWHERE,
    EQUAL_READING,
    EXPECTED,
    OTHER_K,
    Conclusion,
    Verdict,
    best_first,
    conclude,
    is_across_k,
    is_enough,
    show_conclusion,
    shown_place,
    summary,
    table_row,
    verdicts,
    won_and_lost,
)
from pages.improve.settings.experiments import (
    JOB,
    Experiment,
    configuration_words,
    known_experiments,
    measured_so_far,
    running_experiment,
    show_resume,
    value_words,
    values_in_order,
    varied,
)
from pages.improve.settings.export import has_baseline, show_export
from ui.jobs import current_job
from ui.report import Report
from ui.tables import show_selectable, show_table
from ui.text import escape_markdown, help_list, signed_interval
from ui.widgets import choice

REDRAW_S = 3.0
DRAWN_PER_S = 200  # configurations; a larger running experiment is redrawn less often
REFERENCE = "compared with this"


def show_results(current: Configuration) -> None:
    """Draw the results of the chosen run; while it runs, the rows so far are redrawn every few seconds.

    ``current`` are the app's present settings.
    """
    now = running_experiment()
    growing = {} if now is None else {now.key: now}
    found = growing | known_experiments(but=now.key if now else None)
    if not found:
        st.info("Nothing is measured yet. Run the grid on the tab “Grid”: its first rows come in seconds.")
        return
    key = choice(
        "Run",
        list(found),
        "experiment-shown",
        "The runs, the newest first, with those of an opened workspace.",
        format_func=lambda key: found[key].title,
        as_list=True,
    )
    chosen = found[key]
    if now is not None and key == now.key:
        st.fragment(show_growing, run_every=max(REDRAW_S, len(chosen.configurations) / DRAWN_PER_S))(current)
    elif chosen.rows:
        show_experiment(chosen, is_growing=False, current=current)
    else:
        st.info("The first row, which others are compared with, is missing or damaged: run the grid again.")


def show_growing(current: Configuration) -> None:
    """Draw the rows so far of the running experiment."""
    if (job := current_job(JOB)) is None or not job.rows:
        st.info("The first rows come as soon as the documents are cut and embedded.")
    else:
        show_experiment(measured_so_far(job), is_growing=True, current=current)


def show_experiment(experiment: Experiment, is_growing: bool, current: Configuration) -> None:
    """Draw the results of an experiment: what was learnt, and below it the figures that show it."""
    rows, report, top = experiment.rows, Report(), st.container()
    metric = metric_choice(rows, "experiment-measure", EQUAL_READING)
    judged, found = judged_of(experiment.key, len(rows), metric, experiment)
    if experiment.n_drafted or not is_enough(experiment):  # drafts advise no setting
        found = Conclusion(0)
    with top:
        show_conclusion(report, experiment, judged, metric, found, current)
    show_notes(report, experiment, judged, metric)
    show_effects(report, experiment, metric)
    show_rows(report, experiment, judged, metric)
    place = choose_row(experiment, metric)
    if place is not None:
        show_row(experiment, place, judged[place], metric)
    if len(rows) > 1:
        show_costs(report, experiment, metric)
    shown = shown_place(experiment, found)
    if answers := rows[shown].answers:
        report.header("Answers")
        words = experiment.words(rows[shown].configuration)
        st.caption(
            escape_markdown(f"Of the row that is selected, or else of the settings at the top: {words}.")
        )
        show_answer_results(answers, experiment.answer_settings, f"{experiment.key}-{shown}-{len(rows)}")
    if not is_growing:
        show_export(report, experiment, metric, rows[shown].configuration)


def metric_choice(rows: Sequence[SweepRow], key: str, default: str, of_answers: bool = True) -> str:
    """Draw the choice of one of the metrics that every row has: old runs may lack new ones."""
    names = [name for name in MEASURES if all(name in row.metrics for row in rows)]
    names = [name for name in names if of_answers or name != RIGHT]
    return choice(
        "Metric",
        names,
        key,
        help_list(MEASURES[name] for name in names),
        default if default in names else names[0],
        lambda name: MEASURES[name].label,
    )


@st.cache_resource(max_entries=8, show_spinner="Telling differences from chance…", scope="session")
def judged_of(
    key: str, n_rows: int, metric: str, _experiment: Experiment
) -> tuple[list[Verdict], Conclusion]:
    """Return the verdicts on the rows of an experiment by a metric, and the conclusion; cached."""
    judged = verdicts(_experiment.rows, metric, _experiment.questions)
    return judged, conclude(_experiment.rows, judged, metric)


def show_notes(report: Report, experiment: Experiment, judged: Sequence[Verdict], metric: str) -> None:
    """Draw how many settings differ beyond chance, if any, and what makes settings hard to compare."""
    if any(one.word in ("better", "worse") for one in judged) and not experiment.n_drafted:
        report.caption(summary(judged))
    if any(one.word == OTHER_K for one in judged):
        report.caption(ACROSS_K)
    sizes = varied(row.configuration for row in experiment.rows)
    if MEASURES[metric].unit != "characters" and metric != EQUAL_READING and "chunk_tokens" in sizes:
        report.caption(
            "Sizes differ: a larger chunk contains more, so any search hits a right one more easily, and "
            f"it fills more of a prompt. “{MEASURES[EQUAL_READING].label}” compares at equal reading."
        )
    if found := [row for row in experiment.rows if retrieves_every_chunk(row)]:
        fewest = min(row.n_chunks for row in found)
        report.note(
            st.warning,
            ":material/warning:",
            f"In {counted(len(found), 'configuration')} all chunks are retrieved: k is their number or more "
            f"(the fewest are {fewest:,}). Recall@k and Hit@k are 1 there for any search: take fewer "
            "passages, smaller chunks or more documents.",
        )
    if not experiment.is_whole:
        show_resume(experiment)


def choose_row(experiment: Experiment, metric: str) -> int | None:
    """Draw the choice of a row, the same as in the table or in a figure; return None where none is made."""
    rows, key = experiment.rows, f"experiment-cell-{experiment.key}"
    axes, label = varied(experiment.configurations) or ["chunk_tokens"], MEASURES[metric].label

    def words(place: int) -> str:
        row = rows[place]
        return f"{configuration_words(row.configuration, axes)}: {label} {row.metrics[metric]:.3f}"

    place = st.session_state.get("experiment-cell", {}).get(experiment.key)
    st.session_state[key] = place if place is None or place < len(rows) else None
    return st.selectbox(
        "Configuration",
        best_first(rows, metric),
        format_func=words,
        index=None,
        key=key,
        on_change=lambda: pick(experiment, st.session_state[key]),
        placeholder="Choose one, select a row or click a figure below",
        help="The questions that it wins and loses are listed, and its settings can be applied above.",
    )


def show_rows(report: Report, experiment: Experiment, judged: Sequence[Verdict], metric: str) -> None:
    """Draw a line for every configuration, the best first; one may be selected."""
    report.header("Every configuration")
    rows, order = experiment.rows, best_first(experiment.rows, metric)
    axes = varied(experiment.configurations) or ["chunk_tokens"]
    columns = {each.label: NumberColumn(format="%.3f", help=each.help) for each in MEASURES.values()} | {
        "Value": ProgressColumn(
            MEASURES[metric].label,
            width="small",
            pinned=True,
            format="%.3f",
            min_value=0.0,
            max_value=1.0,
            help=MEASURES[metric].help,
        ),
        "95 % interval": TextColumn(
            help="With other questions of this kind: exact where each is 0 or 1, else the bootstrap."
        ),
        "Against the app's": TextColumn(
            help="Better or worse, where a paired randomisation test over the questions has p below "
            f"{LEVEL}, corrected for the number of rows; else “not sure”. Metrics “@k” are not compared "
            "across k."
        ),
        "Difference": TextColumn(
            width="medium",
            help="To the app's settings, with its 95 % interval over the questions. The interval is for only "
            "this row, so it may exclude 0 where the verdict, which is corrected for the number of rows, is "
            "“not sure”.",
        ),
        ELSEWHERE: TextColumn(
            help="The mean difference to the app's settings on other, labelled corpora: what is known "
            "without a question about these documents. Empty where it was not measured."
        ),
        EXPECTED: TextColumn(
            width="medium",
            help="The difference on other corpora, moved by drafts (less what drafts say too much there) "
            "and by kept and labelled questions, with its 95 % interval.",
        ),
        "p": TextColumn(help="Of the paired randomisation test, corrected for the number of rows."),
        "Seconds": NumberColumn(format="%.2f", help=COSTS["Seconds"][3]),
        "Search (ms)": NumberColumn(
            format="%.2f", help="To score all chunks for a question, without embedding it."
        ),
    }
    if experiment.n_drafted and metric in setting_orders():
        order.sort(key=lambda place: -judged[place].comparison.difference)
    lines = [table_row(rows[place], judged[place], metric, axes) for place in order]
    if experiment.n_drafted:
        every = [rows[place].configuration for place in (0, *order)]
        lines = [with_order(line, one, every[0], metric) for line, one in zip(lines, every[1:], strict=True)]
    alt = "Every setting with its quality, interval and verdict against the app's settings"
    key = f"experiment-table-{experiment.key}-{metric}-{len(rows)}"
    show_selectable(
        lines, alt, columns, key, lambda row: pick(experiment, None if row is None else order[row])
    )
    report.keep_table(lines, alt, columns)


def with_order(line: dict[str, Any], own: Configuration, first: Configuration, metric: str) -> dict[str, Any]:
    """Return a line of the table as unread drafts allow it, with the order of settings on other corpora."""
    line["Against the app's"] = DRAFT_WORDS.get(line["Against the app's"], line["Against the app's"])
    if (order := setting_orders().get(metric)) is None:
        return line
    known, base = order.measured(own), order.measured(first)
    there = f"{known[0] - base[0]:+.3f}" if known and base else ""
    del line["p"]
    return {"Value": line.pop("Value"), ELSEWHERE: there, EXPECTED: line.pop("Difference")} | line


def show_row(experiment: Experiment, place: int, verdict: Verdict, metric: str) -> None:
    """Draw a row's settings, and the questions that it wins and loses."""
    row, baseline = experiment.rows[place], experiment.rows[0]
    with st.container(border=True, key="experiment-cell-box"):
        st.markdown(f"**{escape_markdown(configuration_words(row.configuration))}**")
        st.caption("They stand at the top, too, with what they cost and to be applied.")
        if verdict.word == "baseline":
            st.caption("This is the baseline: it wins and loses nothing against itself.")
            return
        if is_across_k(baseline.configuration, row.configuration, metric):
            st.info(ACROSS_K, icon=":material/compare:")
            return
        if metric == RIGHT:
            st.caption("Its answers are below, one by one.")
            return
        show_questions(
            experiment.questions,
            baseline.values[metric],
            row.values[metric],
            ("The app's", "This configuration's"),
            metric,
            f"experiment-questions-{experiment.key}-{place}-{metric}",
        )


def show_questions(
    questions: Sequence[Question],
    before: Sequence[float],
    after: Sequence[float],
    names: tuple[str, str],
    metric: str,
    key: str,
) -> None:
    """Draw the questions that one setting wins and loses against another, by their values of a metric."""
    found, label = won_and_lost(before, after), MEASURES[metric].label
    labels = {name: f"{name} ({len(places):,})" for name, places in found.items()}
    chosen = st.segmented_control(
        "Questions",
        list(found),
        format_func=labels.__getitem__,
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

    number = NumberColumn(format="%.3f", help=f"{label} of this question.")
    show_table(
        [line(place) for place in places],
        f"The questions that are {str(chosen).lower()}, with their documents and answers",
        {
            "Question": TextColumn(width="large"),
            "Answer": TextColumn(width="large"),
            names[0]: number,
            names[1]: number,
        },
        key,
    )


@st.cache_resource(max_entries=8, show_spinner="Averaging over the grid…", scope="session")
def effects_of(key: str, metric: str, _experiment: Experiment) -> dict[str, list[MainEffect]]:
    """Return the effects of the values of every setting that differs; none where fewer than two settings do.

    A baseline that is no part of the grid is left out; so is k for metrics that depend on it. Cached by the
    experiment's key.
    """
    rows = _experiment.rows[0 if has_baseline(_experiment.configurations) else 1 :]
    values = np.array([row.values[metric] for row in rows], np.float64)  # (n_rows, n_questions)
    axes = [
        axis for axis in varied(row.configuration for row in rows) if axis != "k" or not MEASURES[metric].at_k
    ]
    effects, configurations = {}, _experiment.configurations
    for axis in axes if len(axes) > 1 else []:
        levels = [value_words(row.configuration, axis) for row in rows]
        in_use, order = value_words(configurations[0], axis), values_in_order(configurations, axis)
        found = main_effects(values, levels, in_use if in_use in levels else levels[0])
        effects[axis] = sorted(found, key=lambda effect: order.index(str(effect.value)))
    return effects


def show_effects(report: Report, experiment: Experiment, metric: str) -> None:
    """Draw a line for each value of each setting, where the whole grid is measured."""
    effects = effects_of(experiment.key, metric, experiment) if experiment.is_whole else {}
    if not effects:
        return
    report.header("Each setting on average")
    label = MEASURES[metric].label
    report.table(
        [effect_line(axis, effect, label) for axis, found in effects.items() for effect in found],
        "Each value of each setting with its mean over the grid, and its difference to the value in use",
        {
            label: NumberColumn(format="%.3f", help="Mean over all configurations with the value."),
            "95 % interval": TextColumn(help="Over questions; exact where each is 0 or 1."),
            "Difference": TextColumn(
                width="medium",
                help="To the value in use, or to the first where that is no part of the grid, with its 95 % "
                "interval over the questions. It is not corrected for the number of values.",
            ),
        },
    )
    report.caption(
        "The mean over all configurations with a value: its effect whatever the other settings are. More is "
        "averaged than in one configuration, so an effect may be clear where no configuration is better "
        "than the app's settings beyond chance."
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
        "Configurations": effect.n_configurations,
    }
