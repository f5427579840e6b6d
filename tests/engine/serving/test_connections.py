"""What a client may do to a server by sending slowly, too much, or nothing, and by leaving."""

import asyncio
import json
import socket
import threading
import time
from contextlib import ExitStack, closing

import numpy as np
import pytest

from engine.serving import connections, guard, reading
from engine.serving.served import RequestLimits, Served
from tests.engine_server import MODEL, engine_server

HEAD = (
    "POST {path} HTTP/1.1\r\nHost: localhost\r\n"
    "Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
)
LONG = "The lighthouse of Vardholm was built in 1891. " * 20_000  # of 900 kB


@pytest.fixture
def impatient(monkeypatch):
    """Waits that are over at once."""
    monkeypatch.setattr(connections, "IDLE_S", 0.4)
    monkeypatch.setattr(connections, "HEAD_S", 0.2)
    monkeypatch.setattr(guard, "BODY_S", 0.3)


def connected(running, received_bytes=2**16):
    """A connection, whose client's kernel takes so many bytes that were not read."""
    host, port = running.url.removeprefix("http://").split(":")
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, received_bytes)
    client.settimeout(30)
    client.connect((host, int(port)))
    return closing(client)


def request_of(body, path="/v1/embeddings"):
    content = json.dumps(body).encode()
    return HEAD.format(path=path, length=len(content)).encode() + content


def until_closed(client):
    """What a server sends until it closes the connection, and the seconds until then."""
    start, received = time.monotonic(), b""
    try:
        while piece := client.recv(2**16):
            received += piece
    except ConnectionResetError:
        pass
    return received, time.monotonic() - start


@pytest.mark.parametrize("begun", ["", "POST /v1/embeddings HTTP/1.1\r\nHost: local"])
def test_a_connection_without_a_request_is_closed(served, impatient, begun):
    with engine_server(served) as running, connected(running) as client:
        client.sendall(begun.encode())
        received, seconds = until_closed(client)
        assert received == b""
        assert seconds < 5


def test_headers_that_drip_are_closed_and_so_is_a_connection_kept_alive(served, impatient):
    with engine_server(served) as running, connected(running) as client:
        client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert client.recv(2**16).startswith(b"HTTP/1.1 200")
        client.setblocking(False)
        start, is_open = time.monotonic(), True
        while is_open:
            assert time.monotonic() < start + 5
            time.sleep(0.05)
            try:
                client.send(b"G")
                is_open = bool(client.recv(1))
            except BlockingIOError:
                pass
            except OSError:
                is_open = False


def test_bodies_that_drip_are_ended_and_take_no_place_of_whole_requests(served, impatient):
    with engine_server(served, RequestLimits(requests=2)) as running, ExitStack() as open_ones:
        dripping = [open_ones.enter_context(connected(running)) for _ in range(8)]
        for client in dripping:
            client.sendall(HEAD.format(path="/v1/embeddings", length=1000).encode() + b'{"model": "')
        assert running.embed("a").status_code == 200
        for client in dripping:
            received, seconds = until_closed(client)
            assert received.startswith(b"HTTP/1.1 408")
            assert b"the body came too slowly, 11 bytes of it" in received
            assert seconds < 5


def test_a_body_is_given_the_time_that_its_bytes_need(served, monkeypatch):
    monkeypatch.setattr(guard, "BODY_S", 0.3)
    monkeypatch.setattr(guard, "BODY_BYTES_PER_S", 1000)
    whole = request_of({"model": MODEL, "input": "a", "user": "u" * 3000})
    with engine_server(served) as running, connected(running) as client:
        for start in range(0, len(whole), 500):
            client.sendall(whole[start : start + 500])
            time.sleep(0.1)  # 0.6 s in all
        assert client.recv(2**16).startswith(b"HTTP/1.1 200")


def test_where_all_places_are_taken_the_connection_idle_for_longest_makes_room(served, monkeypatch):
    monkeypatch.setattr(connections, "most_connections", lambda: 3)
    with engine_server(served) as running, ExitStack() as open_ones:
        idle = [open_ones.enter_context(connected(running)) for _ in range(3)]
        assert running.get("/health").status_code == 200
        assert until_closed(idle[0])[0] == b""
        idle[2].sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert idle[2].recv(2**16).startswith(b"HTTP/1.1 200")


def test_an_answer_on_a_kept_connection_does_not_wait_for_the_client_to_confirm_the_headers(served):
    with engine_server(served) as running, connected(running) as client:
        times = []
        for _ in range(5):
            start, received = time.monotonic(), b""
            client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            while b"ready" not in received:
                received += client.recv(2**16)
            times.append(time.monotonic() - start)
    assert min(times) < 0.03  # with Nagle's algorithm it is 0.04 and more


