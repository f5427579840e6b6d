"""One entry more in a table works on every page, in every export and command, or raises at once.

All tables have theirs at the same time, so that each page is drawn once.
"""

import ast
import sys
from dataclasses import replace

import numpy as np
import pytest

from engine.documents.document import Document
from engine.documents.formats.plain import read_plain
from engine.documents.loaders import FORMATS, Format, one, parse_file
from engine.documents.splitters import SPLITTERS, Splitter
from engine.documents.units import line_starts
from engine.errors import InputError
from engine.evaluation.metrics import METRICS, Metric
from engine.export.libraries import LIBRARIES
from engine.export.script import export
from engine.generation.sampling import RULES, Sampling
from engine.inspection.model.positions import decoder_score_by_distance
from engine.layers.norm import l2_normalize
from engine.layers.pooling import POOLINGS, Pooling
from engine.models import bert, decoders, encoder_families, gpt2, gpt2_file
from engine.retrieval.index_choice import choose_index
from engine.retrieval.index_kinds import INDEX_KINDS, IndexKind
from engine.retrieval.retrievers import RETRIEVERS, Retriever
from engine.settings import Configuration
from engine.storage.workspace import Workspace
from engine.tokenizers.bpe import BPETokenizer
from engine.tokenizers.characters import CharacterTokenizer
from engine.tokenizers.tokenizer_file import TOKENIZERS
from pages.improve.settings.experiments import to_run
from pages.inside.chunk.decoder_stages import CONFIG_STAGES, decoder_stages
from pages.inside.chunk.encoder_stages import FAMILY_STAGES, encoder_stages
from pages.inside.chunk.word_rows import WORD_ROWS, word_rows
from tests.apps import app_page, own_documents, said, tables
from tests.command_line import LIGHTHOUSE, printed, run
from tests.experiments import experiment
from tests.test_docs import pages_of_the_app
from ui.address import PARTS
from ui.colours import CATEGORIES

ENCODERS = set(encoder_families.FAMILIES)
DECODERS = {family.config for family in decoders.FAMILIES.values()}
SUM = Pooling(
    "sum of all",
    "Adds up the tokens.",
    r"v = \sum_t x_t",
    "_, out = read(text)\nreturn out.last_hidden_state[0].sum(dim=0)",
    lambda mask, states, idf: mask,
)
NEW = {
    "pooling": (POOLINGS, "sum", SUM),
    "splitter": (SPLITTERS, "lines", Splitter("Lines", "Whole lines.", (line_starts,))),
    "retriever": (
        RETRIEVERS,
        "again",
        Retriever(lambda inputs, on_progress: inputs.dense, "dense again", "As dense."),
    ),
    "metric": (METRICS, "all@k", Metric(lambda found: found.reciprocal_ranks == 1, "All@k", "As asked.")),
    "format": (FORMATS, "shout", Format("Shouts", (".shout",), one(read_plain))),
    "index_kind": (INDEX_KINDS, "lists", IndexKind("Lists", "As IVF.", "IVF{lists},Flat", "nprobe")),
    "encoder family": (encoder_families.FAMILIES, "new", encoder_families.EncoderFamily(bert)),
    "decoder family": (decoders.FAMILIES, "new", decoders.Family(type("NewConfig", (), {}), gpt2, gpt2_file)),
}
CHOSEN = {setting: NEW[setting][1] for setting in ("pooling", "splitter", "retriever", "index_kind")}


@pytest.fixture(scope="module")
def _new_entries():
    with pytest.MonkeyPatch.context() as patch:
        for table, name, entry in NEW.values():
            patch.setitem(table, name, entry)
        for name, module in list(sys.modules.items()):
            if name.startswith(("ui.", "pages.")) and hasattr(module, "CATEGORIES"):
                patch.setattr(module, "CATEGORIES", (*CATEGORIES, "#336699"))
        yield


TABS = {address: parts["tab"] for address, parts in PARTS.items() if "tab" in parts}


@pytest.mark.usefixtures("_new_entries")
@pytest.mark.parametrize("folder", pages_of_the_app())
def test_every_page_is_drawn_with_new_entries_chosen(folder, encoder, decoder):
    state = CHOSEN | own_documents(Document("light.md", LIGHTHOUSE)) | {"chunk_tokens": 32}
    app = app_page(folder, **state).run()
    assert said(app)
    if key := TABS.get(folder.split("/")[-1]):
        for tab in [each.label for each in app.tabs]:
            assert not app_page(folder, **state, **{key: tab}).run().exception


