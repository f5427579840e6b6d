"""Search and answers over HTTP equal those of the engine; a stream ends where its client leaves."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace

import httpx
import pytest

from engine.errors import DocumentError
from engine.generation import writer as writers
from engine.generation.answer_json import answer_json, found_answer_json, found_json
from engine.generation.answering import ask
from engine.generation.passage_search import retrieve
from engine.generation.settings import AnswerSettings, SearchSettings
from engine.generation.writer import Writer
from engine.kernels.primitives import prepare_compiled
from engine.retrieval.index import Index
from engine.retrieval.relevance import null_scores_of
from engine.retrieval.retrievers import DEFAULT_RETRIEVER
from engine.serving import asking
from engine.serving.served import RequestLimits, Searched, Served
from tests.engine_server import engine_server
from tests.indexes import DOCUMENTS, QUESTION, index_of_documents

NOTES = ("page 2 is a picture without text",)
SETTINGS = AnswerSettings(SearchSettings(2, 0), max_new_tokens=16, write=True)


@pytest.fixture(scope="module")
def served(encoder, decoder, reader):
    prepare_compiled().join()  # before them, results differ by rounding
    index = index_of_documents(DOCUMENTS, encoder)
    documents = {name: replace(each, notes=NOTES) for name, each in index.documents.items()}
    index = replace(index, documents=documents)
    searched = Searched(index, null_scores_of(index, encoder), SETTINGS, reader, Writer(decoder))
    return Served(encoder, searched=searched)


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
        ("/ask", {"question": "a", "write": "yes, please"}, "write"),
    ],
)
def test_questions_that_cannot_be_asked_are_refused_with_a_line(server, path, body, message):
    response = server.post(path, body)
    assert response.status_code == 400
    assert message in response.json()["error"]["message"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/search", {"query": "a"}),
        ("/ask", {"question": "a", "write": False}),
        ("/ask", {"question": "a", "write": False, "stream": False}),
    ],
)
def test_what_no_request_can_help_is_a_503(server, monkeypatch, path, body):
    def fail(*arguments):
        raise DocumentError("Milvus failed")

    monkeypatch.setattr(Index, "nearest", fail)
    monkeypatch.setattr(Index, "vectors_of", fail)
    answer = server.post(path, body)
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "unavailable"


@pytest.fixture(scope="module")
def asked(served):
    """A function giving the answer of the engine, with a text or without one."""

    def asked(write):
        own, settings = served.searched, replace(SETTINGS, write=write)
        return ask(
            QUESTION, own.index, served.encoder, own.writer, settings, own.null_scores, reader=own.reader
        )

    return asked


def test_an_answer_comes_as_words_and_quotes_then_a_text_then_its_checks(server, asked):
    expected = answer_json(asked(write=True))
    found = found_answer_json(asked(write=False))
    with httpx.stream("POST", f"{server.url}/ask", json={"question": QUESTION}, timeout=60) as response:
        assert response.headers["Content-Type"].startswith("text/event-stream")
        first, *pieces, (last, answer) = events_of(response.iter_lines())
    assert first == ("found", found)
    assert found["answer"]["text"] == "1891"
    assert found["notes"][found["answer"]["document"]] == [*NOTES]
    assert {name for name, _ in pieces} == {"text"}
    assert "".join(content["text"] for _, content in pieces).strip() == expected["text"]
    assert last == "answer"
    assert without_times(answer) == without_times(expected)
    whole = server.post("/ask", {"question": QUESTION, "stream": False}).json()
    assert without_times(whole) == without_times(expected)


def test_a_request_says_whether_a_text_is_written(server, served, asked):
    response = server.post("/ask", {"question": QUESTION, "write": False})
    (first, found), (last, answer) = events_of(response.text.splitlines())
    assert (first, last, found) == ("found", "answer", found_answer_json(asked(write=False)))
    assert without_times(answer) == without_times(answer_json(asked(write=False)))
    searched = replace(served.searched, writer=None, settings=replace(SETTINGS, write=False))
    with engine_server(replace(served, searched=searched)) as silent:
        assert silent.post("/ask", {"question": QUESTION, "stream": False}).json()["text"] == ""
        refused = silent.post("/ask", {"question": QUESTION, "write": True})
    assert refused.status_code == 400
    assert "start it with --write" in refused.json()["error"]["message"]
    assert refused.json()["error"]["param"] == "write"


@pytest.fixture
def may_write(monkeypatch):
    """An event before which no text is written."""
    event, write = threading.Event(), writers.Writer.generate

    def waiting(*arguments):
        assert event.wait(60)
        yield from write(*arguments)

    monkeypatch.setattr(writers.Writer, "generate", waiting)
    yield event
    event.set()


def test_twelve_people_are_answered_at_once_also_while_a_text_is_written(served, may_write):
    with engine_server(served) as running, ThreadPoolExecutor(13) as people:
        text = people.submit(running.post, "/ask", {"question": QUESTION, "stream": False})
        body = {"question": QUESTION, "stream": False, "write": False}
        answers = list(people.map(lambda number: running.post("/ask", body), range(12)))
        assert not text.done()
        may_write.set()
        assert text.result().json()["text"]
    assert [answer.status_code for answer in answers] == [200] * 12
    assert {answer.json()["answer"]["text"] for answer in answers} == {"1891"}


def test_texts_wait_for_the_model_up_to_a_limit_with_what_was_found_before(served, may_write, monkeypatch):
    monkeypatch.setattr(asking, "QUEUED_ANSWERS", 2)
    with engine_server(served) as running, ExitStack() as streams:
        body = {"json": {"question": QUESTION}, "timeout": 60}
        waiting = [
            streams.enter_context(httpx.stream("POST", f"{running.url}/ask", **body)) for _ in range(2)
        ]
        events = [events_of(response.iter_lines()) for response in waiting]
        assert [next(each)[0] for each in events] == ["found", "found"]
        refused = running.post("/ask", {"question": QUESTION})
        assert (refused.status_code, "Retry-After" in refused.headers) == (503, True)
        assert "2 questions wait for the language model" in refused.json()["error"]["message"]
        assert running.post("/ask", {"question": QUESTION, "write": False}).status_code == 200
        streams.close()  # those that waited leave the queue
        may_write.set()
        body = {"question": QUESTION, "stream": False}
        until = time.monotonic() + 60
        while (answer := running.post("/ask", body)).status_code == 503 and time.monotonic() < until:
            time.sleep(0.05)
        assert answer.json()["text"]


def test_a_question_follows_on_those_before(server):
    after = [{"question": QUESTION, "answer": "In 1891."}]
    answer = server.post("/ask", {"question": "And by whom?", "after": after, "stream": False}).json()
    assert "Vardholm tower" in answer["question"]


def slow_tokens(monkeypatch, seconds, writes=Writer):
    """Have every token take its time; return the list of those that were written."""
    written, write = [], writes.generate

    def slowly(*arguments, **settings):
        for token in write(*arguments, **settings):
            time.sleep(seconds)
            written.append(token)
            yield token

    monkeypatch.setattr(writes, "generate", slowly)
    return written


def test_an_answer_ends_where_its_client_leaves(served, monkeypatch):
    written = slow_tokens(monkeypatch, 0.2)
    with engine_server(served) as running:
        with httpx.stream("POST", f"{running.url}/ask", json={"question": QUESTION}, timeout=60) as response:
            events = events_of(response.iter_lines())
            while next(events)[0] != "text":
                pass
        left_at = len(written)
        running.post("/ask", {"question": QUESTION, "stream": False})  # answered once the first has ended
    assert len(written) <= left_at + 2 + SETTINGS.max_new_tokens


def test_an_answer_that_takes_too_long_ends_with_the_words_so_far(served, monkeypatch):
    written = slow_tokens(monkeypatch, 0.3)
    with engine_server(served, RequestLimits(seconds=3)) as running:
        answer = running.post("/ask", {"question": QUESTION}).text
    events = dict(events_of(answer.splitlines()))
    assert 1 <= len(written) < SETTINGS.max_new_tokens
    assert events["answer"]["quotes"]
