"""Answers among the results of the best settings, on a document and questions of one's own."""

import csv
from dataclasses import replace
from io import StringIO
from threading import Event
from time import sleep

import numpy as np

from engine.documents.document import Document
from engine.evaluation import answers
from engine.storage.workspace import Workspace, export_workspace, import_workspace
from pages.improve.settings import answer_results, experiments
from tests.apps import app_page, by_label, own_documents, said, tables
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


GRID = {f"grid-{key}": [value] for key, value in {"chunk_tokens": 64, "pooling": "mean"}.items()}


def page(content=CSV, name="mill.csv", **state):
    """The grid, with the document alone, after the upload of a file."""
    loaded = {**own_documents(Document("mill.md", TEXT)), **GRID, "grid-retriever": ["dense"]}
    app = app_page("improve/settings", **loaded | state).run()
    if content:
        uploader = by_label(app.file_uploader, "Labelled questions")
        app = uploader.upload(name, content.encode(), "text/csv").run()
    return app


def measured(app):
    """The results after the grid was measured."""
    app = app.button(key="grid-run").click().run()
    if "jobs" in app.session_state and "experiment" in app.session_state["jobs"]:
        app.session_state["jobs"]["experiment"].result()
        app = app.run()
    return app


def test_names_of_documents_are_taken_or_mapped_in_one_click(encoder):
    app = page(CSV.replace("mill.md", "Mill.pdf"))
    assert escape_markdown("“Mill” as mill.md") in said(app)
    assert "2 questions about these documents" in said(app)
    at = TEXT.index("Ruth Alder")
    app = page(f"question,answer,document,start,end\nWho built it?,Alder,the_mill,{at},{at + 10}\n")
    assert app.selectbox(key="questions-meant-the_mill").value == "mill.md"
    assert "In 1 of 1 question the quoted text stands" in said(app)
    app = app.button(key="questions-meant-use").click().run()
    assert "1 question about these documents" in said(app)
    assert "not loaded" not in said(app)


def questions_in(app):
    return next(table for table in tables(app) if "Outcome" in table)["Question"].tolist()


def question(number, answer="yes"):
    return answers.AnswerQuestion(f"Question {number}?", answers.ShortAnswer.parse(answer))


def row(number, status="answered", confidence=0.7, quote="yes", answer="yes", **changed):
    asked = question(number, answer)
    right = status != "refused" and asked.answer.is_in(quote)
    found = answers.AnswerRow(asked, status, confidence, (quote,), "", True, right, 0.5, 0.1, 0.1)
    return replace(found, **changed)


def test_questions_are_answered_in_every_configuration_scored_and_filtered(encoder):
    app = page()
    assert "2 questions about these documents" in said(app)
    assert app.number_input(key="grid-answered").value == 3
    app = measured(app)
    assert not app.error
    shown = {metric.label: metric.value for metric in app.metric}
    assert set(shown) == {
        "Right",
        "Found",
        "Answered",
        "Wrong and confident",
        "Refused rightly",
        "Refused wrongly",
    }
    assert len(shown) == len(answer_results.SHOWN)
    assert (shown["Found"], shown["Right"]) == ("100 %", "100 %")
    assert sum(caption.value.startswith("95 %: ") for caption in app.caption) == len(shown)
    assert "is found for 2 and the answer is right for 2\\: nothing limits them" in said(app)
    [cells] = [table for table in tables(app) if "Answered rightly" in table]
    assert cells["Answered rightly"].tolist() == [1, 1]
    assert {"Search (ms)", "Index", "Seconds", "MRR", "Hit@k"} <= set(cells)
    assert len(questions_in(app)) == 3
    app = by_label(app.selectbox, "Read in full").set_value(1).run()
    assert f"**{escape_markdown(questions_in(app)[1])}**" in said(app)
    app.pills(key="answers-filter").set_value("Refused wrongly").run()
    assert "There is no such question" in said(app)
    workspace = app.session_state["workspace"]
    opened = import_workspace("mine", export_workspace(Workspace(runs=workspace.runs)))
    again = page(content=None, workspace=opened, **{"experiments-tab": "Results"})
    assert len(questions_in(again)) == 3


def test_a_run_is_stopped_and_resumed(encoder, monkeypatch):
    go_on, whole = Event(), experiments.sweep

    def until_stopped(inputs, cache, report, is_stopped, done, parts):
        for row in whole(inputs, cache, report, is_stopped, done, parts):
            yield row
            while not (go_on.is_set() or is_stopped()):
                sleep(0.01)

    monkeypatch.setattr(experiments, "sweep", until_stopped)
    app = page(**{"grid-answered": 1}).button(key="grid-run").click().run()
    job = app.session_state["jobs"]["experiment"]
    while not (job.rows or job.done):
        job.wait("", seconds=0.05)
    job.stop()
    job.result()
    app.run()
    n = len(job.request.configurations)
    assert f"{len(job.rows)} of {n} configurations are measured" in said(app)
    go_on.set()
    app.button(key="experiment-resume").click().run()
    app.session_state["jobs"]["experiment"].result()
    assert f"of {n} configurations are measured" not in said(app.run())


def test_budgets_that_exceed_the_model_are_told(encoder):
    app = measured(page(max_prompt_tokens=100_000, **{"grid-write": True}))
    assert "exceed" in app.error[0].value


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
    assert [answer_results.outcome(each) for each in rows] == expected
    chosen = {
        name: [n for n, each in enumerate(rows, 1) if holds(each)]
        for name, holds in answer_results.FILTERS.items()
    }
    assert list(chosen.values()) == [[1, 2, 3, 4, 5, 6], [2, 6], [2, 3, 6], [4], [6]]


def test_the_csv_holds_what_the_table_shows():
    [name] = answers.parse_answer_questions("a.csv", b'question,answer\n"A, ""b""?",UAW & IBEW | union\n')
    lines = [answer_results.table_line(replace(row(1), question=name, quotes=("one", "two")), write=True)]
    [read] = csv.DictReader(StringIO(rows_csv(lines)))
    assert read["Question"] == 'A, "b"?'
    assert read["Known answer"] == "UAW & IBEW | union"
    assert read["Quoted"] == "one\ntwo"
    assert "The model's words" not in answer_results.table_line(row(1), write=False)


def test_figures_hold_every_bin_and_mark_the_present_threshold():
    rows = [row(n, confidence=n / 10, quote="yes" if n > 4 else "no") for n in range(10)]
    bins, curve = answers.reliability(rows), answers.coverage_curve(rows)
    diagonal, measured = answer_results.reliability_figure(bins).data
    assert list(diagonal.x) == list(diagonal.y) == [0, 1]
    assert sum(measured.customdata) == 10
    line, now = answer_results.coverage_figure(curve, 0.6).data
    assert np.allclose(line.x, np.arange(1, 11) / 10)
    assert (now.x[0], now.y[0]) == (0.4, 1.0)
    assert answer_results.at_threshold(curve, 0.95) is None
    assert len(answer_results.coverage_figure(curve, 0.95).data) == 1
