import csv
import io
import json
import shlex
from dataclasses import replace
from html import escape

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.documents.document import Document
from engine.documents.loaders import load_corpus
from engine.errors import InputError
from engine.evaluation.beir import parse_beir_zip
from engine.evaluation.grid import fitting, grid
from engine.evaluation.library_model import LibraryModel, load_model
from engine.evaluation.questions import Question, Reference, to_jsonl
from engine.evaluation.significance import Comparison
from engine.evaluation.sweep_store import to_csv
from engine.settings import Configuration
from engine.storage.workspace import Workspace, export_workspace, import_workspace
from pages.improve.settings import experiments as runs
from pages.improve.settings import grid as grids
from pages.improve.settings.charts import cost_of, pareto_front, picked_row
from pages.improve.settings.conclusion import not_of_the_app, summary, table_row, verdicts, won_and_lost, word
from pages.improve.settings.export import as_json, command_line
from tests.apps import app_of
from tests.command_line import printed
from tests.experiments import QUESTIONS, experiment, row
from tests.pytorch import torch, transformers
from tests.text_files import packed, write_files

EVIL = '<script>alert("1")</script>'


def test_rows_are_judged_against_the_first_by_the_corrected_p_value():
    for difference, p_value, expected in (
        (0.1, 0.01, "better"),
        (-0.1, 0.01, "worse"),
        (0.1, 0.06, "not sure"),
        (0.0, 1.0, "the same"),
    ):
        ends = difference - abs(difference) / 2, difference + abs(difference) / 2
        assert word(Comparison(difference, *ends, p_value)) == expected
    judged = verdicts(experiment().rows, "mrr")
    assert [one.word for one in judged] == ["baseline", "better", "worse", "the same", "not sure"]
    assert summary(judged).startswith("Of 4 other settings 1 is better than the app's and 1 is worse")
    said = [table_row(*each, "mrr", [])["p"] for each in zip(experiment().rows, judged, strict=True)]
    assert said[:4] == ["", "< 0.001", "< 0.001", "1.000"]


def test_what_chance_gives_one_of_many_rows_is_no_difference():
    baseline = np.repeat([0.0, 1.0], 30)
    lucky = np.where(np.arange(60) < 7, 1.0, baseline)  # by 7 questions: p is 2 / 2 ** 7
    rows = [row(Configuration(), baseline), row(Configuration(k=1), lucky)]
    alone = verdicts(rows, "mrr")[1]
    assert alone.comparison.p_value < 0.05
    others = [row(Configuration(k=k), np.roll(baseline, k)) for k in range(2, 60)]
    among_many = verdicts([*rows, *others], "mrr")[1]
    assert among_many.word == "not sure"
    assert among_many.comparison.p_value > alone.comparison.p_value


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


def test_the_figure_has_every_row_and_a_click_selects_it():
    one = experiment()
    quality = [each.metrics["mrr"] for each in one.rows]
    costs = cost_of(one, "mrr", "Index size")
    for curve, trace in enumerate(costs.data):
        for point, place in enumerate(trace.customdata if trace.customdata is not None else []):
            assert picked_row(costs, [{"curve_number": curve, "point_index": point}]) == place
            assert f"MRR {quality[place]:.3f}" in trace.hovertext[point]
    assert picked_row(costs, []) is None
    traces = costs.data[1:]
    assert sorted(place for trace in traces for place in trace.customdata) == [0, 1, 2, 3, 4]
    assert traces[-1].customdata.tolist() == [0]  # the baseline
    assert sorted(traces[1].customdata) == [1, 2]  # none is better for less


def test_questions_won_come_with_the_largest_gain_first():
    found = won_and_lost([0.5, 0.2, 1.0, 0.5, 1.0], [1.0, 1.0, 0.1, 0.5, 0.9])
    assert found == {"Won": [1, 0], "Lost": [2, 4], "Alike": [3]}


def report_page(one):
    import streamlit as st

    from pages.improve.settings.charts import show_costs
    from pages.improve.settings.conclusion import verdicts
    from pages.improve.settings.export import show_export
    from pages.improve.settings.results import show_rows
    from ui.report import Report, page_html

    report = Report()
    show_rows(report, one, verdicts(one.rows, "mrr"), "mrr")
    show_costs(report, one, "mrr")
    show_export(report, one, "mrr", one.configurations[0])
    st.session_state["html"] = page_html("experiment", one.name, report.parts)


