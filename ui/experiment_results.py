"""What an experiment found: a table with intervals and verdicts, figures, and what a cell wins and loses."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from engine.evaluation.sweep_row import SweepRow
from ui.answer import escape_markdown
from ui.experiment_cell import show_cell
from ui.experiment_charts import COSTS, pick, show_costs, show_heat
from ui.experiment_export import show_export
from ui.experiment_files import known_experiments
from ui.experiment_running import running, show_resume
from ui.experiment_runs import Experiment
from ui.experiment_verdicts import (
    ACROSS_K,
    ALPHA,
    MEASURES,
    OTHER_K,
    Verdict,
    p_words,
    said,
    summary,
    verdicts,
)
from ui.experiment_words import AXES, cell_words, p_cell, readable_bytes, value_words, varied

REDRAW_S = 3.0
DRAWN_PER_S = 200  # cells: what runs is drawn the less often the larger it is
TABLE_HEIGHT = 460


def show_results() -> None:
    """Draw the results of the run that is chosen; while it runs, those so far, again and again."""
    now = running()
    if now is None:
        found = known_experiments()
    else:
        found = {now.begun.key: now.experiment} | known_experiments(but=now.begun.key)
    if not found:
        st.info("Nothing was measured yet. Run the grid on the tab “Grid”: its first rows come in seconds.")
        return
    key = st.selectbox(
        "Run",
        list(found),
        format_func=lambda key: f"{found[key].name}, {found[key].time.replace('T', ' ')}",
        key="experiment-shown",
        persist_state="session",
        help="What was measured, the newest first; also what came with an opened workspace.",
    )
    chosen = found[key]
    if now is not None and key == now.begun.key:
        st.fragment(show_growing, run_every=max(REDRAW_S, len(chosen.cells) / DRAWN_PER_S))()
    elif chosen.rows:
        show_experiment(chosen, is_growing=False)


def show_growing() -> None:
    """Draw the rows so far of what runs."""
    now = st.session_state.get("experiment")
    if now is None or not now.rows:
        st.info("The first rows come as soon as the documents are cut and embedded.")
    else:
        show_experiment(now.experiment, is_growing=True)


def show_experiment(experiment: Experiment, is_growing: bool) -> None:
    """Draw all that was measured of an experiment."""
    rows = experiment.rows
    measure = st.segmented_control(
        "Measure",
        list(MEASURES),
        format_func=lambda name: MEASURES[name][0],
        default="mrr",
        required=True,
        key="experiment-measure",
        persist_state="session",
        help="\n".join(f"- **{name}**: {words}" for name, words in MEASURES.values()),
    )
    judged = judged_of(experiment.key, len(rows), str(measure), rows)
    show_summary(experiment, judged, str(measure))
    show_table(experiment, judged, str(measure))
    place = st.session_state.get("experiment-cell", {}).get(experiment.key)
    if place is not None and place < len(rows):
        show_cell(experiment, place, judged[place], str(measure))
    else:
        st.caption("Choose a row, or click a figure below, to see the questions it wins and loses.")
    if len(rows) > 1:
        left, right = st.columns(2)
        with left:
            show_heat(experiment, str(measure))
        with right:
            show_costs(experiment, str(measure))
    if not is_growing:
        show_export(experiment, judged, str(measure))


@st.cache_resource(max_entries=8, show_spinner="Telling differences from chance…", scope="session")
def judged_of(key: str, n_rows: int, measure: str, _rows: Sequence[SweepRow]) -> list[Verdict]:
    """Judge the rows of an experiment, once for a measure."""
    return verdicts(_rows, measure)


def show_summary(experiment: Experiment, judged: Sequence[Verdict], measure: str) -> None:
    """Say which settings are best, and whether that is more than chance."""
    rows, label = experiment.rows, MEASURES[measure][0]
    best = max(range(len(rows)), key=lambda place: rows[place].metrics[measure])
    st.markdown(f"**{escape_markdown(summary(judged))}**")
    name = escape_markdown(cell_words(rows[best].cell, varied(experiment.cells)))
    value, first = rows[best].metrics[measure], rows[0].metrics[measure]
    if best == 0:
        st.write(f"Highest {label}: {value:.3f}, by the app's own settings.")
    elif judged[best].word == OTHER_K:
        st.write(f"Highest {label}: {value:.3f}, by {name}.")
    else:
        st.write(
            f"Highest {label}: {value:.3f}, by {name}; the app's settings have {first:.3f}; the difference "
            f"is {said(judged[best].comparison)}, {p_words(judged[best].p_value)} after the correction."
        )
    if any(one.word == OTHER_K for one in judged):
        st.caption(ACROSS_K)
    if not measure.startswith("span") and "chunk_tokens" in varied(row.cell for row in rows):
        st.caption(
            "Sizes differ: a larger chunk holds more, so a right one is hit more easily, whatever the search "
            "is worth, and fills more of a prompt. Span IoU@k counts the text itself, found and needed."
        )
    if not experiment.is_whole:
        show_resume(experiment)


def table_row(row: SweepRow, verdict: Verdict, measure: str, axes: Sequence[str]) -> dict[str, Any]:
    """Return what the table says of a row."""
    low, high = row.intervals[measure]
    return (
        {"Value": row.metrics[measure]}
        | {AXES[axis]: value_words(row.cell, axis) for axis in axes}
        | {
            "95 % interval": f"{low:.3f} – {high:.3f}",
            "Against the app's": verdict.word,
            "Difference": "" if verdict.word == "baseline" else said(verdict.comparison),
            "p": p_cell(verdict),
        }
        | {
            MEASURES[name][0]: row.metrics[name]
            for name in ("mrr", "hit_rate@k", "ndcg@k")
            if name != measure
        }
        | {"Chunks": row.n_chunks, "Index": readable_bytes(row.index_bytes), "Seconds": row.seconds}
    )


def show_table(experiment: Experiment, judged: Sequence[Verdict], measure: str) -> None:
    """Draw a line for every cell, the best first, of which one may be chosen."""
    rows = experiment.rows
    order = sorted(range(len(rows)), key=lambda place: -rows[place].metrics[measure])
    axes = varied(experiment.cells) or ["chunk_tokens"]
    key = f"experiment-table-{experiment.key}-{measure}-{len(rows)}"

    def take() -> None:
        if picked := st.session_state[key].selection.rows:
            pick(experiment, order[picked[0]])

    number = st.column_config.NumberColumn
    st.dataframe(
        [table_row(rows[place], judged[place], measure, axes) for place in order],
        hide_index=True,
        height="content" if len(rows) < 10 else TABLE_HEIGHT,
        column_config={
            "Value": st.column_config.ProgressColumn(
                MEASURES[measure][0],
                width="small",
                pinned=True,
                format="%.3f",
                min_value=0.0,
                max_value=1.0,
                help=MEASURES[measure][1],
            ),
            "95 % interval": st.column_config.TextColumn(
                help="Where the value lies with other questions of this kind: the bootstrap over questions."
            ),
            "Against the app's": st.column_config.TextColumn(
                help="Better or worse, where a paired randomisation test over the questions has p below "
                f"{ALPHA} corrected for there being so many rows; else “not sure”. Measures “@k” are not "
                "compared across k."
            ),
            "Difference": st.column_config.TextColumn(
                width="medium",
                help="To the app's settings, with its 95 % interval over the questions. The interval is of "
                "this row alone, so it may leave 0 out where the verdict, which knows how many rows there "
                "are, is “not sure”.",
            ),
            "p": st.column_config.TextColumn(
                help="Of the paired randomisation test, corrected for all rows."
            ),
            "Seconds": number(format="%.2f", help=COSTS["Seconds"][3]),
        }
        | {name: number(format="%.3f", help=words) for name, words in MEASURES.values()},
        key=key,
        on_select=take,
        selection_mode="single-row",
        alt="Every setting with its quality, interval and verdict against the app's settings",
    )
