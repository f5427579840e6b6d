"""The tab “Answers” of the best settings, on a document and questions of one's own."""

import csv
from dataclasses import replace
from io import StringIO

import numpy as np
import pandas as pd

from engine.documents.document import Document
from engine.evaluation.answers import (
    AnswerQuestion,
    AnswerRow,
    ShortAnswer,
    coverage_curve,
    load_answer_questions,
    parse_answer_questions,
    reliability,
)
from engine.evaluation.bootstrap import Interval
from engine.evaluation.sample import about_documents
from engine.generation.settings import DEFAULT_ANSWER
from engine.storage.workspace import Workspace, export_workspace, import_workspace
from pages.improve.settings.answer_results import (
    FILTERS,
    SHOWN,
    at_threshold,
    coverage_figure,
    delta_colour,
    difference,
    outcome,
    reliability_figure,
    table_line,
)
from pages.improve.settings.answers import (
    AS_JSON,
    MOST_RUNS,
    AnswerRun,
    differing,
    with_present_names,
)
from tests.apps import app_of, app_page, by_label, own_documents, said, tables
from ui.questions.kept import BUNDLED
from ui.tables import rows_csv
from ui.text import escape_markdown

EVIL = "<script>alert(1)</script> **bold**"
TEXT = (
    "# The mill\n\nThe mill of Arden was built in 1782 by the carpenter Ruth Alder. "
    "Its wheel is driven by the river Senn, which never freezes. "
    "Flour was sold at the market every Tuesday, for two pennies a pound.\n"
)
CSV = f"""question,answer,document
Who built the mill of Arden?,Ruth Alder|Alder,mill.md
Which river drives the wheel of the mill? {EVIL},the river Senn,mill.md
Who composed the opera about the mill?,,mill.md
What is sold at the fair?,cheese,fair.md
"""


def page(content=CSV, name="mill.csv", **state):
    """The tab, with the document alone, after the upload of a file, and without the model's words."""
    loaded = {
        **own_documents(Document("mill.md", TEXT)),
        "experiments-tab": "Answers",
        "answers-write": False,
    }
    app = app_page("improve/settings", **loaded | state).run()
    if content:
        uploader = by_label(app.file_uploader, "Labelled questions")
        app = uploader.upload(name, content.encode(), "text/csv").run()
    return app


def asked(app):
    """The tab after all questions were asked."""
    app = app.button(key="answers-ask").click().run()
    if "jobs" in app.session_state and "answers" in app.session_state["jobs"]:
        app.session_state["jobs"]["answers"].result()
        app = app.run()
    return app


def test_names_of_documents_are_taken_or_mapped_in_one_click(encoder):
    app = page(CSV.replace("mill.md", "Mill.pdf"))
    assert escape_markdown("“Mill” as mill.md") in said(app)
    assert "2 questions with a known answer, 1 that the documents do not answer" in said(app)
    at = TEXT.index("Ruth Alder")
    placed = f"question,answer,document,start,end\nWho built it?,Alder,the_mill,{at},{at + 10}\n"
    app = page(placed)
    assert "No question of this set is about the chosen documents" in said(app)
    assert app.selectbox(key="answers-meant-the_mill").value == "mill.md"
    assert "In 1 of 1 question the quoted text stands" in said(app)
    app = app.button(key="answers-meant-use").click().run()
    assert "1 question with a known answer" in said(app)
    assert "not loaded" not in said(app)


def questions_in(app):
    return tables(app)[-1]["Question"].tolist()


def question(number, answer="yes"):
    return AnswerQuestion(f"Question {number}?", ShortAnswer.parse(answer))


def row(number, status="answered", confidence=0.7, quote="yes", answer="yes", **changed):
    asked = question(number, answer)
    right = status != "refused" and asked.answer.is_in(quote)
    found = AnswerRow(asked, status, confidence, (quote,), "", True, right, 0.5, 0.1, 0.1)
    return replace(found, **changed)


def run(*rows, time="2026-01-02T03:04:05", **settings):
    return AnswerRun(time, BUNDLED, {"Passages (k)": "4"} | settings, DEFAULT_ANSWER, len(rows), rows)


def test_questions_are_asked_scored_and_filtered(encoder):
    app = page()
    assert "2 questions with a known answer, 1 that the documents do not answer" in said(app)
    assert "1 about other documents left out" in said(app)
    assert "Question 4 is about fair" in said(app).replace("\\", "")
    app = asked(app)
    assert not app.error
    shown = {metric.label: metric.value for metric in app.metric}
    assert len(shown) == len(SHOWN)
    assert (shown["Found"], shown["Right"]) == ("100 %", "100 %")
    assert sum(caption.value.startswith("95 %: ") for caption in app.caption) == len(shown)
    assert len(questions_in(app)) == 3
    app = by_label(app.selectbox, "Read in full").set_value(1).run()
    assert f"**{escape_markdown(questions_in(app)[1])}**" in said(app)
    refused = shown["Refused rightly"] == "100 %"
    app.pills(key="answers-filter").set_value("Unanswerable, not refused").run()
    if refused:
        assert "There is no such question" in said(app)
    else:
        assert questions_in(app) == ["Who composed the opera about the mill?"]


