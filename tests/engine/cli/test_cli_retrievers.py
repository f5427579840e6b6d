import pytest

from tests.command_line import printed, refusal, run
from tests.engine.models.test_multi_vector import save_stanford
from tests.engine.models.test_sparse_encoder import save_masked_lm
from tests.text_files import write_files

WORDS = "Vardholm bread: when it is finished, and finished it is when brown, take it out."
MEANT = "The building of the tower came to its end in 1891."
QUESTION = "When was the Vardholm tower finished?"


@pytest.fixture
def corpus(tmp_path):
    return write_files(tmp_path / "notes", {"bread.md": WORDS, "tower.md": MEANT})


@pytest.mark.parametrize("command", [("search", QUESTION), ("ask", QUESTION), ("sweep",)])
def test_reranker_and_retriever_have_to_fit_before_anything_is_loaded(corpus, command):
    search = (*command, "--corpus", corpus, "--retriever")
    assert "and retriever bm25 does not use it" in refusal(*search, "bm25", "--reranker", "some/model")
    assert "'best' is not one of" in refusal(*search, "best", "--reranker", "some/model")
    if command != ("sweep",):  # which leaves those configurations out
        result = run(*search, "late")
        assert result.stderr.startswith("error: retriever late needs a late-interaction model: give")


def test_models_beside_the_encoder_are_loaded_by_their_options(corpus, tmp_path):
    words, tokens = save_masked_lm(tmp_path / "words"), save_stanford(tmp_path / "tokens")
    search = ("search", QUESTION, "--corpus", corpus, "--retriever")
    loaded = run(*search, "sparse-weighted", "--sparse", words).stderr
    assert "words: learned sparse model, 1" in loaded
    for retriever in ("late", "late-reordered"):
        found = printed(*search, retriever, "--multi-vector", tokens)
        assert {hit["document"] for hit in found["hits"]} == {"bread.md", "tower.md"}
    index = ("index", corpus, "--out", tmp_path / "index", "--sparse", words)
    assert "Expanding 2 chunks" in run(*index).stderr
    assert run(*index[:4]).exit_code == 0  # which keeps it
    again = run("search", QUESTION, "--index", tmp_path / "index", "--retriever", "sparse")
    assert "words: learned sparse model" in again.stderr
    asked = ("sweep", "--corpus", corpus, "--questions", questions(tmp_path), "--sparse", words)
    rows = printed(*asked, "--retriever", "sparse,late,dense")["rows"]
    assert [row["retriever"] for row in rows] == ["sparse", "dense"]
    rows += printed(*asked[:5], "--multi-vector", tokens, "--retriever", "late")["rows"]
    assert all(row["index_bytes"] > 0 for row in rows)


def questions(folder):
    (folder / "own.csv").write_text(f"question,passage\n{QUESTION},came to its end\n")
    return folder / "own.csv"


def test_a_precision_that_is_slower_on_this_processor_is_told(corpus, monkeypatch):
    for module in ("engine.models.precision", "engine.cli.loading"):
        monkeypatch.setattr(f"{module}.is_slower", lambda name: name != "float32")
    search = ("search", QUESTION, "--corpus", corpus, "--precision")
    told = "int8 takes longer than float32 on this processor"
    assert told in run(*search, "int8").stderr
    assert told not in run(*search, "auto").stderr