@pytest.mark.usefixtures("_new_entries")
def test_a_pooling_is_drawn_inside_the_model_and_a_metric_in_the_results(encoder):
    pooled = app_page("inside/chunk", **{"inside-tab": "Pipeline", "stage-encoder": 4}).run()
    assert SUM.label in pooled.get("button_group")[2].options
    runs = {"workspace": Workspace(runs=(to_run(experiment("new metric")),)), "experiments-tab": "Results"}
    measured = app_page("improve/settings", **runs, **{"experiment-measure": "all@k"}).run()
    assert any("All@k" in table for table in tables(measured))


@pytest.mark.usefixtures("_new_entries")
def test_commands_know_new_entries(corpus, tmp_path):
    chosen = ("--pooling", "sum", "--splitter", "lines", "--retriever", "again")
    [hit, *_] = printed("search", "What colour is the lighthouse?", "--corpus", corpus, *chosen)["hits"]
    assert hit["document"] == "lighthouse.md"
    assert run("index", corpus, "--out", tmp_path / "kept", "--index-kind", "lists").exit_code == 0
    questions = tmp_path / "own.csv"
    questions.write_text("question,passage\nWhat colour is the lighthouse?,painted green\n")
    [row] = printed("sweep", "--corpus", corpus, "--questions", questions, *chosen)["rows"]
    assert row["all@k"] == 1


@pytest.mark.usefixtures("_new_entries")
def test_an_index_of_a_new_kind_finds_the_nearest():
    vectors = l2_normalize(np.random.default_rng(0).normal(size=(2000, 16)).astype(np.float32))
    choice, ann = choose_index(vectors, "lists")
    assert choice.kind == "lists"
    assert ann.nearest(vectors, vectors[:3], 1)[1][:, 0].tolist() == [0, 1, 2]


@pytest.mark.usefixtures("_new_entries")
def test_a_file_of_a_new_format_is_read():
    [document] = parse_file("a.shout", b"HELLO").documents
    assert document.text == "HELLO"


@pytest.mark.usefixtures("_new_entries")
@pytest.mark.parametrize("to", LIBRARIES)
def test_exports_carry_new_entries_over_or_refuse_them(encoder, to):
    configuration = Configuration(splitter="lines", pooling="sum", retriever="dense", model=encoder.name)
    script = export(configuration, encoder, to).script
    assert "out.last_hidden_state[0].sum(dim=0)" in script
    for node in ast.walk(ast.parse(script)):
        if isinstance(node, ast.FunctionDef):
            assert len(node.body) > 1 or not ast.get_docstring(node), f"{node.name} has no body"
    with pytest.raises(InputError, match="retriever 'again' cannot be exported yet"):
        export(replace(configuration, retriever="again"), encoder, to)


def test_a_pooling_without_a_script_is_not_exported(encoder, monkeypatch):
    monkeypatch.setitem(POOLINGS, "sum", replace(SUM, script=""))
    with pytest.raises(InputError, match="pooling 'sum' cannot be exported yet"):
        export(Configuration(pooling="sum", model=encoder.name), encoder, "langchain")


@pytest.mark.usefixtures("_new_entries")
def test_a_family_that_a_page_cannot_draw_is_never_drawn_as_another(encoder, decoder):
    with pytest.raises(InputError, match="write them for FAMILY_STAGES"):
        encoder_stages(replace(encoder, model_type="unheard"), 0)
    config = NEW["decoder family"][2].config()
    with pytest.raises(InputError, match="write them for CONFIG_STAGES"):
        decoder_stages(config, 0)
    with pytest.raises(InputError, match="positions that are not shown yet"):
        decoder_score_by_distance(replace(decoder, config=config), 8)


def test_every_family_and_tokenizer_of_the_tables_can_be_drawn():
    assert set(FAMILY_STAGES) == ENCODERS
    assert set(CONFIG_STAGES) == DECODERS
    assert set(WORD_ROWS) == {*TOKENIZERS.values(), BPETokenizer}
    with pytest.raises(InputError, match="write them for WORD_ROWS"):
        word_rows(CharacterTokenizer("a"), "a")


def test_a_sampling_rule_without_a_field_raises_at_once(monkeypatch):
    monkeypatch.setitem(RULES, "typical_p", replace(RULES["top_p"], label="Typical-p"))
    with pytest.raises(AttributeError, match="typical_p"):
        Sampling()
