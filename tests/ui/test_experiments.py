import csv
import io
import json
import re
import shlex
from dataclasses import replace
from html import escape

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from engine.documents.document import Document
from engine.errors import InputError
from engine.evaluation.grid import Cell, fitting, grid
from engine.evaluation.questions import Question, Reference
from engine.evaluation.significance import Comparison
from engine.evaluation.sweep_row import METRICS, SweepRow
from engine.evaluation.sweep_store import to_csv
from engine.workspace import Workspace, export_workspace, import_workspace
from ui.experiment_cell import changes, not_of_the_app
from ui.experiment_charts import cost_of, heat_of
from ui.experiment_code import command_line, python_lines
from ui.experiment_export import as_json, report
from ui.experiment_figures import best_over, pareto_front, picked_cell
from ui.experiment_grid import FIRST_LOOK, PRESETS, cells_of
from ui.experiment_runs import Experiment, digest, opened, shared_questions, to_run
from ui.experiment_verdicts import summary, verdicts, word
from ui.experiment_words import AXES, cell_words, in_order, readable_bytes, readable_time, varied

EVIL = '<script>alert("1")</script>'
GENERATOR = np.random.default_rng(0)
QUESTIONS = tuple(Question(f"Question {n}?", "tide", (Reference("moon", 4, 8),)) for n in range(60))


def row(cell, values, n_chunks=10, index_bytes=1000, seconds=1.0):
    values = tuple(float(value) for value in values)
    mean = float(np.mean(values))
    return SweepRow(
        cell,
        n_chunks,
        len(values),
        dict.fromkeys(METRICS, mean),
        dict.fromkeys(METRICS, (mean - 0.1, mean + 0.1)),
        dict.fromkeys(METRICS, values),
        seconds,
        index_bytes,
    )


def experiment(name="a run", **changed):
    """A baseline, and better, worse and equal cells, one of which costs less."""
    easy = GENERATOR.choice([0.25, 0.5], 60)
    rows = (
        row(Cell(), easy),
        row(Cell(chunk_tokens=64), easy * 2, index_bytes=2000),
        row(Cell(chunk_tokens=64, retriever="hybrid"), easy / 2, index_bytes=500),
        row(Cell(pooling="mean_sqrt_len_tokens"), easy),
        row(Cell(pooling="cls"), np.roll(easy, 1)),
    )
    whole = Experiment(
        name, "2026-01-02T03:04:05", ("tide.md",), "0" * 64, QUESTIONS, tuple(one.cell for one in rows), rows
    )
    return replace(whole, **changed)


@pytest.mark.parametrize(
    ("difference", "low", "high", "p_value", "expected"),
    [
        (0.1, 0.05, 0.15, 0.01, "better"),
        (-0.1, -0.15, -0.05, 0.01, "worse"),
        (0.1, 0.01, 0.2, 0.06, "not sure"),
        (0.0, -0.1, 0.1, 0.01, "worse"),
        (0.0, 0.0, 0.0, 1.0, "the same"),
    ],
)
def test_a_verdict_goes_by_the_corrected_p_value(difference, low, high, p_value, expected):
    if difference == 0 and low < 0:
        expected, p_value = "not sure", 1.0
    assert word(Comparison(difference, low, high, p_value)) == expected


def test_rows_are_judged_against_the_first():
    judged = verdicts(experiment().rows, "mrr")
    assert [one.word for one in judged] == ["baseline", "better", "worse", "the same", "not sure"]
    assert summary(judged).startswith("Of 4 other settings 1 are better than the app's and 1 worse")


def test_what_chance_gives_one_of_many_rows_is_no_difference():
    baseline = np.repeat([0.0, 1.0], 30)
    lucky = np.where(np.arange(60) < 7, 1.0, baseline)  # by 7 questions: p is 2 / 2 ** 7
    rows = [row(Cell(), baseline), row(Cell(k=1), lucky)]
    alone = verdicts(rows, "mrr")[1]
    assert alone.p_value < 0.05
    others = [row(Cell(k=k), np.roll(baseline, k)) for k in range(2, 60)]
    among_many = verdicts([*rows, *others], "mrr")[1]
    assert among_many.word == "not sure"
    assert among_many.p_value > alone.p_value


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12))
def test_the_front_is_what_nothing_dominates(points):
    costs, quality = np.array(points, float).T
    front = {points[place] for place in pareto_front(costs, quality)}
    undominated = {
        point
        for point in points
        if not any(c <= point[0] and q >= point[1] and (c, q) != point for c, q in points)
    }
    assert front == undominated
    ordered = [points[place] for place in pareto_front(costs, quality)]
    assert ordered == sorted(ordered)


