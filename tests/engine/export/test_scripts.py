"""Each script is run as it is written: it cuts documents and finds passages as the engine does."""

import runpy
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import Encoder
from engine.documents.document import Document
from engine.documents.loaders import BUNDLED_CORPUS, load_corpus
from engine.documents.splitters import SPLITTERS, split
from engine.errors import InputError
from engine.evaluation.library_model import LibraryModel
from engine.export.libraries import LIBRARIES
from engine.export.script import export
from engine.layers.pooling import POOLINGS
from engine.models.multi_vector import MultiVectorEncoder
from engine.models.prompts import Prompts
from engine.models.sparse_encoder import SparseEncoder
from engine.retrieval.embedding_model import embed_query
from engine.retrieval.index import build_index
from engine.retrieval.parents import search_parents
from engine.retrieval.ranking import top
from engine.retrieval.retrievers import index_scores
from engine.settings import Configuration
from engine.weights.fetch import model_path
from tests.model_files import edit_config, edit_tensors
from tests.pytorch import modules, transformers
from tests.sentence_transformer_folders import SIZES, random_model, save_bert, save_modules

ROOT = Path(__file__).parent.parent.parent.parent
QUESTION = "What is done with a text that is longer than the model's limit?"
HUB_ID = '"sentence-transformers/all-MiniLM-L6-v2"'
PARENTS = 96
ROWS = "".join(f"| M{n} | {3 * n} |\n" for n in range(40))
TABLE = f"# Bolts\n\n## {'Torque ' * 20}\n\n| Bolt | Nm |\n|---|---|\n{ROWS}"
MODEL_SIZES = SIZES | {"max_position_embeddings": 128}
EVERY = {
    "defaults": (Configuration(), 0),
    "fixed with overlap": (Configuration("fixed", 64, 16), 0),
    "dense": (Configuration(chunk_tokens=64, retriever="dense", max_tokens=48), 0),
    "bm25": (Configuration(retriever="bm25"), 0),
    "hybrid": (Configuration(chunk_tokens=64, retriever="hybrid"), 0),
    "cls": (Configuration(chunk_tokens=64, pooling="cls", retriever="dense"), 0),
    "mmr": (Configuration(chunk_tokens=64, retriever="mmr"), 0),
    "maxsim": (Configuration(chunk_tokens=64, retriever="maxsim"), 0),
    "sparse": (Configuration(chunk_tokens=64, retriever="sparse"), 0),
    "sparse-weighted": (Configuration(chunk_tokens=64, retriever="sparse-weighted"), 0),
    "late": (Configuration(chunk_tokens=64, retriever="late"), 0),
    "late-reordered": (Configuration(chunk_tokens=64, retriever="late-reordered"), 0),
    "context": (Configuration("recursive", 48, retriever="dense", context="title"), 0),
    "small to big": (Configuration("recursive", 32, retriever="dense", k=3), PARENTS),
}
PLACES_ALONE = ("mmr", "maxsim", "late-reordered", "small to big")  # their scores are of other kinds
# What the templates of the other libraries do differently; what else there is, they include.
OTHERS = ("defaults", "dense", "context", "small to big")
PAIRS = [
    *product(["sentence-transformers"], EVERY),
    *product([to for to in LIBRARIES if to != "sentence-transformers"], OTHERS),
    ("langchain", "mmr"),
]