def test_work_ends_where_its_client_leaves(encoder, monkeypatch):
    batches, first = [], threading.Event()

    def slow(self, key, items):
        batches.append(len(items))
        first.set()
        time.sleep(0.3)
        return np.zeros((len(items), 384), np.float32)

    monkeypatch.setattr(Served, "work", slow)
    with engine_server(Served(encoder)) as running:
        with connected(running) as client:
            client.sendall(request_of({"model": MODEL, "input": ["word " * 200] * 200}))
            assert first.wait(30)
        running.until_at_most("glassbox_requests_in_flight", 1)  # the one that asks
        running.until_at_most("glassbox_queued_tokens", 0)  # until the batch at work is done
        assert len(batches) <= 2
        assert 'status="499"' in running.get("/metrics").text


def test_an_answer_that_is_not_read_is_given_up(encoder, monkeypatch):
    monkeypatch.setattr(connections, "STALLED_S", 0.2)
    monkeypatch.setattr(connections, "READ_BYTES_PER_S", 1e9)
    monkeypatch.setattr(Served, "work", lambda self, key, items: np.full((len(items), 384), 1 / 3))
    with engine_server(Served(encoder)) as running, connected(running, 4096) as client:
        client.sendall(request_of({"model": MODEL, "input": ["a"] * 2048}))
        received = client.recv(1000)
        time.sleep(1)
        received += until_closed(client)[0]
    head, _, body = received.partition(b"\r\n\r\n")
    [length] = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]
    assert len(body) < int(length.split()[1])


def test_a_long_text_is_tokenized_in_part_and_beside_the_event_loop(served, monkeypatch):
    loops, lengths = [], []
    tokenizer, ids_batch = type(served.encoder.tokenizer), served.encoder.tokenizer.ids_batch

    def watched(self, texts):
        lengths.extend(map(len, texts))
        with pytest.raises(RuntimeError):
            loops.append(asyncio.get_running_loop())
        return ids_batch(texts)

    monkeypatch.setattr(tokenizer, "ids_batch", watched)
    with engine_server(served) as running:
        refused = running.embed(LONG).json()["error"]
        assert "text 0 has 920,000 characters, whose first 8,192 have" in refused["message"]
        [cut] = running.embed(["a lighthouse " * 100, LONG], truncate=True).json()["truncated"]
        assert (cut["index"], cut["characters"], cut["tokenized"], cut["read"]) == (1, 920_000, 8192, 256)
        asked = {"query": LONG, "documents": ["a"], "truncate": True}
        assert running.post("/rerank", asked).status_code == 200
    assert max(lengths) == 256 * reading.TOKEN_CHARACTERS
    assert loops == []


def test_texts_are_tokenized_until_their_tokens_exceed_the_limit(served, monkeypatch):
    monkeypatch.setattr(reading, "GROUP_CHARACTERS", 1000)
    with engine_server(served, RequestLimits(tokens=300)) as running:
        message = running.embed(["The cat sat. " * 20] * 2000).json()["error"]["message"]
    assert "328 tokens or more, over the 300 of a request" in message


@pytest.mark.parametrize(
    "body",
    [
        f'{{"model": "m", "input": [{",".join(["[1]"] * 100_000)}]}}',
        f'{{"model": "m", "input": "a", "user": [{",".join("1" * 400_000)}]}}',
        "[" * 1_000_000,
    ],
)
def test_a_body_of_many_values_is_refused_before_it_is_parsed(served, monkeypatch, body):
    with engine_server(served) as running:
        monkeypatch.setattr(json, "loads", None)
        headers = {"Content-Type": "application/json"}
        response = running.post("/v1/embeddings", content=body.encode(), headers=headers)
    assert response.status_code == 400
    assert "values or 4,048 lists in JSON: send fewer texts at once" in response.text


def test_the_marks_of_lists_within_texts_are_no_values(served):
    with engine_server(served) as running:
        text = '[{", ' * 50_000 + 'and \\" at the end \\'
        assert "truncated" in running.embed(text, truncate=True).json()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/embeddings", {"model": "m a " * 500, "input": [""]}),
        ("/v1/embeddings", {"model": MODEL, "input": "a", "prompt_name": "p " * 500}),
        ("/v1/embeddings", {"model": MODEL, "input": ["a", 10**300]}),
        ("/search", {"query": "a", "retriever": "r " * 500}),
        ("/v1/models/" + "m" * 500, None),
    ],
)
def test_messages_quote_little_of_a_request(served, path, body):
    with engine_server(served) as running:
        response = running.post(path, body) if body else running.get(path)
        assert response.status_code in (400, 404)
        assert len(response.json()["error"]["message"]) < 300
