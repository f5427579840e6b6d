import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.documents.document import Document
from engine.documents.splitters import Splitting, split
from engine.errors import InputError, ModelUnavailableError
from engine.evaluation.embedding_server import REQUEST_TEXTS, EmbeddingServer, is_server, server_at
from engine.evaluation.library_model import load_model
from engine.evaluation.sweep import SweepInputs
from engine.evaluation.sweep_store import stamp_of
from engine.generation.answering import ask
from engine.generation.passage_search import retrieve
from engine.generation.settings import AnswerSettings, SearchSettings
from engine.generation.writer import Writer
from engine.retrieval.embedding_model import embedding_spec
from engine.retrieval.index import build_index
from engine.retrieval.relevance import null_scores_of
from engine.retrieval.retrievers import usable_retrievers
from engine.retrieval.vector_cache import VectorCache, cached_encode
from tests.embedding_server import embedding_server

TEXT = "The lighthouse of Vardholm was painted green in 1931.\n\nIts keeper kept bees and sold the honey."
FACTS = [f"Fact number {number} is about bees." for number in range(3 * REQUEST_TEXTS)]


def fours(texts):
    """Vectors of length 4 that tell texts apart, none of length 1."""
    return [[len(text), sum(map(ord, text)) % 97, text.count("e"), 1] for text in texts]


@pytest.fixture(scope="module")
def served(encoder):
    """A server with our encoder behind it."""
    with embedding_server(encoder.encode) as server:
        yield server


@pytest.fixture(scope="module")
def model(served, encoder):
    return EmbeddingServer.connect(served.address, encoder.tokenizer)


def connected(server, encoder, **settings):
    return EmbeddingServer.connect(server.address, encoder.tokenizer, **settings)


@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=2 * REQUEST_TEXTS))
def test_vectors_through_a_server_are_those_of_the_model_behind_it(texts, model, encoder):
    found = model.encode_as("document", texts, ["own"])["own"]
    assert found.dtype == np.float32
    assert found == pytest.approx(encoder.encode(texts), abs=1e-6)
    assert np.linalg.norm(found, axis=1) == pytest.approx(1, abs=1e-6)


def test_a_path_is_kept_and_added_where_there_is_none():
    assert server_at("http://localhost:11434#a:b").url == "http://localhost:11434/v1"
    assert server_at("http://localhost:11434/#a").url == "http://localhost:11434/v1"
    assert server_at("https://here/api/v3#a/b").url == "https://here/api/v3"
    assert server_at("https://here/api/v3#a/b").model == "a/b"
    assert is_server("HTTPS://here#a")
    assert not is_server("owner/name")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("http://me:secret@host#a", r"give .*, and the key apart"),
        ("http://host?key=secret#a", r"give .*, and the key apart"),
        ("http://localhost:1", "names no model: give http://host:port#model-name"),
        ("http://#a", "begins with http:// or https://"),
        ("http://[#a", "begins with http:// or https://"),
        ("http://localhost:99999#a", "begins with http:// or https://"),
        ("http://①②#a", "begins with http:// or https://"),
    ],
)
def test_another_form_of_address_is_refused(address, message):
    with pytest.raises(InputError, match=message) as error:
        load_model(address)
    assert "secret" not in str(error.value)


def test_the_key_goes_to_its_server_and_stands_nowhere_else(encoder, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    with embedding_server(fours, key="secret") as server:
        mine = connected(server, encoder, api_key="secret")
        mine.encode_as("query", ["a"], ["own"])
        with pytest.raises(ModelUnavailableError, match=r"401, 'Incorrect API key .*give the key"):
            connected(server, encoder)  # the key in the environment is for no server
    known = repr(mine) + mine.name + str(embedding_spec(mine)) + mine.fingerprint
    assert "secret" not in known + stamp_of(SweepInputs([], [], [], {mine.name: mine}))
    with (
        embedding_server(fours, status=lambda *_: (403, "key secret\n may not")) as server,
        pytest.raises(ModelUnavailableError, match=r"403, 'key \[key\] may not'"),
    ):
        connected(server, encoder, api_key="secret")


def with_data(change):
    """Answer with other data."""
    return lambda n_before, content: {**content, "data": change(content["data"])}


def with_vector(vector):
    return with_data(lambda data: [{**each, "embedding": vector} for each in data])


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda *_: b"<html>Welcome</html>", "does not speak as OpenAI's servers do"),
        (with_data(lambda data: data[:-1]), "does not speak as OpenAI's servers do|gave 0 vectors"),
        (with_data(lambda data: data * 2), "gave 2 vectors, numbered \\[0, 0\\], for 1 texts"),
        (with_data(lambda data: [{**data[0], "index": 7}]), "gave 1 vectors, numbered \\[7\\], for 1 texts"),
        (with_vector("words"), "does not speak as OpenAI's servers do"),
        (with_vector([[1.0, 2.0], [3.0]]), "does not speak as OpenAI's servers do"),
        (with_vector([[1.0, 2.0]]), re.escape("an array of shape (1, 2) in place of a vector")),
        (with_vector([1.0, float("inf")]), "zero or not finite"),
        (with_vector([1.0, None]), "zero or not finite"),
        (with_vector([0.0, 0.0]), "zero or not finite"),
    ],
)
def test_what_is_no_answer_of_vectors_is_one_line(answer, message, encoder):
    with (
        embedding_server(fours, answer=answer) as server,
        pytest.raises(ModelUnavailableError, match=message) as error,
    ):
        connected(server, encoder)
    assert server.host in str(error.value)
    assert "\n" not in str(error.value)