def test_a_second_run_is_compared_with_the_first(encoder):
    app = asked(page())
    assert not any(metric.delta for metric in app.metric)
    app.slider(key="k").set_value(1).run()
    app = asked(app)
    assert all(metric.delta.endswith(" points") for metric in app.metric)
    assert escape_markdown("Passages (k) 4") in said(app)
    [table] = [each for each in tables(app) if "Run" in each]
    assert table["Passages (k)"].tolist() == [1, 4]
    assert "Pooling" not in table
    first, last = app.session_state["workspace"].runs
    damaged = replace(first, content=first.content | {"run": {"rows": "none"}})
    opened = import_workspace("mine", export_workspace(Workspace(runs=(first, damaged, last))))
    again = page(content=None, workspace=opened)
    [again_table] = [each for each in tables(again) if "Run" in each]
    pd.testing.assert_frame_equal(again_table, table)


def test_the_last_runs_are_kept():
    def keep_all(runs):
        import streamlit as st

        from pages.improve.settings.answers import answer_runs, keep

        for run in runs:
            keep(run)
        st.session_state["kept"] = answer_runs()

    runs = [replace(run(row(1)), time=f"2026-01-01T00:00:0{second}") for second in range(MOST_RUNS + 1)]
    app = app_of(keep_all, args=(runs,)).run()
    assert app.session_state["kept"] == runs[:0:-1]


def test_a_run_of_an_earlier_version_keeps_its_thresholds():
    saved = AS_JSON.dump_python(run(row(1)), mode="json")
    now = {"answer_threshold": 0.8, "refuse_threshold": 0.3}
    before = {"answer_at": 0.8, "refuse_below": 0.3}
    answers = {name: value for name, value in saved["answers"].items() if name not in now} | before
    answers["search"] = {**answers["search"], "expand": False}
    former = {**saved, "answers": answers, "settings": {**saved["settings"], "Question expanded": "no"}}
    read = AS_JSON.validate_python(with_present_names(former))
    assert read == replace(run(row(1)), answers=replace(run(row(1)).answers, **now))


def test_a_file_that_cannot_be_read_is_one_clear_line(encoder):
    app = page("asked,answer\n1,2\n")
    [error] = app.error
    assert "has no column question" in error.value.replace("\\", "")
    assert "No question of this set is about the chosen documents" in said(app)
    assert not [each for each in app.button if each.key == "answers-ask"]


def test_bundled_questions_are_those_about_the_chosen_documents():
    every = load_answer_questions()
    own = about_documents(every, [Document("state_of_the_union.md", "")])
    assert {each.document for each in own} == {"state_of_the_union.md"}
    assert {bool(each.answer) for each in own} == {True, False}
    assert about_documents([question(1)], [Document("mill.md", "")]) == [question(1)]  # it names no document


def test_budgets_that_exceed_the_model_are_told(encoder):
    app = page(max_prompt_tokens=100_000, **{"answers-write": True})
    app = asked(app)
    assert "exceed" in app.error[0].value
    assert not app.metric


def test_every_row_has_an_outcome_and_its_filters():
    rows = [
        row(1),
        row(2, quote="no"),
        row(3, "unsure", quote="no"),
        row(4, "refused"),
        row(5, "refused", answer=""),
        row(6, answer=""),
    ]
    expected = ["right", "wrong", "wrong", "refused wrongly", "refused rightly", "wrong"]
    assert [outcome(each) for each in rows] == expected
    chosen = {name: [n for n, each in enumerate(rows, 1) if holds(each)] for name, holds in FILTERS.items()}
    assert list(chosen.values()) == [[1, 2, 3, 4, 5, 6], [2, 6], [2, 3, 6], [4], [6]]


def test_the_csv_holds_what_the_table_shows():
    [name] = parse_answer_questions("a.csv", b'question,answer\n"A, ""b""?",UAW & IBEW | union\n')
    lines = [table_line(replace(row(1), question=name, quotes=("one", "two")), write=True)]
    [read] = csv.DictReader(StringIO(rows_csv(lines)))
    assert read["Question"] == 'A, "b"?'
    assert read["Known answer"] == "UAW & IBEW | union"
    assert read["Quoted"] == "one\ntwo"
    assert "The model's words" not in table_line(row(1), write=False)


def test_differences_are_paired_and_coloured_only_beyond_chance():
    before = [row(n, quote="no") for n in range(20)]
    after = [row(n) for n in range(20)]
    change = difference("right", before, after)
    assert (change.estimate, change.low) == (1, 1)
    assert delta_colour(change, True) == "normal"
    assert delta_colour(change, False) == "inverse"
    assert delta_colour(Interval(0.1, -0.1, 0.3), True) == "off"


def test_runs_are_compared_on_the_questions_of_both():
    whole, part = run(row(1), row(2), row(3)), run(row(3), row(1), Retriever="BM25")
    assert whole.rows_of([each.question for each in part.rows]) == [row(3), row(1)]
    assert part.rows_of([each.question for each in whole.rows]) == []
    assert differing([whole, part]) == ["Retriever"]
    assert "2 of 3" not in part.title


def test_figures_hold_every_bin_and_mark_the_present_threshold():
    rows = [row(n, confidence=n / 10, quote="yes" if n > 4 else "no") for n in range(10)]
    bins, curve = reliability(rows), coverage_curve(rows)
    diagonal, measured = reliability_figure(bins).data
    assert list(diagonal.x) == list(diagonal.y) == [0, 1]
    assert sum(measured.customdata) == 10
    line, now = coverage_figure(curve, 0.6).data
    assert np.allclose(line.x, np.arange(1, 11) / 10)
    assert (now.x[0], now.y[0]) == (0.4, 1.0)
    assert at_threshold(curve, 0.95) is None
    assert len(coverage_figure(curve, 0.95).data) == 1
