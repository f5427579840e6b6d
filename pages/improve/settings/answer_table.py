"""Every asked question with its outcome and what was shown, by outcome, and as CSV."""

from collections.abc import Callable
from html import escape
from typing import Any

import streamlit as st

from engine.evaluation.answers import AnswerRow, ShortAnswer
from pages.improve.settings.answer_runs import AnswerRun
from ui.tables import show_csv
from ui.text import escape_markdown, show_text

TABLE_HEIGHT = 420
FILTERS: dict[str, Callable[[AnswerRow], bool]] = {
    "All": lambda row: True,
    "Wrong and confident": lambda row: row.wrong_confident,
    "Wrong": lambda row: outcome(row) == "wrong",
    "Refused wrongly": lambda row: outcome(row) == "refused wrongly",
    "Unanswerable, not refused": lambda row: not row.question.answer and row.status != "refused",
}


def show_answers(run: AnswerRun) -> None:
    """Draw every question, those of a chosen outcome, and the one that is selected."""
    st.header("Question by question")
    groups = {name: [row for row in run.rows if holds(row)] for name, holds in FILTERS.items()}
    name = st.pills(
        "Show",
        list(groups),
        format_func=lambda name: f"{name} ({len(groups[name]):,})",
        default="All",
        required=True,
        key="answers-filter",
        persist_state="session",
    )
    rows = groups[str(name)]
    if not rows:
        st.info("There is no such question in this run.")
        return
    lines = [table_line(row, run.answers.write) for row in rows]
    table, box = f"answers-table-{run.time}-{name}", f"answers-row-{run.time}-{name}"

    def take() -> None:
        picked = st.session_state[table].selection.rows
        st.session_state[box] = picked[0] if picked else None

    st.dataframe(
        lines,
        hide_index=True,
        height="content" if len(rows) < 11 else TABLE_HEIGHT,
        key=table,
        on_select=take,
        selection_mode="single-row",
        column_config={
            "Question": st.column_config.TextColumn(width="medium"),
            "Known answer": st.column_config.TextColumn(
                width="medium", help="As in the file: | divides spellings, & parts."
            ),
            "Sure (%)": st.column_config.NumberColumn(format="%.0f"),
            "Quoted": st.column_config.TextColumn(width="large"),
            "The model's words": st.column_config.TextColumn(width="large"),
            "Seconds": st.column_config.NumberColumn(format="%.1f"),
        },
        alt=f"{len(rows)} questions with their outcomes, and what was shown for each",
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
        return "refused wrongly" if row.question.answer else "refused rightly"
    return "right" if row.right else "wrong"


def table_line(row: AnswerRow, write: bool) -> dict[str, Any]:
    """Return a row as a line of the table; the model's words only if it wrote."""
    line = {
        "Question": row.question.text,
        "Outcome": outcome(row),
        "Status": row.status,
        "Sure (%)": round(100 * row.confidence, 1),
        "Known answer": answer_text(row.question.answer),
        "Quoted": "\n".join(row.quotes),
    }
    if write:
        line["The model's words"] = row.text
    return line | {
        "Found": "yes" if row.found else "no",
        "Document": row.question.document,
        "Seconds": row.seconds,
    }


def answer_text(answer: ShortAnswer) -> str:
    """Return a short answer as it is written in a file."""
    return " & ".join(" | ".join(part) for part in answer.parts)


def show_row(row: AnswerRow) -> None:
    """Draw a question with its known answer and all that was shown for it."""
    parts = {
        "Known answer": answer_text(row.question.answer) or "none: it is not in the documents",
        f"Quoted ({row.status}, {row.confidence:.0%} sure)": "\n".join(row.quotes) or "nothing",
        "The model's words": row.text or "none",
    }
    with st.container(border=True, key="answers-row"):
        st.markdown(f"**{escape_markdown(row.question.text)}**")
        for label, text in parts.items():
            st.caption(label)
            show_text(escape(text))