def test_a_map_shows_the_best_of_all_cells_with_two_values():
    best = best_over([0, 0, 1, 0], [0, 0, 1, 1], np.array([0.2, 0.7, 0.5, 0.1]))
    assert best.tolist() == [[1, 3], [-1, 2]]


def test_a_click_on_a_figure_finds_its_cell():
    one = experiment()
    quality = [each.metrics["mrr"] for each in one.rows]
    for figure in (heat_of(one, "mrr", "chunk_tokens", "pooling"), cost_of(one, "mrr", "Index size")):
        for curve, trace in enumerate(figure.data):
            for point, place in enumerate(trace.customdata if trace.customdata is not None else []):
                assert picked_cell(figure, [{"curve_number": curve, "point_index": point}]) == place
                assert f"MRR {quality[place]:.3f}" in trace.hovertext[point]
    assert picked_cell(figure, []) is None


def test_every_cell_is_on_the_figure_of_costs_once_and_the_baseline_apart():
    traces = cost_of(experiment(), "mrr", "Index size").data[1:]
    assert sorted(place for trace in traces for place in trace.customdata) == [0, 1, 2, 3, 4]
    assert traces[-1].customdata.tolist() == [0]
    assert sorted(traces[1].customdata) == [1, 2]  # none is better for less


def test_questions_won_come_with_the_largest_gain_first():
    found = changes([0.5, 0.2, 1.0, 0.5, 1.0], [1.0, 1.0, 0.1, 0.5, 0.9])
    assert found == {"Won": [1, 0], "Lost": [2, 4], "Alike": [3]}


def test_a_report_escapes_all_text_and_needs_no_network():
    one = experiment(EVIL, documents=(EVIL,), cells=(Cell(), Cell(model=EVIL)))
    one = replace(one, rows=(one.rows[0], replace(one.rows[1], cell=Cell(model=EVIL))))
    html = report(one, verdicts(one.rows, "mrr"), "mrr")

    assert "<script>alert" not in html
    assert html.count(escape(EVIL)) >= 4  # title, heading, documents, a row of the table
    assert 'src="http' not in html
    assert html.count("plotly.js v") == 1
    assert "<td>better</td>" in html


def test_exports_hold_every_row():
    one = experiment()
    lines = list(csv.DictReader(io.StringIO(to_csv(one.rows))))
    assert [float(line["mrr"]) for line in lines] == [each.metrics["mrr"] for each in one.rows]
    content = json.loads(as_json(one))
    assert [tuple(each["mrr"]) for each in content["values"]] == [each.values["mrr"] for each in one.rows]
    assert len(content["questions"]) == 60


def test_a_run_comes_back_from_a_workspace_file():
    one = experiment("a run \N{BUTTERFLY}")
    [run] = import_workspace("mine", export_workspace(Workspace(runs=(to_run(one),)))).runs
    assert opened.__wrapped__(run.time, run.name, 5, run.content) == one


def test_runs_of_the_same_documents_are_compared_by_the_questions_that_both_asked():
    everyone = list(range(60))
    assert shared_questions(experiment(), experiment("another")) == (everyone, everyone)
    fewer = experiment("b", questions=QUESTIONS[:0:-1])
    assert shared_questions(experiment("a"), fewer) == (everyone[1:], everyone[:59][::-1])
    with pytest.raises(InputError, match="a and b have no question in common"):
        shared_questions(experiment("a"), experiment("b", questions=(Question("Another?", "tide", ()),)))
    with pytest.raises(InputError, match="searched different documents"):
        shared_questions(experiment(), experiment(corpus=digest([Document("tide.md", "other")])))


def test_the_command_names_every_value_and_the_baseline_where_it_is_no_part():
    one = experiment()
    words = shlex.split(command_line(one).splitlines()[0])
    assert words[:4] == ["python", "-m", "engine", "sweep"]
    given = dict(zip(words[4::2], words[5::2], strict=True))
    assert given["--chunk-tokens"] == "64,128"
    assert given["--pooling"] == "mean,mean_sqrt_len_tokens,cls"
    assert given["--retriever"] == "dense,hybrid"
    assert given["--corpus"] == "PATH/TO/DOCUMENTS"
    assert "baseline" not in command_line(one)
    apart = replace(one, cells=(Cell(k=7), *one.cells))
    assert shlex.split(command_line(apart).splitlines()[-1])[-2:] == ["--k", "7"]
    assert (
        shlex.split(command_line(replace(one, cells=(Cell(model="a; rm -rf b"),)))).count("a; rm -rf b") == 1
    )


