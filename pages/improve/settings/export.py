"""The downloads of an experiment: numbers, a report, its questions, and the lines that measure it again."""

import json
import platform
from collections.abc import Sequence
from html import escape
from importlib.metadata import version

import plotly.graph_objects as go
import streamlit as st

from engine.evaluation.metrics import METRICS
from engine.evaluation.question_files import question_fields, to_jsonl
from engine.evaluation.sweep_store import to_csv, to_json
from pages.improve.settings.charts import COSTS, cost_of, heat_axes, heat_of
from pages.improve.settings.code import QUESTIONS, command_line, python_lines
from pages.improve.settings.conclusion import conclude, sentence
from pages.improve.settings.runs import Experiment
from pages.improve.settings.verdicts import Verdict, best_first, summary, table_row
from ui.cells import AXES, cell_words
from ui.colours import REPORT_CODE, REPORT_LINE, REPORT_TEXT
from ui.export import standalone

PACKAGES = ("numpy", "faiss-cpu", "bm25s", "numba")
STYLE = f"""
:root {{ color-scheme: light }}
body {{ font: 16px/1.5 system-ui, sans-serif; color: {REPORT_TEXT} }}
body {{ max-width: 1100px; margin: 2rem auto; padding: 0 1rem }}
.wide {{ overflow-x: auto }}
table {{ border-collapse: collapse; font-size: 14px }}
th, td {{ border-bottom: 1px solid {REPORT_LINE}; padding: 4px 10px; text-align: left; white-space: nowrap }}
dt {{ font-weight: 600 }} dd {{ margin: 0 0 .5rem 0; overflow-wrap: anywhere }}
pre {{ background: {REPORT_CODE}; padding: 1rem; overflow-x: auto }}
"""


def show_export(experiment: Experiment, judged: Sequence[Verdict], metric: str) -> None:
    """Draw the downloads of an experiment."""
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
    facts = {
        "Began": experiment.time.replace("T", " "),
        "Documents": ", ".join(experiment.documents),
        "SHA-256 of the documents": experiment.corpus,
        "Questions": f"{len(experiment.questions):,}",
        "Cells": f"{len(experiment.rows):,} measured of {len(experiment.cells):,}",
        "Baseline (the app's settings then)": cell_words(experiment.cells[0]),
        "Metric": f"{METRICS[metric].label}: {METRICS[metric].help}",
        "Versions": ", ".join([f"Python {platform.python_version()}", *map(installed, PACKAGES)]),
    }
    about = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items())
    name, rows = escape(experiment.name), experiment.rows
    learnt = sentence(rows, judged, metric, conclude(rows, judged, metric), in_use=False)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{name}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>'
        f"<h1>{name}</h1><p><strong>{escape(learnt)}</strong></p><p>{escape(summary(judged))}</p>"
        f"<dl>{about}</dl>"
        f"<h2>Figures</h2>{figures_html(report_figures(experiment, metric))}"
        f"<h2>Every cell</h2>{table_html(experiment, judged, metric)}"
        "<p>Intervals are 95 %, by drawing the questions again (bootstrap). A cell is better or worse where "
        "a paired randomisation test has p below 0.05, corrected for the number of cells "
        "(Westfall and Young's step-down max-T).</p>"
        f"<h2>To measure it again</h2><pre>{escape(command_line(experiment))}</pre>"
        f"<pre>{escape(python_lines(experiment))}</pre></body></html>"
    )


def installed(package: str) -> str:
    """``"numpy 2.2.0"``."""
    return f"{package} {version(package)}"


def report_figures(experiment: Experiment, metric: str) -> dict[str, go.Figure]:
    """Return the figures of a report by their titles."""
    axes = heat_axes(experiment)
    figures = {}
    if len(axes) > 1:
        down, across = (AXES[axis].label for axis in axes[:2])
        title = f"{METRICS[metric].label} by {down} and {across}, the best of all others"
        figures[title] = heat_of(experiment, metric, axes[0], axes[1])
    for cost in COSTS:
        figures[f"{METRICS[metric].label} against {COSTS[cost][1]}"] = cost_of(experiment, metric, cost)
    return figures


def figures_html(figures: dict[str, go.Figure]) -> str:
    """Return figures as HTML, with Plotly's script once before them."""
    return "".join(
        f"<h3>{escape(title)}</h3>{standalone(figure).to_html(full_html=False, include_plotlyjs=number == 0)}"
        for number, (title, figure) in enumerate(figures.items())
    )


def table_html(experiment: Experiment, judged: Sequence[Verdict], metric: str) -> str:
    """Return the cells as an HTML table, the best first."""
    rows = [
        table_row(experiment.rows[place], judged[place], metric, tuple(AXES))
        for place in best_first(experiment.rows, metric)
    ]
    head = [METRICS[metric].label if name == "Value" else name for name in rows[0]]
    lines = ["".join(f"<th>{escape(name)}</th>" for name in head)]
    for row in rows:
        fields = [f"{field:.3f}" if isinstance(field, float) else str(field) for field in row.values()]
        lines.append("".join(f"<td>{escape(field)}</td>" for field in fields))
    return f'<div class="wide"><table>{"".join(f"<tr>{line}</tr>" for line in lines)}</table></div>'
