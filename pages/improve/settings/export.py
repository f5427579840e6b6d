"""The downloads of an experiment: numbers, a report, its questions, and the lines that measure it again."""

import json
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import streamlit as st

from engine.evaluation.metrics import METRICS
from engine.evaluation.question_files import question_fields, to_jsonl
from engine.evaluation.sweep_store import to_csv, to_json
from engine.settings import SETTINGS, SWEPT, Configuration
from pages.improve.settings.charts import COSTS, cost_of, heat_axes, heat_of
from pages.improve.settings.code import QUESTIONS, command_line, python_lines
from pages.improve.settings.conclusion import conclude, sentence
from pages.improve.settings.running import models_named
from pages.improve.settings.runs import Experiment
from pages.improve.settings.verdicts import Verdict, best_first, summary, table_row
from ui.configurations import configuration_words
from ui.export_as_code import code_button, export_as_code
from ui.report import Html, element, facts, figure_html, page_html, paragraph, table
from ui.text import Strong

METHOD = (
    "Intervals are 95 %, by drawing the questions again (bootstrap). A cell is better or worse where a "
    "paired randomisation test has p below 0.05, corrected for the number of cells (Westfall and Young's "
    "step-down max-T)."
)


def show_export(experiment: Experiment, judged: Sequence[Verdict], metric: str, cell: Configuration) -> None:
    """Draw the downloads of an experiment; one of its cells can be taken to another library."""
    st.header("Take it away")
    rows, stem = experiment.rows, "experiment-" + experiment.time.replace(":", "").replace("T", "-")
    files = {
        "CSV": (lambda: to_csv(rows), f"{stem}.csv", "text/csv", "A line for every cell."),
        "JSON": (
            lambda: as_json(experiment),
            f"{stem}.json",
            "application/json",
            "Every cell with its intervals, and its values for every question.",
        ),
        "Report (HTML)": (
            lambda: report(experiment, judged, metric),
            f"{stem}.html",
            "text/html",
            "One page that needs no network: settings, table, figures, versions.",
        ),
        "Questions": (
            lambda: to_jsonl(experiment.questions),
            QUESTIONS,
            "application/jsonl",
            "The questions, in the format that the command below reads.",
        ),
    }
    with st.container(horizontal=True):
        for name, (content, file_name, mime, words) in files.items():
            st.download_button(
                name,
                content,
                file_name,
                mime,
                key=f"experiment-save-{name}",
                help=words,
                icon=":material/download:",
                on_click="ignore",
            )
    with st.container(horizontal=True, vertical_alignment="center"):
        if code_button("experiment-export-as-code"):
            [model] = models_named([cell.model]).values()
            export_as_code(cell, model, parent_tokens=0)
        st.caption("Of the row that is selected, or else recommended.")
    with st.expander("Lines that measure it again", icon=":material/terminal:"):
        st.caption("On the command line, in the folder of the app:")
        st.code(command_line(experiment), language="bash", wrap_lines=True)
        st.caption("In Python:")
        st.code(python_lines(experiment), language="python", wrap_lines=True)


def as_json(experiment: Experiment) -> str:
    """Return every row, and its values for every question, as JSON."""
    rows, questions = experiment.rows, [question_fields(question) for question in experiment.questions]
    values = [dict(row.values) for row in rows]
    return json.dumps({**to_json(rows), "questions": questions, "values": values}, ensure_ascii=False)


def report(experiment: Experiment, judged: Sequence[Verdict], metric: str) -> str:
    """Return an experiment as one HTML page that needs nothing else; all text in it is escaped."""
    about = {
        "Began": experiment.time.replace("T", " "),
        "Questions": f"{len(experiment.questions):,}",
        "Cells": f"{len(experiment.rows):,} measured of {len(experiment.cells):,}",
        "Documents": ", ".join(experiment.documents),
        "SHA-256 of the documents": experiment.corpus,
        "Baseline (the app's settings then)": configuration_words(experiment.cells[0]),
        "Metric": f"{METRICS[metric].label}: {METRICS[metric].help}",
    }
    rows = experiment.rows
    learnt = sentence(rows, judged, metric, conclude(rows, judged, metric), in_use=False)
    return page_html(
        "Experiment",
        experiment.name,
        [
            paragraph(Strong(learnt)),
            paragraph(summary(judged)),
            facts(about),
            *report_figures(experiment, metric),
            element("h2", "Every cell"),
            table(report_rows(experiment, judged, metric), "Every cell, the best first"),
            paragraph(METHOD, faint=True),
            element("h2", "To measure it again"),
            *(element("pre", escape(code(experiment))) for code in (command_line, python_lines)),
        ],
    )


def report_figures(experiment: Experiment, metric: str) -> Iterator[Html]:
    """The figures of a report under their titles."""
    axes = heat_axes(experiment)
    if len(axes) > 1:
        down, across = (SETTINGS[axis].label for axis in axes[:2])
        title = f"{METRICS[metric].label} by {down} and {across}, the best of all others"
        yield element("h2", escape(title))
        yield figure_html(heat_of(experiment, metric, axes[0], axes[1]))
    for cost in COSTS:
        yield element("h2", escape(f"{METRICS[metric].label} against {COSTS[cost][1]}"))
        yield figure_html(cost_of(experiment, metric, cost))


def report_rows(experiment: Experiment, judged: Sequence[Verdict], metric: str) -> list[dict[str, Any]]:
    """Return the rows of the table of cells, the best first."""
    rows = [
        table_row(experiment.rows[place], judged[place], metric, SWEPT)
        for place in best_first(experiment.rows, metric)
    ]
    label = METRICS[metric].label
    return [{label if name == "Value" else name: value for name, value in row.items()} for row in rows]