def test_the_python_lines_measure_the_same_cells(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "tide.md").write_text("The moon pulls the sea. " * 30)
    (folder / "other.md").write_text("Nothing of that.")
    question = {"question": "What pulls?", "corpus_id": "tide"}
    references = [{"content": "moon", "start_index": 4, "end_index": 8}]
    (tmp_path / "questions.jsonl").write_text(json.dumps(question | {"references": references}))
    cells = (Cell(), Cell(chunk_tokens=64), Cell(chunk_tokens=64, retriever="bm25"))
    lines = python_lines(experiment(cells=cells)).replace("PATH/TO/DOCUMENTS", str(folder))
    monkeypatch.chdir(tmp_path)
    exec(compile(lines, "lines", "exec"), {})
    measured = re.findall(r"chunk_tokens=(\d+).*?retriever='(\w+)'", capsys.readouterr().out)
    assert set(measured) >= {("128", "dense"), ("64", "dense"), ("64", "bm25")}


def test_a_grid_begins_with_the_baseline_and_has_it_once(encoder):
    models, baseline = {encoder.name: encoder}, Cell(max_tokens=256)
    values = FIRST_LOOK | {"max_tokens": [256], "ks": [5]}
    cells = cells_of(values, models, baseline).cells
    assert cells[0] == baseline
    assert len(cells) == len(set(cells)) == 12
    other = cells_of(values, models, Cell(k=3)).cells
    assert other[0] == Cell(k=3)
    assert len(other) == 13
    for preset in PRESETS.values():
        chosen = values | preset
        measured = cells_of(chosen, models, baseline)
        whole = fitting(grid(**chosen), models)
        assert set(measured.cells) == {*whole.cells, baseline}


def test_a_grid_of_nothing_or_of_too_much_is_refused(encoder):
    models, values = {encoder.name: encoder}, FIRST_LOOK | {"max_tokens": [256], "ks": [5]}
    with pytest.raises(InputError, match="nothing is chosen for the pooling: choose one value"):
        cells_of(values | {"poolings": []}, models, Cell())
    with pytest.raises(InputError, match=r"the grid has 12,000 cells, at most 10,000"):
        cells_of(values | {"ks": list(range(1, 1001))}, models, Cell())


def test_words():
    cells = [Cell(), Cell(chunk_tokens=64), Cell(retriever="bm25")]
    assert varied(cells) == ["chunk_tokens", "retriever"]
    assert cell_words(cells[1], varied(cells)) == "Chunk size 64 · Retriever dense (cosine)"
    assert in_order(cells, "chunk_tokens") == ["64", "128"]
    assert [readable_time(s) for s in (0.2, 59, 400, 9000)] == ["1 s", "59 s", "6 min 40 s", "2 h 30 min"]
    assert [readable_bytes(n) for n in (12, 1234, 2_500_000)] == ["12 B", "1.2 kB", "2.5 MB"]


def test_what_the_app_cannot_take_is_said():
    assert not_of_the_app(Cell()) == ""
    assert not_of_the_app(Cell(retriever="hybrid")) == ""
    said = not_of_the_app(Cell(k=20, model="other"))
    assert all(part in said for part in ("20 passages", "GLASSBOX_ENCODER"))


def page():
    import streamlit as st

    from engine.evaluation.grid import Cell
    from ui.chunk_settings import chunk_settings
    from ui.experiment_cell import use_settings
    from ui.experiment_grid import baseline_cell
    from ui.models import load_encoder
    from ui.settings import retriever_setting

    cell = Cell("sentences", 64, 8, max_tokens=128, pooling="cls", retriever="hybrid", k=3)
    st.button("use", on_click=use_settings, args=(cell,))
    cut = chunk_settings(load_encoder())
    retriever_setting()
    st.session_state["baseline"] = baseline_cell(cut)


def test_settings_of_a_cell_move_the_apps_own(encoder):
    app = AppTest.from_function(page, default_timeout=60).run()
    app = app.button[0].click().run()
    assert not app.exception
    state = app.session_state
    taken = [state[key] for key in AXES if key != "model"]
    assert taken == ["sentences", 64, 8, 128, "cls", "hybrid", 3]
    assert "Retriever hybrid (ranks fused)" in state["experiment-used"]
    assert app.selectbox(key="retriever").value == "hybrid"
    assert state["baseline"] == Cell(
        "sentences", 64, 8, max_tokens=128, pooling="cls", retriever="hybrid", k=3
    )
    assert app.slider(key="chunk_tokens").value == 64