def test_a_text_that_is_too_long_is_said_by_the_server(encoder):
    def shorter(n_before, texts):
        return (400, "input <b>exceeds</b> 512 tokens") if "long" in texts else (200, "")

    with embedding_server(fours, status=shorter) as server:
        mine = connected(server, encoder)
        with pytest.raises(
            ModelUnavailableError, match=r"400, 'input <b>exceeds</b> 512 tokens'.*lower the chunk size"
        ):
            mine.encode_as("document", ["long"], ["own"])


def test_what_was_embedded_before_a_failure_is_kept(encoder):
    """The second request of texts has vectors of another length; then the server is mended."""
    broken = [2]

    def shorter(n_before, content):
        is_broken = n_before in broken
        return with_vector([1.0, 2.0])(n_before, content) if is_broken else content

    with embedding_server(fours, answer=shorter) as server:
        mine, cache = connected(server, encoder), VectorCache()
        with pytest.raises(ModelUnavailableError, match="a vector of 2 numbers, and of 4 before"):
            cached_encode(FACTS, mine, None, None, cache)
        assert cache.n_vectors == REQUEST_TEXTS
        n_before = len(server.texts)
        found = cached_encode(FACTS, mine, None, None, cache)
        assert server.texts[n_before:] == FACTS[REQUEST_TEXTS:]
        assert found == pytest.approx(mine.encode_as("document", FACTS, ["own"])["own"])


def test_the_limit_and_the_pooling_are_the_servers_own(model):
    assert model.with_prompts("own") is model
    with pytest.raises(InputError, match=r"max_tokens is 256: how many tokens .* is up to the server"):
        model.encode_as("query", ["a"], ["own"], max_tokens=256)
    with pytest.raises(InputError, match=r"pooling is 'mean': .* pools tokens itself"):
        model.encode_as("query", ["a"], ["mean"])
    with pytest.raises(InputError, match="text 0 holds half of a surrogate pair"):
        model.encode_as("query", ["\ud800"], ["own"])
    assert "no known limit" in str(embedding_spec(model))


@pytest.fixture(scope="module")
def documents():
    return [Document("light.md", TEXT), Document("bread.md", "Knead the dough for ten minutes. Bake it.")]


def cut(documents, encoder, n_tokens):
    splitting = Splitting("sentences", n_tokens, 0)
    return [chunk for each in documents for chunk in split(each, encoder.tokenizer, splitting)]


def test_an_index_of_it_is_searched_by_every_retriever_without_token_vectors(model, encoder, documents):
    chunks, question = cut(documents, encoder, 24), "Who had bees?"
    theirs, ours = build_index(chunks, model), build_index(chunks, encoder)
    by_chance = null_scores_of(theirs, model)
    assert by_chance.bests == pytest.approx(null_scores_of(ours, encoder).bests, abs=1e-5)
    for retriever in usable_retrievers(encoder):
        settings = SearchSettings(2, retriever=retriever)
        if retriever == "maxsim":
            with pytest.raises(InputError, match="gives only those of whole texts: choose another"):
                retrieve(question, theirs, model, settings, by_chance)
            continue
        found = retrieve(question, theirs, model, settings, by_chance).hits
        expected = retrieve(question, ours, encoder, settings, by_chance).hits
        assert [hit.chunk for hit in found] == [hit.chunk for hit in expected]
        assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected], abs=1e-5)


def test_answers_quote_the_sentences_that_it_finds_nearest(model, documents, decoder):
    index = build_index(cut(documents, model, 64), model, documents=documents)
    settings = AnswerSettings(SearchSettings(2, min_relevance=0), write=False)
    answer = ask("Who kept bees?", index, model, Writer(decoder), settings)
    assert answer.quotes[0].text.startswith("Its keeper kept bees")
    assert answer.evidence[0].cosine == max(quote.cosine for quote in answer.evidence)
