"""Servers that send other addresses, endless answers, bombs or nothing: an error within bounds."""

import gzip
import socket
import threading
from contextlib import contextmanager, suppress

import pytest

from engine.errors import InputError, ModelUnavailableError
from engine.evaluation.embedding_server import EmbeddingServer
from engine.generation import bounded_response, server
from engine.generation.server import Server

PROMPT = "the secret prompt"
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
MEGABYTE = 1024**2
BOMB = gzip.compress(b"[" * 100 * MEGABYTE)


@contextmanager
def raw_server(answer):
    """A server that reads a request, and sends the pieces of ``answer`` until the client hangs up."""
    listener, requests, ended = socket.create_server(("127.0.0.1", 0)), [], threading.Event()

    def serve():
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=speak, args=(connection,), daemon=True).start()

    def speak(connection):
        with suppress(OSError), connection:
            requests.append(connection.recv(65536))
            for piece in answer(ended):
                connection.sendall(piece)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1", requests
    finally:
        ended.set()
        listener.close()


def at_once(*pieces):
    return lambda ended: pieces


def endlessly(first, piece, pause=0.0):
    def answer(ended):
        yield first
        while not ended.wait(pause):
            yield piece

    return answer


def models(url):
    return Server(url).models()


def chat(url):
    return list(Server(url, "mason").generate([{"role": "user", "content": PROMPT}]))


def embeddings(url):
    return EmbeddingServer.connect(f"{url}#mini", tokenizer=None)


@pytest.fixture
def _short(monkeypatch):
    for name in ("LIST_S", "EMBEDDINGS_S", "ANSWER_S"):
        monkeypatch.setattr(server, name, 0.25)
    monkeypatch.setattr("engine.evaluation.embedding_server.EMBEDDINGS_S", 0.25)
    monkeypatch.setattr(bounded_response, "MAX_BYTES", MEGABYTE)


@pytest.mark.parametrize("ask", [models, chat, embeddings])
def test_a_redirection_is_not_followed(ask):
    with raw_server(at_once(OK + b"Content-Length: 2\r\n\r\n{}")) as (other, stolen):
        moved = f"HTTP/1.1 307 Moved\r\nLocation: {other}/x\r\nContent-Length: 0\r\n\r\n".encode()
        with (
            raw_server(at_once(moved)) as (url, requests),
            pytest.raises(ModelUnavailableError, match="another address, which is not asked"),
        ):
            ask(url)
        assert len(requests) == 1
        assert not stolen


ANSWERS = {
    "endless answer": (endlessly(OK + b"\r\n", b" " * 65536), r"over 1 MB|too long in all"),
    "endless stream": (endlessly(EVENTS, b"data: " + b"x" * 65536), r"over 1 MB|too long in all"),
    "bomb": (
        at_once(OK + f"Content-Encoding: gzip\r\nContent-Length: {len(BOMB)}\r\n\r\n".encode() + BOMB),
        "packs its answer",
    ),
    "slow header": (endlessly(b"HTTP/1.1 200 OK\r\nX: ", b"x", pause=0.05), "did not answer in time"),
    "slow answer": (endlessly(OK + b"\r\n", b" ", pause=0.05), "did not answer in time"),
    "silence": (endlessly(b"", b"", pause=5), "did not answer in time"),
    "deep answer": (
        at_once(OK + b"Content-Length: 200000\r\n\r\n" + b"[" * 200_000),
        r"does not speak|before the first word|connection|in time",
    ),
}


@pytest.mark.usefixtures("_short")
@pytest.mark.parametrize("case", ANSWERS)
@pytest.mark.parametrize("ask", [models, chat, embeddings])
def test_an_answer_ends_within_bytes_and_seconds(ask, case):
    answer, reason = ANSWERS[case]
    with raw_server(answer) as (url, _), pytest.raises(ModelUnavailableError, match=reason) as error:
        ask(url)
    assert len(str(error.value)) < 500


def test_no_packed_answer_is_asked_for():
    with raw_server(at_once(OK + b'Content-Length: 12\r\n\r\n{"data": []}')) as (url, requests):
        assert models(url) == []
    assert b"accept-encoding: identity" in requests[0].lower()


def test_a_list_of_models_is_cut():
    body = b'{"data": [' + b",".join([b'{"id": "%s"}' % (b"m" * 1000)] * 2000) + b"]}"
    head = OK + f"Content-Length: {len(body)}\r\n\r\n".encode()
    with raw_server(at_once(head + body)) as (url, _):
        names = models(url)
    assert len(names) == server.MAX_MODELS
    assert max(map(len, names)) == server.MAX_NAME


def test_the_words_of_a_server_are_quoted_in_part():
    words = b"\\u001b[31m\\u202e" + b"x" * 10_000
    body = b'{"error": {"message": "%s"}}' % words
    head = b"HTTP/1.1 500 No\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    with raw_server(at_once(head + body)) as (url, _), pytest.raises(ModelUnavailableError) as error:
        models(url)
    assert len(str(error.value)) < 500
    assert str(error.value).isprintable()


@pytest.mark.parametrize(
    "url",
    [
        "http://a b/v1",
        "http://a\0b/v1",
        "http://a\nb/v1",
        "http://[::1/v1",
        "http://<x>/v1",
        "http://%zz/v1",
        "http://..../v1",
        f"http://{'a' * 64}.com/v1",
        f"http://{'a.' * 2000}com/v1",
        "http://a:99999/v1",
        "http://xn--a/v1",
        "http://\ud800/v1",
    ],
)
@pytest.mark.parametrize("ask", [models, chat])
def test_a_host_that_cannot_be_is_refused_by_one_line(ask, url):
    with pytest.raises((InputError, ModelUnavailableError)):
        ask(url)
