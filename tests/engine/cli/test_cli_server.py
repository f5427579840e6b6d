"""Commands with a model that is on a server, and with vectors that are there already."""

import json

import numpy as np
import pytest

from engine.cli.loading import server_key
from engine.evaluation.embedding_server import REQUEST_TEXTS
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


def assert_same_hits(found, expected):
    assert [hit["text"] for hit in found] == [hit["text"] for hit in expected]
    assert [hit["score"] for hit in found] == pytest.approx([hit["score"] for hit in expected], abs=1e-5)


def test_search_by_a_server_finds_what_the_model_behind_it_does(served, corpus):
    search = ("search", "Who sold honey?", "--corpus", corpus, "--json")
    theirs, ours = run(*search, "--model", served.address), run(*search)
    assert theirs.exit_code == 0
    assert_same_hits(*(json.loads(result.stdout)["hits"] for result in (theirs, ours)))
    assert f"{served.address} is on a server" in theirs.stderr


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--retriever", "maxsim"), "retriever maxsim reads the vectors of tokens"),
        (("--pooling", "mean"), "pools tokens itself, give 'own'"),
        (("--prompts", "nine"), "prompts 'nine' is not one of own, none"),
    ],
)
def test_what_a_server_cannot_do_is_one_line(served, corpus, options, reason):
    assert reason in refusal("search", "honey", "--corpus", corpus, "--model", served.address, *options)


def test_ask_quotes_by_a_server(served, corpus):
    asked = ("ask", "Who kept bees?", "--corpus", corpus, "--quotes-only")
    [quote, *_] = printed(*asked, "--model", served.address)["quotes"]
    assert quote["text"].startswith("Its keeper kept bees")


def test_embed_by_a_server_writes_its_vectors_and_keeps_them(served, corpus, encoder, tmp_path):
    out, cache = tmp_path / "vectors.npz", tmp_path / "cache.sqlite3"
    embed = ("embed", corpus, "--out", out, "--model", served.address, "--cache", cache)
    assert run(*embed).exit_code == 0
    expected = encoder.encode(["Knead the dough for ten minutes.", LIGHTHOUSE])
    assert np.load(out)["vectors"] == pytest.approx(expected, abs=1e-6)
    n_before = len(served.texts)
    assert run(*embed).exit_code == 0
    assert len(served.texts) == n_before + 1  # the text that tells the length of vectors


def test_what_was_embedded_before_a_server_failed_is_not_embedded_again(encoder, tmp_path):
    texts = [f"Fact {number}." for number in range(REQUEST_TEXTS + 2)]
    (tmp_path / "facts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    embed = ("embed", tmp_path / "facts.jsonl", "--out", tmp_path / "out.npz", "--cache", tmp_path / "kept")
    full = [2]

    def status(n_before, _):
        return (503, "out of memory") if n_before in full else (200, "")

    with embedding_server(encoder.encode, status=status) as server:
        assert "503, 'out of memory'" in refusal(*embed, "--model", server.address)
        n_before = len(server.texts)
        assert run(*embed, "--model", server.address).exit_code == 0
        assert sorted(server.texts[n_before + 1 :]) == sorted(texts[REQUEST_TEXTS:])


def test_sweep_compares_a_server_with_the_encoder(served, corpus, questions):
    models = f"all-MiniLM-L6-v2,{served.address}"
    options = ("--chunk-tokens", 16, "--pooling", "mean", "--retriever", "dense,maxsim", "--json")
    result = run("sweep", "--corpus", corpus, "--questions", questions, "--model", models, *options)
    assert result.exit_code == 0
    rows = {(row["model"], row["retriever"]): row["mrr"] for row in json.loads(result.stdout)["rows"]}
    assert rows[served.address, "dense"] == rows["all-MiniLM-L6-v2", "dense"]
    assert (served.address, "maxsim") not in rows
    assert "of the grid: retriever maxsim reads the vectors of tokens" in result.stderr


def test_a_server_that_is_not_there_is_one_line(corpus):
    with closed_port() as url:
        for command in (("search", "x", "--corpus", corpus), ("sweep",)):
            assert f"the connection to {url} failed" in refusal(*command, "--model", f"{url}#mini")


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


def test_an_address_with_a_password_is_not_even_printed(corpus):
    for command in (("search", "x", "--corpus", corpus), ("sweep",)):
        result = run(*command, "--model", "http://me:s3cret@host#mini")
        assert result.exit_code == 2
        assert "and the key apart" in result.stderr
        assert "s3cret" not in result.stderr


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
        assert_same_hits(printed(*search, "--vectors", out, "--model", model)["hits"], expected)
    [quote, *_] = printed("ask", "Who kept bees?", "--vectors", out, "--quotes-only")["quotes"]
    assert quote["text"].startswith("Its keeper kept bees")


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


@pytest.mark.parametrize("pooling", ["mean", "idf"])
def test_sweep_measures_given_vectors_beside_the_grid(pooling, served, corpus, questions, tmp_path):
    out, sizes = tmp_path / "vectors.npz", ("--chunk-tokens", 16, "--overlap", 0, "--pooling", pooling)
    run("embed", corpus, "--out", out, *sizes)
    n_before = len(served.texts)
    options = ("--retriever", "dense,bm25,maxsim", "--k", "1,3")
    models = "all-MiniLM-L6-v2" if pooling == "idf" else f"all-MiniLM-L6-v2,{served.address}"
    search = ("sweep", "--corpus", corpus, "--questions", questions, "--model", models, *sizes, *options)
    rows = printed(*search, "--vectors", out)["rows"]
    given = [row for row in rows if row["splitter"] == "given"]
    ours = [row for row in rows if row["splitter"] != "given" and row["model"] == "all-MiniLM-L6-v2"]
    assert len(given) == len(ours) == 6
    for mine, other in zip(given, ours, strict=True):
        same = ("retriever", "k", "pooling", "model", "n_chunks", "mrr", "recall@k", "index_bytes")
        assert {name: mine[name] for name in same} == {name: other[name] for name in same}
    if pooling == "mean":  # the chunks of the grid and the question, but nothing of the file
        assert len(set(served.texts[n_before:])) == 1 + ours[0]["n_chunks"] + 1
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
