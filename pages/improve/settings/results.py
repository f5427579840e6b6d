"""The results of an experiment: the conclusion, a table with verdicts, figures, and the selected cell."""

from collections.abc import Sequence

import streamlit as st

from engine.evaluation.metrics import METRICS
from engine.evaluation.sweep_row import SweepRow
from engine.settings import Configuration
from pages.improve.settings.cell import show_cell
from pages.improve.settings.charts import COSTS, pick, show_costs, show_heat
from pages.improve.settings.conclusion import HITS, Conclusion, conclude, show_conclusion, shown_place
from pages.improve.settings.effects import show_effects
from pages.improve.settings.export import show_export
from pages.improve.settings.files import known_experiments
from pages.improve.settings.running import JOB, measured_so_far, running_experiment, show_resume
from pages.improve.settings.runs import Experiment
from pages.improve.settings.verdicts import (
    ACROSS_K,
    ALPHA,
    OTHER_K,
    Verdict,
    best_first,
    shown_metrics,
    summary,
    table_row,
    verdicts,
)
from ui.configurations import configuration_words, varied
from ui.jobs import current_job
from ui.text import escape_markdown, help_list

REDRAW_S = 3.0
DRAWN_PER_S = 200  # cells; a larger running experiment is redrawn less often
TABLE_HEIGHT = 460
MRR = "mrr"


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
    key = st.selectbox(
        "Run",
        list(found),
        format_func=lambda key: found[key].title,
        key="experiment-shown",
        persist_state="session",
        help="The runs, the newest first, with those of an opened workspace.",
    )
    chosen = found[key]
    if now is not None and key == now.key:
        st.fragment(show_growing, run_every=max(REDRAW_S, len(chosen.cells) / DRAWN_PER_S))(current)
    elif chosen.rows:
        show_experiment(chosen, is_growing=False, current=current)


def show_growing(current: Configuration) -> None:
    """Draw the rows so far of the running experiment."""
    if (job := current_job(JOB)) is None or not job.rows:
        st.info("The first rows come as soon as the documents are cut and embedded.")
    else:
        show_experiment(measured_so_far(job), is_growing=True, current=current)


def show_experiment(experiment: Experiment, is_growing: bool, current: Configuration) -> None:
    """Draw the results of an experiment: what was learnt, and below it the figures that show it."""
    rows, top = experiment.rows, st.container()
    is_at_one_k = len({row.cell.k for row in rows}) == 1
    metric = metric_choice(rows, "experiment-measure", HITS if is_at_one_k else MRR)
    judged, found = judged_of(experiment.key, len(rows), metric, rows)
    with top:
        show_conclusion(experiment, judged, metric, found, current)
    show_notes(experiment, judged, metric)
    show_effects(experiment, metric)
    st.header("Every cell")
    show_cells(experiment, judged, metric)
    place = choose_cell(experiment, metric)
    if place is not None:
        show_cell(experiment, place, judged[place], metric)
    if len(rows) > 1:
        left, right = st.columns(2)
        with left:
            show_heat(experiment, metric)
        with right:
            show_costs(experiment, metric)
    if not is_growing:
        show_export(experiment, judged, metric, rows[shown_place(experiment, found)].cell)


def metric_choice(rows: Sequence[SweepRow], key: str, default: str) -> str:
    """Draw the choice of one of the metrics that rows have."""
    names = shown_metrics(rows)
    return st.segmented_control(
        "Metric",
        names,
        format_func=lambda name: METRICS[name].label,
        default=default if default in names else names[0],
        required=True,
        key=key,
        persist_state="session",
        help=help_list(METRICS[name] for name in names),
    )


@st.cache_resource(max_entries=8, show_spinner="Telling differences from chance…", scope="session")
def judged_of(
    key: str, n_rows: int, metric: str, _rows: Sequence[SweepRow]
) -> tuple[list[Verdict], Conclusion]:
    """Return the verdicts on the rows of an experiment by a metric, and the conclusion; cached."""
    judged = verdicts(_rows, metric)
    return judged, conclude(_rows, judged, metric)