@pytest.fixture(scope="module")
def encoder(encoder, tmp_path_factory):
    """The encoder with random models of its vocabulary beside it."""
    folders = [tmp_path_factory.mktemp(name) for name in ("words", "tokens")]
    config = transformers.BertConfig(vocab_size=encoder.config.vocab_size, **MODEL_SIZES)
    random_model(transformers.BertForMaskedLM, config).save_pretrained(folders[0])
    random_model(transformers.BertModel, config).save_pretrained(folders[1])
    matrix = np.random.default_rng(0).normal(size=(6, config.hidden_size)).astype(np.float32)
    edit_tensors(folders[1], lambda tensors: tensors.update({"linear.weight": matrix}))
    edit_config(folders[1], architectures=["HF_ColBERT"])
    for folder in folders:
        shutil.copy(model_path("all-MiniLM-L6-v2") / "tokenizer.json", folder)
    sparse, multi_vector = SparseEncoder.load(folders[0]), MultiVectorEncoder.load(folders[1])
    return replace(encoder, sparse=sparse, multi_vector=multi_vector)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A few pages of the bundled documents."""
    folder = tmp_path_factory.mktemp("documents")
    for name, length in {"inside_the_pipeline.md": 1400, "state_of_the_union.md": 700}.items():
        text = (BUNDLED_CORPUS / name).read_text(encoding="utf-8")[:length]
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "tables.md").write_text(TABLE, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def ours(folder, encoder):
    """A function: places and scores of the passages that the engine finds; each setting is searched once."""
    known = {}

    def remembered(configuration, parent_tokens):
        if (configuration, parent_tokens) not in known:
            known[configuration, parent_tokens] = searched(configuration, parent_tokens, folder, encoder)
        return known[configuration, parent_tokens]

    return remembered


def searched(configuration, parent_tokens, folder, encoder):
    """Places and scores of the passages that the engine finds."""
    chunks = [
        chunk for one in load_corpus(folder) for chunk in cut(one, configuration, encoder, parent_tokens)
    ]
    index = build_index(chunks, encoder, configuration.pooling, configuration.max_tokens)
    own = index.encoder(encoder)
    query = embed_query(QUESTION, own, configuration.pooling, configuration.max_tokens)
    scores = index_scores(configuration.retriever, QUESTION, query, index, own)
    order = top(scores, len(scores))
    hits = search_parents(index, query, configuration.k, order)
    places = [f"{hit.chunk.document}:{hit.chunk.start}-{hit.chunk.end}" for hit in hits]
    return places, scores[order][: configuration.k]


def cut(document, configuration, encoder, parent_tokens):
    how = configuration.splitting
    return split(document, encoder.tokenizer, how, encoder.encode, parent_tokens=parent_tokens)


@pytest.fixture(scope="module")
def in_cache():
    """A function that has a script take the model from the cache."""
    model = repr(str(model_path("all-MiniLM-L6-v2")))
    return lambda script: script.replace(HUB_ID, model)


@pytest.fixture
def run(tmp_path, in_cache, monkeypatch, capsys):
    """A function that runs a script with the model in the cache, and returns its variables and its lines."""

    def run_script(script, folder, as_main=True):
        path = tmp_path / "search.py"
        path.write_text(in_cache(script), encoding="utf-8")
        monkeypatch.setattr(sys, "argv", [str(path), str(folder), QUESTION])
        names = runpy.run_path(str(path), run_name="__main__" if as_main else "script")
        return names, [line.split("  ", 2) for line in capsys.readouterr().out.splitlines()]

    monkeypatch.setenv("HAYSTACK_TELEMETRY_ENABLED", "False")
    return run_script


@pytest.mark.parametrize(("to", "name"), PAIRS)
def test_every_library_finds_the_same_passages(to, name, folder, ours, encoder, run):
    configuration, parent_tokens = EVERY[name]
    _, lines = run(export(configuration, encoder, to, parent_tokens).script, folder)
    places, scores = ours(configuration, parent_tokens)
    assert [place for _, place, _ in lines] == places
    if name not in PLACES_ALONE:
        assert [float(score) for score, _, _ in lines] == pytest.approx(scores, rel=1e-5, abs=1e-4)


@pytest.mark.parametrize("pooling", [name for name, each in POOLINGS.items() if each.needs])
def test_poolings_that_no_library_has(pooling, folder, ours, encoder, run):
    configuration = Configuration(pooling=pooling, retriever="dense")
    _, lines = run(export(configuration, encoder, "sentence-transformers").script, folder)
    places, scores = ours(configuration, 0)
    assert [place for _, place, _ in lines] == places
    assert [float(score) for score, _, _ in lines] == pytest.approx(scores, abs=1e-4)


@pytest.mark.parametrize(
    ("splitter", "overlap", "parent_tokens"),
    [*((splitter, 12, PARENTS) for splitter in SPLITTERS), ("fixed", 0, 0), ("recursive", 12, 0)],
)
def test_chunks_are_the_same(splitter, overlap, parent_tokens, folder, encoder, run):
    configuration = Configuration(splitter, 48, overlap, retriever="bm25")
    needs_embed = SPLITTERS[splitter].needs_embed
    script = export(configuration, encoder, "sentence-transformers", parent_tokens).script
    names, _ = run(script, folder, as_main=False)
    for document in load_corpus(folder) if needs_embed else load_corpus()[:3]:
        chunks = cut(document, configuration, encoder, parent_tokens)
        wanted = [(chunk.start, chunk.end) for chunk in chunks]
        if parent_tokens:
            parents = [(chunk.parent.start, chunk.parent.end) for chunk in chunks]
            wanted = list(zip(wanted, parents, strict=True))
        assert names["spans"](document.text) == wanted, document.name


@pytest.fixture(scope="module")
def spans(encoder, in_cache):
    """The function of a script that cuts a text recursively into chunks of 8 tokens with overlap."""
    recursive = Configuration("recursive", 8, 2, retriever="bm25")
    script = export(recursive, encoder, "sentence-transformers").script
    names = {"__name__": "script"}
    exec(in_cache(script), names)
    return names["spans"]


WORDS = ("one", "élan", "e\u0301", "Dr.", "U.S.", "3.5", "東京", "。", "!", "x.", "[SEP]")
PARTS = (*WORDS, "\n\n", "\n", " ", "\u00a0")


@given(st.lists(st.sampled_from(PARTS), max_size=60))
def test_chunks_of_any_text_are_the_same(encoder, spans, parts):
    text = "".join(parts)
    chunks = split(Document("a", text), encoder.tokenizer, Configuration("recursive", 8, 2).splitting)
    assert spans(text) == [(chunk.start, chunk.end) for chunk in chunks]


def test_texts_are_read_as_the_engine_reads_them(tmp_path, encoder, run):
    for name, text in {
        "b.txt": "of\u00adfice\r\nﬁnal",
        "a/c.MD": "\ufeff# Top",
        "a.md/d.log": "right\u200f to \u202bleft\u202c",
        "a/e.rst": "A title\n=======",
        "a/f.markdown": "*So*",
        ".hidden/d.md": "no",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(text.encode())
    names, _ = run(export(EVERY["bm25"][0], encoder, "langchain").script, tmp_path, as_main=False)
    (tmp_path / "search.py").unlink()
    assert names["read_texts"](tmp_path) == {each.name: each.text for each in load_corpus(tmp_path)}
    (tmp_path / "g.txt").write_text("Öl", encoding="cp1252")
    with pytest.raises(SystemExit, match=r"g\.txt is not in UTF-8: save it as UTF-8"):
        names["read_texts"](tmp_path)
    with pytest.raises(SystemExit, match="nowhere holds no Markdown or text files"):
        names["read_texts"](tmp_path / "nowhere")


def test_a_script_without_its_arguments_says_what_to_give(tmp_path, encoder, run, monkeypatch):
    run(export(EVERY["bm25"][0], encoder, "langchain").script, tmp_path, as_main=False)
    path = tmp_path / "search.py"
    monkeypatch.setattr(sys, "argv", [str(path), "my_notes/"])
    with pytest.raises(SystemExit, match="give a folder and a question"):
        runpy.run_path(str(path), run_name="__main__")


@pytest.fixture(scope="module")
def prompted(tmp_path_factory):
    """A small random model with prompts, pooled by [CLS]."""
    folder = tmp_path_factory.mktemp("models")
    prompts = {"query": "hi ", "document": "a "}
    pooling = modules.Pooling(SIZES["hidden_size"], "cls")
    return save_modules(folder / "prompted", save_bert(folder / "bert"), pooling, prompts=prompts)


@pytest.mark.parametrize("to", LIBRARIES)
@pytest.mark.parametrize("use", ["own", "none"])
def test_a_folder_with_prompts_and_another_pooling(to, use, prompted, tmp_path, run):
    model = Encoder.load(prompted)
    configuration = Configuration("fixed", 8, 2, str(prompted), None, "own", "dense", 3, use)
    (tmp_path / "texts").mkdir()
    text = "bead cab face dig jig egg hide age bag ice fig head bid jade cage deaf hedge"
    (tmp_path / "texts" / "a.txt").write_text(text, encoding="utf-8")
    _, lines = run(export(configuration, model, to).script, tmp_path / "texts")
    places, scores = searched(configuration, 0, tmp_path / "texts", model.with_prompts(use))
    assert [place for _, place, _ in lines] == places
    assert [float(score) for score, _, _ in lines] == pytest.approx(scores, abs=1e-4)


def test_a_model_s_prompts_are_written_out_unless_they_are_switched_off(encoder):
    asking = replace(encoder, prompts=Prompts({"query": "query: ", "passage": "passage: "}))
    on, off = (export(Configuration(prompts=use), asking, "langchain").script for use in ("own", "none"))
    assert 'QUERY_PROMPT, DOCUMENT_PROMPT = "query: ", "passage: "' in on
    assert 'QUERY_PROMPT, DOCUMENT_PROMPT = "", ""' in off


def test_a_model_of_another_architecture_keeps_its_pooling_and_documents_are_cut_as_before(encoder):
    other = LibraryModel("owner/other", None, encoder.tokenizer, 8, "", most_tokens=512)
    configuration = Configuration(model="owner/other", pooling="own")
    script = export(configuration, other, "langchain").script
    assert 'MODEL = "owner/other"' in script
    assert f"tokenizer = AutoTokenizer.from_pretrained({HUB_ID})" in script
    assert "Pooling(" not in script
    with pytest.raises(InputError, match="retriever maxsim reads the vectors of tokens"):
        export(replace(configuration, retriever="maxsim"), other, "langchain")


def test_settings_that_are_left_out_are_named(encoder):
    assert export(Configuration(), encoder, "haystack").left_out == ()
    [words] = export(Configuration("markdown"), encoder, "haystack").left_out
    assert words.startswith("headings of files other than Markdown")
    whole = Configuration("semantic", max_tokens=encoder.max_tokens)
    assert export(whole, encoder, "haystack").left_out == ()
    [words] = export(Configuration("semantic", max_tokens=64), encoder, "haystack").left_out
    assert words.startswith("the model's own token limit for single sentences")


@pytest.mark.parametrize(
    ("configuration", "to", "parent_tokens", "message"),
    [
        (Configuration(), "lang", 0, "library 'lang' is not one of sentence-transformers, langchain"),
        (Configuration(k=0), "langchain", 0, "k is 0: ask for 1 passage or more"),
        (Configuration(overlap=192), "langchain", 0, "overlap 192 does not fit a chunk of 192 tokens"),
        (Configuration(), "langchain", 64, "parent size 64 is smaller than the chunk size 192"),
        (Configuration(retriever="magic"), "langchain", 0, "retriever 'magic' is not one of dense"),
        (Configuration(pooling="magic"), "langchain", 0, "pooling 'magic' is not one of mean"),
        (Configuration(splitter="magic"), "langchain", 0, "splitter 'magic' is not one of"),
        (Configuration(prompts="magic"), "langchain", 0, "prompts 'magic' is not one of own"),
        (Configuration(max_tokens=9999), "langchain", 0, "max_tokens is 9999"),
    ],
)
def test_bad_settings_get_one_line(configuration, to, parent_tokens, message, encoder):
    with pytest.raises(InputError, match=message) as error:
        export(configuration, encoder, to, parent_tokens)
    assert "\n" not in str(error.value)


def test_versions_are_those_of_the_requirements():
    assert {library.package: library.tested for library in LIBRARIES.values()} == {
        library.package: version(library.package) for library in LIBRARIES.values()
    }


def test_scripts_are_tidy(encoder, tmp_path):
    """No import or function is missing or left over, and ruff would not format a line otherwise."""
    settings = [
        *EVERY.values(),
        *((Configuration(splitter, 64, 8), 128) for splitter in SPLITTERS),
        *((Configuration(splitter, retriever="dense", pooling="idf"), 0) for splitter in SPLITTERS),
        *((Configuration(pooling=pooling, retriever="maxsim"), 0) for pooling in POOLINGS),
    ]
    for to in LIBRARIES:
        for number, (configuration, parent_tokens) in enumerate(settings):
            script = export(configuration, encoder, to, parent_tokens).script
            (tmp_path / f"{to}_{number}.py").write_text(script, encoding="utf-8")
    config = [f"--config={ROOT / 'pyproject.toml'}", "--config=format.skip-magic-trailing-comma=false"]
    for command in (["check", "--ignore", "ANN,D10,D20,D40,SIM"], ["format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--no-cache", *config, str(tmp_path)],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout[:3000]


def test_a_cross_encoder_is_named_as_not_carried_over(encoder):
    with_reranker = replace(encoder, reranker=SimpleNamespace(name="words"))
    exported = export(Configuration(retriever="cross-encoder"), with_reranker, "sentence-transformers")
    assert any("cross-encoder" in words for words in exported.left_out)
    assert (
        exported.script
        == export(Configuration(retriever="weighted"), encoder, "sentence-transformers").script
    )
