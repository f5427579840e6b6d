"""Commands with a model that is on a server, and with vectors that are there already."""

import json
from collections import Counter

import numpy as np
import pytest

from engine.cli.loading import server_key
from engine.retrieval.relevance import everyday_questions
from tests.chat_server import closed_port
from tests.command_line import LIGHTHOUSE, printed, refusal, run
from tests.embedding_server import embedding_server

QUESTION = {"content": "Its keeper kept bees", "start_index": 55, "end_index": 75}


@pytest.fixture
def questions(tmp_path):
    path = tmp_path / "questions.jsonl"
    line = {"question": "Who kept bees?", "references": [QUESTION], "corpus_id": "lighthouse"}
    path.write_text(json.dumps(line) + "\n")
    return path


@pytest.fixture(scope="module")
def served(encoder):
    with embedding_server(encoder.encode) as server:
        yield server


def test_what_a_server_cannot_do_or_be_is_one_line(served, corpus):
    password = "http://me:s3cret@host#mini"
    with closed_port() as url:
        for model, options, reason in (
            (served.address, ("--retriever", "maxsim"), "retriever maxsim reads the vectors of tokens"),
            (served.address, ("--pooling", "mean"), "pools tokens itself, give 'own'"),
            (served.address, ("--prompts", "nine"), "prompts 'nine' is not one of own, none"),
            (f"{url}#mini", (), f"the connection to {url} failed"),
            (password, (), "and the key apart"),
        ):
            assert reason in refusal("search", "honey", "--corpus", corpus, "--model", model, *options)
    assert "s3cret" not in run("sweep", "--model", password).stderr


def test_embed_by_a_server_writes_its_vectors_and_keeps_them(served, corpus, encoder, tmp_path):
    out, cache = tmp_path / "vectors.npz", tmp_path / "cache.sqlite3"
    embed = ("embed", corpus, "--out", out, "--model", served.address, "--cache", cache)
    assert run(*embed).exit_code == 0
    expected = encoder.encode(["Knead the dough for ten minutes.", LIGHTHOUSE])
    assert np.load(out)["vectors"] == pytest.approx(expected, abs=1e-6)
    n_before = len(served.texts)
    assert run(*embed).exit_code == 0
    assert len(served.texts) == n_before + 1  # the text that tells the length of vectors