def show_notes(experiment: Experiment, judged: Sequence[Verdict], metric: str) -> None:
    """Draw how many settings differ beyond chance, if any, and what makes settings hard to compare."""
    if any(one.word in ("better", "worse") for one in judged):
        st.caption(escape_markdown(summary(judged)))
    if any(one.word == OTHER_K for one in judged):
        st.caption(ACROSS_K)
    sizes = varied(row.cell for row in experiment.rows)
    if METRICS[metric].unit != "characters" and "chunk_tokens" in sizes:
        st.caption(
            "Sizes differ: a larger chunk contains more, so any search hits a right one more easily, and "
            "it fills more of a prompt. Span IoU@k compares the text found with the text needed."
        )
    if not experiment.is_whole:
        show_resume(experiment)


def choose_cell(experiment: Experiment, metric: str) -> int | None:
    """Draw the choice of a cell, the same as by its row or its point in a figure; None where none is made."""
    rows, key = experiment.rows, f"experiment-cell-{experiment.key}"
    axes, label = varied(experiment.cells) or ["chunk_tokens"], METRICS[metric].label

    def words(place: int) -> str:
        return f"{configuration_words(rows[place].cell, axes)}: {label} {rows[place].metrics[metric]:.3f}"

    place = st.session_state.get("experiment-cell", {}).get(experiment.key)
    st.session_state[key] = place if place is None or place < len(rows) else None
    return st.selectbox(
        "Cell",
        best_first(rows, metric),
        format_func=words,
        index=None,
        key=key,
        on_change=lambda: pick(experiment, st.session_state[key]),
        placeholder="Choose one, select a row or click a figure below",
        help="The questions that it wins and loses are listed, and its settings can be applied above.",
    )


def show_cells(experiment: Experiment, judged: Sequence[Verdict], metric: str) -> None:
    """Draw a line for every cell, the best first; one may be selected."""
    rows = experiment.rows
    order = best_first(rows, metric)
    axes = varied(experiment.cells) or ["chunk_tokens"]
    key = f"experiment-table-{experiment.key}-{metric}-{len(rows)}"

    def take() -> None:
        if picked := st.session_state[key].selection.rows:
            pick(experiment, order[picked[0]])

    number = st.column_config.NumberColumn
    st.dataframe(
        [table_row(rows[place], judged[place], metric, axes) for place in order],
        hide_index=True,
        height="content" if len(rows) < 10 else TABLE_HEIGHT,
        column_config={
            "Value": st.column_config.ProgressColumn(
                METRICS[metric].label,
                width="small",
                pinned=True,
                format="%.3f",
                min_value=0.0,
                max_value=1.0,
                help=METRICS[metric].help,
            ),
            "95 % interval": st.column_config.TextColumn(
                help="The range of the value with other questions of this kind: the bootstrap over questions."
            ),
            "Against the app's": st.column_config.TextColumn(
                help="Better or worse, where a paired randomisation test over the questions has p below "
                f"{ALPHA}, corrected for the number of rows; else “not sure”. Metrics “@k” are not "
                "compared across k."
            ),
            "Difference": st.column_config.TextColumn(
                width="medium",
                help="To the app's settings, with its 95 % interval over the questions. The interval is for "
                "this row alone, so it may exclude 0 where the verdict, which is corrected for the number of "
                "rows, is “not sure”.",
            ),
            "p": st.column_config.TextColumn(
                help="Of the paired randomisation test, corrected for the number of rows."
            ),
            "Seconds": number(format="%.2f", help=COSTS["Seconds"][3]),
        }
        | {each.label: number(format="%.3f", help=each.help) for each in METRICS.values()},
        key=key,
        on_select=take,
        selection_mode="single-row",
        alt="Every setting with its quality, interval and verdict against the app's settings",
    )