def test_a_report_holds_what_is_drawn_and_escapes_it(encoder):
    one = experiment(EVIL, documents=(EVIL,), configurations=(Configuration(), Configuration(model=EVIL)))
    one = replace(one, rows=(one.rows[0], replace(one.rows[1], configuration=Configuration(model=EVIL))))
    html = app_of(report_page, args=(one,)).run().session_state["html"].replace(' dir="auto"', "")

    assert "<script>alert" not in html
    assert html.count(escape(EVIL)) >= 4  # title, heading, documents, a row of the table
    assert 'src="http' not in html
    assert html.count("plotly.js v") == 1
    assert "<td>better</td>" in html
    assert "<td>baseline</td><td></td><td></td>" in html
    assert "<td>&lt; 0.001</td>" in html


def test_exports_hold_every_row_and_a_run_comes_back_from_a_workspace_file():
    one = experiment("a run \N{BUTTERFLY}")
    lines = list(csv.DictReader(io.StringIO(to_csv(one.rows))))
    assert [float(line["mrr"]) for line in lines] == [each.metrics["mrr"] for each in one.rows]
    content = json.loads(as_json(one))
    assert [tuple(each["mrr"]) for each in content["values"]] == [each.values["mrr"] for each in one.rows]
    assert len(content["questions"]) == 60
    [run] = import_workspace("mine", export_workspace(Workspace(runs=(runs.to_run(one),)))).runs
    assert runs.opened.__wrapped__(run.time, run.name, 5, run.content) == one


def test_runs_of_the_same_documents_are_compared_by_the_questions_that_both_asked():
    everyone = list(range(60))
    assert runs.shared_questions(experiment(), experiment("another")) == (everyone, everyone)
    fewer = experiment("b", questions=QUESTIONS[:0:-1])
    assert runs.shared_questions(experiment("a"), fewer) == (everyone[1:], everyone[:59][::-1])
    with pytest.raises(InputError, match="a and b have no question in common"):
        runs.shared_questions(experiment("a"), experiment("b", questions=(Question("Another?", "tide", ()),)))
    with pytest.raises(InputError, match="searched different documents"):
        runs.shared_questions(experiment(), experiment(corpus=runs.digest([Document("tide.md", "other")])))


def test_the_command_names_every_value_and_the_baseline_where_it_is_no_part():
    one = experiment()
    words = shlex.split(command_line(one).splitlines()[0])
    assert words[:4] == ["python", "-m", "engine", "sweep"]
    given = dict(zip(words[4::2], words[5::2], strict=True))
    assert given["--chunk-tokens"] == "64,192"
    assert given["--pooling"] == "mean,mean_sqrt_len_tokens,cls"
    assert given["--retriever"] == "weighted,hybrid"
    assert given["--corpus"] == "PATH/TO/DOCUMENTS"
    assert given["--document"] == "tide.md"
    assert "baseline" not in command_line(one)
    many = command_line(replace(one, documents=tuple(f"{n}.md" for n in range(51))))
    assert many.startswith("# PATH/TO/DOCUMENTS holds the 51 documents that were searched, and no others:")
    assert "--document" not in many
    apart = replace(one, configurations=(Configuration(k=7), *one.configurations))
    assert "--k 7" in command_line(apart).splitlines()[-1]
    risky = replace(one, configurations=(Configuration(model="a; rm -rf b"),))
    assert shlex.split(command_line(risky)).count("a; rm -rf b") == 1


def run_of_the_page(documents, questions, configurations, models):
    from dataclasses import replace

    import streamlit as st

    from engine.evaluation.sweep import SweepInputs, by_name
    from pages.improve.settings.grid import run_grid
    from ui.jobs import current_job

    st.session_state["grid-name"] = "a run"
    run_grid(SweepInputs(by_name(documents), questions, configurations, models))
    job = current_job("experiment")
    job.result()
    st.session_state["measured"] = replace(job.request, rows=tuple(job.rows))


def measured_by_the_page(*given):
    """The documents, questions, configurations and models of a run, measured."""
    return app_of(run_of_the_page, args=given).run().session_state["measured"]


def printed_by_the_command(experiment):
    found = {}
    for line in command_line(experiment).splitlines():
        words = shlex.split(line, comments=True)
        if words:
            for fields in printed(*words[3:])["rows"]:
                configuration = Configuration(**{name: fields[name] for name in vars(Configuration())})
                found[configuration] = fields["mrr"]
    return found