def test_the_key_is_sent_and_never_shown(encoder, corpus, tmp_path):
    out, cache = tmp_path / "vectors.npz", tmp_path / "cache.sqlite3"
    with embedding_server(encoder.encode, key="gl4ss-s3cret") as server:
        embed = ("embed", corpus, "--out", out, "--cache", cache, "--model", server.address)
        refused = run(*embed, OPENAI_API_KEY="gl4ss-s3cret")
        assert "(401, 'Incorrect API key provided'): give the key that it asks for" in refused.stderr
        done = run(*embed, "--json", GLASSBOX_SERVER_KEY="gl4ss-s3cret")
    assert done.exit_code == 0
    assert "gl4ss-s3cret" not in done.stdout + done.stderr + refused.stderr
    assert not any(b"gl4ss-s3cret" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_openais_key_is_for_openai_alone(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "theirs")
    monkeypatch.delenv("GLASSBOX_SERVER_KEY", raising=False)
    assert server_key("https://api.openai.com/v1#text-embedding-3-small") == "theirs"
    assert server_key("https://api.openai.com#text-embedding-3-small") == "theirs"
    for other in ("http://api.openai.com#a", "https://api.openai.com.evil.org#a", "http://localhost:1#a"):
        assert server_key(other) == ""
    monkeypatch.setenv("GLASSBOX_SERVER_KEY", "ours")
    assert server_key("http://localhost:1#a") == "ours"


def test_vectors_that_embed_wrote_are_searched_without_the_corpus(served, corpus, tmp_path):
    out = tmp_path / "vectors.npz"
    run("embed", corpus, "--out", out)
    search = ("search", "Who sold honey?")
    expected = printed(*search, "--corpus", corpus)["hits"]
    for model in ("all-MiniLM-L6-v2", served.address):
        found = printed(*search, "--vectors", out, "--model", model)["hits"]
        assert [hit["text"] for hit in found] == [hit["text"] for hit in expected]
        assert [hit["score"] for hit in found] == pytest.approx([hit["score"] for hit in expected], abs=1e-5)
    quotes = printed("ask", "Who kept bees?", "--vectors", out)["quotes"]
    assert any(quote["text"].startswith("Its keeper kept bees") for quote in quotes)


def test_vectors_that_cannot_be_searched_are_one_line(corpus, tmp_path):
    out = tmp_path / "vectors.npz"
    run("embed", corpus, "--out", out)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    for options, reason in (
        (("--vectors", out, "--pooling", "max"), "name the model, pooling and prompts that made them"),
        (("--vectors", out, "--parent-tokens", 512), "leave out --parent-tokens"),
        (("--vectors", out, "--corpus", corpus), "leave out --corpus, or --vectors"),
        (("--vectors", out, "--chunk-tokens", 16), "leave out --chunk-tokens, or --vectors"),
        (("--vectors", tmp_path / "broken.parquet"), "broken.parquet cannot be read"),
        (("--vectors", tmp_path / "none.npz"), "there is no file"),
    ):
        assert reason in refusal("search", "honey", *options)


def test_sweep_measures_given_vectors_beside_the_grid(served, corpus, questions, tmp_path):
    out, sizes = tmp_path / "vectors.npz", ("--chunk-tokens", 16, "--overlap", 0, "--pooling", "mean")
    run("embed", corpus, "--out", out, *sizes)
    n_before = len(served.texts)
    options = ("--retriever", "dense,bm25,maxsim", "--k", "1,3")
    models = f"all-MiniLM-L6-v2,{served.address}"
    search = ("sweep", "--corpus", corpus, "--questions", questions, "--model", models, *sizes, *options)
    rows = printed(*search, "--vectors", out)["rows"]
    given = [row for row in rows if row["splitter"] == "given"]
    ours = [row for row in rows if row["splitter"] != "given" and row["model"] == "all-MiniLM-L6-v2"]
    assert len(given) == len(ours) == 6
    for mine, other in zip(given, ours, strict=True):
        same = ("retriever", "k", "pooling", "model", "n_chunks", "mrr", "recall@k", "index_bytes")
        assert {name: mine[name] for name in same} == {name: other[name] for name in same}
    # the chunks of the grid and the question, but nothing of the file
    sent = Counter(served.texts[n_before:])
    assert {sent.pop(text) for text in everyday_questions()} == {1}
    assert len(sent) == 1 + ours[0]["n_chunks"] + 1
    search = ("sweep", "--corpus", corpus, "--questions", questions, "--model", served.address)
    theirs = printed(*search, "--vectors", out, "--retriever", "dense,maxsim")["rows"]
    assert [(row["splitter"], row["retriever"]) for row in theirs][1:] == [("given", "dense")]
    mixed = ("--model", f"{served.address},all-MiniLM-L6-v2", "--retriever", "maxsim")
    assert "reads the vectors of tokens" in run(*search, *mixed, "--vectors", out).stderr


def test_given_vectors_of_other_documents_are_refused(corpus, questions, tmp_path):
    out, weighed = tmp_path / "vectors.npz", tmp_path / "weighed.npz"
    run("embed", corpus / "lighthouse.md", "--out", out, "--chunk-tokens", 16, "--overlap", 0)
    run("embed", corpus, "--out", weighed, "--pooling", "idf")
    search = ("sweep", "--corpus", corpus, "--questions", questions, "--retriever", "dense")
    only = ("--document", "lighthouse.md")
    for options, reason in (
        (("--vectors", weighed, "--pooling", "idf", *only), "search all of their documents"),
        (("--vectors", weighed, "--pooling", "mean"), "name the model, pooling and prompts that made them"),
    ):
        assert reason in refusal(*search, *options)
    assert run(*search, "--vectors", out).exit_code == 0
    (corpus / "lighthouse.md").write_text(LIGHTHOUSE + " ", encoding="utf-8")
    assert run(*search, "--vectors", out).exit_code == 0
    (corpus / "lighthouse.md").write_text(LIGHTHOUSE.replace("honey", "wax"), encoding="utf-8")
    assert "of lighthouse.md: give the document that it was cut from" in refusal(*search, "--vectors", out)
    (corpus / "lighthouse.md").rename(corpus / "other.md")
    (tmp_path / "more.jsonl").write_text(questions.read_text().replace('"lighthouse"', '"other"'))
    line = refusal("sweep", "--corpus", corpus, "--questions", tmp_path / "more.jsonl", "--vectors", out)
    assert "other documents, such as 'lighthouse.md'" in line
