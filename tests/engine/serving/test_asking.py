"""Search and answers over HTTP equal those of the engine; a stream ends where its client leaves."""

import json
import time

import httpx
import pytest

from engine.generation import writer as writers
from engine.generation.answer_json import answer_json, found_json
from engine.generation.answering import ask
from engine.generation.passage_search import retrieve
from engine.generation.settings import AnswerSettings, SearchSettings
from engine.generation.writer import Writer
from engine.kernels.primitives import prepare_compiled
from engine.retrieval.relevance import null_scores_of
from engine.retrieval.retrievers import DEFAULT_RETRIEVER
from engine.serving.served import Limits, Searched, Served
from tests.engine_server import engine_server
from tests.indexes import DOCUMENTS, QUESTION, index_of_documents

SETTINGS = AnswerSettings(SearchSettings(2, 0), max_new_tokens=16)


@pytest.fixture(scope="module")
def served(encoder, decoder):
    prepare_compiled().join()  # before them, results differ by rounding
    index = index_of_documents(DOCUMENTS, encoder)
    searched = Searched(index, null_scores_of(index, encoder), Writer(decoder), SETTINGS)
    return Served(encoder, searched=searched)


@pytest.fixture(scope="module")
def server(served):
    with engine_server(served) as running:
        yield running


def without_times(content):
    return {name: value for name, value in json.loads(json.dumps(content)).items() if name != "timings"}


def events_of(lines):
    """Names and contents of server-sent events."""
    name = ""
    for line in lines:
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            yield name, json.loads(value)


@pytest.mark.parametrize(("k", "retriever"), [(3, "dense"), (1, "bm25"), (2, None)])
def test_a_search_finds_what_the_engine_finds(server, served, encoder, k, retriever):
    answer = server.post("/search", {"query": QUESTION, "k": k, "retriever": retriever})
    settings = SearchSettings(k, 0, retriever or DEFAULT_RETRIEVER)
    found = retrieve(QUESTION, served.searched.index, encoder, settings, served.searched.null_scores)
    expected = without_times(found_json(QUESTION, found))
    assert without_times(answer.json()) == {**expected, "retriever": settings.retriever}


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/search", {"query": ""}, "query: text 0 is empty"),
        ("/search", {"query": "   "}, "the question is empty"),
        ("/search", {"query": "a", "k": 0}, "k: input should be greater than or equal to 1"),
        ("/search", {"query": "a", "retriever": "magic"}, "retriever 'magic' is not one of"),
        ("/search", {"query": "a", "retriever": "cross-encoder"}, "cross-encoder"),
        ("/search", {"query": "word " * 300}, "text 0 has 302 tokens"),
        ("/ask", {"question": "   "}, "the question is empty"),
        ("/ask", {"question": "a", "retriever": "magic"}, "retriever 'magic' is not one of"),
        ("/ask", {"question": "a", "after": [{"text": "b"}]}, "after"),
    ],
)
def test_questions_that_cannot_be_asked_are_refused_with_a_line(server, path, body, message):
    response = server.post(path, body)
    assert response.status_code == 400
    assert message in response.json()["error"]["message"]


def test_an_answer_comes_as_quotes_then_words_then_checks(server, served, encoder):
    searched = served.searched
    expected = answer_json(
        ask(QUESTION, searched.index, encoder, searched.writer, SETTINGS, searched.null_scores)
    )
    with httpx.stream("POST", f"{server.url}/ask", json={"question": QUESTION}, timeout=60) as response:
        assert response.headers["Content-Type"].startswith("text/event-stream")
        first, *pieces, (last, answer) = events_of(response.iter_lines())
    assert first == ("quotes", {"quotes": expected["quotes"]})
    assert {name for name, _ in pieces} == {"text"}
    assert "".join(content["text"] for _, content in pieces).strip() == expected["text"]
    assert last == "answer"
    assert without_times(answer) == without_times(expected)
    whole = server.post("/ask", {"question": QUESTION, "stream": False}).json()
    assert without_times(whole) == without_times(expected)


def test_a_question_follows_on_those_before(server):
    after = [{"question": QUESTION, "answer": "In 1891."}]
    answer = server.post("/ask", {"question": "And by whom?", "after": after, "stream": False}).json()
    assert "Vardholm tower" in answer["question"]


def slow_tokens(monkeypatch, seconds):
    """Have every token take its time; return the list of those that were written."""
    written, write = [], writers.Writer.generate

    def slowly(*arguments):
        for token in write(*arguments):
            time.sleep(seconds)
            written.append(token)
            yield token

    monkeypatch.setattr(writers.Writer, "generate", slowly)
    return written


def test_an_answer_ends_where_its_client_leaves(served, monkeypatch):
    written = slow_tokens(monkeypatch, 0.2)
    with engine_server(served) as running:
        with httpx.stream("POST", f"{running.url}/ask", json={"question": QUESTION}, timeout=60) as response:
            events = events_of(response.iter_lines())
            while next(events)[0] != "text":
                pass
        left_at = len(written)
        running.post("/ask", {"question": "   ", "stream": False})  # answered once the first has ended
    assert len(written) <= left_at + 2


def test_an_answer_that_takes_too_long_ends_with_the_words_so_far(served, monkeypatch):
    written = slow_tokens(monkeypatch, 0.3)
    with engine_server(served, Limits(seconds=3)) as running:
        answer = running.post("/ask", {"question": QUESTION}).text
    events = dict(events_of(answer.splitlines()))
    assert 1 <= len(written) < SETTINGS.max_new_tokens
    assert events["answer"]["quotes"]