@pytest.fixture
def electra(tmp_path, official):
    """A folder of a model that the engine has not written, its weights drawn."""
    torch.manual_seed(0)
    sizes = {"embedding_size": 16, "hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2}
    config = transformers.ElectraConfig(**sizes, num_hidden_layers=1, max_position_embeddings=256)
    folder = tmp_path / "electra"
    transformers.ElectraModel(config).save_pretrained(folder)
    official.tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The folder that printed lines are run in, with documents where they look for them."""
    monkeypatch.chdir(tmp_path)
    # Chunks of both say what is asked equally often, in as many words: BM25 scores them alike.
    colours = ("red", "blue", "green", "black", "white", "brown", "pink", "grey", "gold", "orange")
    things = ("cat", "dog", "horse", "bird", "fish", "cow", "sheep", "pig", "duck", "mouse")
    wave, tide = (
        "".join(f"The moon pulls the sea, and a {word} comes. " for word in words)
        for words in (colours, things)
    )
    texts = {"wave.md": wave, "tide.md": tide, "bread.md": "Knead the dough.", "x.md": "moon"}
    return write_files(tmp_path / "PATH" / "TO" / "DOCUMENTS", texts)


def about(name, content, text):
    return Question(text, name, (Reference(content, 4, 4 + len(content)),))


@pytest.mark.usefixtures("library_in_this_process")
def test_the_command_give_the_numbers_of_the_page(files, electra, encoder, tmp_path):
    documents = [one for one in load_corpus(files) if one.name != "x.md"][::-1]  # as they were uploaded
    questions = [about("wave", "moon", "What pulls the sea?"), about("tide", "moon", "Which moon?")]
    models = {encoder.name: encoder, electra: load_model(electra)}
    values = {
        "splitter": ["sliding", "fixed"],
        "chunk_tokens": [16],
        "overlap": [0, 4],
        "max_tokens": [64],
        "pooling": ["mean", "cls"],
        "retriever": ["bm25", "hybrid"],
        "k": [3],
    }
    # An overlap of 0 stands for that of the baseline.
    baseline = Configuration("sliding", 16, 4, max_tokens=64, retriever="bm25", k=3)
    chosen = grids.configurations_of(values, models, baseline)
    assert not any("'own' is not" in one.why for one in chosen.left_out)
    page = measured_by_the_page(documents, questions, chosen.configurations, models)
    (tmp_path / "questions.jsonl").write_text(to_jsonl(page.questions))

    numbers = {one.configuration: one.metrics["mrr"] for one in page.rows}
    assert len(numbers) == 1 + 3 * 2 * 3
    assert len(set(numbers.values())) > 2
    assert printed_by_the_command(page) == numbers
    assert page.documents == ("bread.md", "tide.md", "wave.md")


def test_the_command_for_a_packed_collection_read_it_as_the_page_does(files, encoder, tmp_path):
    texts = {"d1": "The moon pulls the sea.", "d2": "The sun pulls, too.", "d3": "Bread is kneaded."}
    collection = {
        "corpus.jsonl": "\n".join(json.dumps({"_id": key, "text": text}) for key, text in texts.items()),
        "queries.jsonl": '{"_id": "q1", "text": "What pulls, too?"}',
        "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\td2\t1\n",
    }
    path = tmp_path / "PATH" / "TO" / "tides.zip"
    path.write_bytes(packed(collection))
    found = parse_beir_zip(path.name, path.read_bytes())
    configurations = tuple(Configuration("markdown", 16, 0, retriever=name) for name in ("bm25", "dense"))
    for others in ([], [one for one in load_corpus(files) if one.name == "tide.md"]):
        page = measured_by_the_page(
            [found.document, *others], found.questions, configurations, {encoder.name: encoder}
        )
        (tmp_path / "questions.jsonl").write_text(to_jsonl(page.questions))
        numbers = {one.configuration: one.metrics["mrr"] for one in page.rows}
        assert numbers[configurations[0]] == 1
        assert printed_by_the_command(page) == numbers


def resuming(documents, kept):
    import streamlit as st

    from pages.improve.settings import experiments

    if "uploads" not in st.session_state:
        st.session_state["uploads"] = {one.name: (one,) for one in documents}
        st.session_state["searched"] = [one.name for one in documents]
        experiments.resume(kept)
    experiments.show_running()


def test_an_experiment_goes_on_with_the_same_documents_in_the_same_order_only(encoder):
    a, b = Document("a.v1.md", "The moon pulls the sea."), Document("b.md", "Bread is kneaded.")
    by_words = Configuration(retriever="bm25")
    for first, now, said in (
        ([a, b], [b, a], None),
        ([b, a], [b, a], "in the order of their upload"),
        ([a, b], [b, Document("c.md", "New.")], "now: add a.v1.md and leave out c.md in the sidebar"),
        ([a, b], [a, replace(b, text="New.")], "searched documents of these names with other texts"),
    ):
        kept = experiment(
            documents=tuple(one.name for one in first),
            corpus=runs.digest(first),
            questions=(about("a.v1", "moon", "What pulls?"),),
            configurations=(by_words, replace(by_words, chunk_tokens=64)),
            rows=(),
        )
        app = app_of(resuming, args=(now, kept)).run()
        assert ("experiments-tab" in app.session_state) == (said is None)  # a run that starts opens its tab
        if said is not None:
            [error] = app.error
            assert said in error.value.replace("\\", "")
            assert "\\\\" not in error.value  # escaped once
            assert not app.run().error  # it is said once


def test_before_a_run_it_is_said_what_cannot_be_told_by_it(encoder):
    small = LibraryModel("small", None, encoder.tokenizer, 384, "", 128)
    models = {encoder.name: encoder, "small": small}
    values = grids.FIRST_LOOK | {"max_tokens": [256], "k": [5]}
    chosen = grids.configurations_of(values, models, Configuration(max_tokens=256)).configurations
    [line] = grids.unmeasured(chosen, models)
    assert line.startswith("small is not measured at all: “Token limit” is 256: small takes 3 to 128")
    models["small"] = replace(small, reason="small is a 'electra' model")
    [line] = grids.run_by_library(models)
    reason = "small is run by sentence-transformers, since the engine does not: small is a 'electra' model"
    assert line == reason
    fitting_all = grids.configurations_of(values | {"max_tokens": [128]}, models, Configuration())
    assert grids.unmeasured(fitting_all.configurations, models) == []


def test_a_grid_begins_with_the_baseline_and_has_it_once(encoder):
    models, baseline = {encoder.name: encoder}, Configuration(max_tokens=256)
    values = grids.FIRST_LOOK | {"max_tokens": [256], "k": [5]}
    configurations = grids.configurations_of(values, models, baseline).configurations
    assert configurations[0] == baseline
    assert len(configurations) == len(set(configurations)) == 12
    other = grids.configurations_of(values, models, Configuration(k=3)).configurations
    assert other[0] == Configuration(k=3)
    assert len(other) == 13
    for preset in grids.PRESETS.values():
        chosen = values | preset
        measured = grids.configurations_of(chosen, models, baseline)
        whole = fitting(grid(**chosen), models)
        assert set(measured.configurations) == {*whole.configurations, baseline}


def test_a_grid_of_nothing_or_of_too_much_is_refused(encoder):
    models, values = {encoder.name: encoder}, grids.FIRST_LOOK | {"max_tokens": [256], "k": [5]}
    with pytest.raises(InputError, match="nothing is chosen for the pooling: choose one value"):
        grids.configurations_of(values | {"pooling": []}, models, Configuration())
    with pytest.raises(InputError, match=r"the grid has 12,000 configurations, and at most 10,000"):
        grids.configurations_of(values | {"k": list(range(1, 1001))}, models, Configuration())


def test_configurations_are_put_into_words():
    configurations = [Configuration(), Configuration(chunk_tokens=64), Configuration(retriever="bm25")]
    keys = runs.varied(configurations)
    assert keys == ["chunk_tokens", "retriever"]
    words = "Chunk size 64 · Retriever hybrid (scores weighted)"
    assert runs.configuration_words(configurations[1], keys) == words
    assert runs.values_in_order(configurations, "chunk_tokens") == ["64", "192"]
    theirs = Configuration(k=20, model="other", pooling="own")
    three = (Configuration(), Configuration(), theirs)
    assert grids.default_name(three) == "2 models × 2 numbers of passages"
    assert runs.values_in_order((Configuration(), theirs), "pooling") == ["mean", "the model's own"]
    assert not_of_the_app(Configuration(retriever="hybrid")) == ""
    assert all(part in not_of_the_app(theirs) for part in ("20 passages", "GLASSBOX_ENCODER"))
