"""What the app's server takes of visitors: pages of its own origins, and nothing that slows the others."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg

from ui.own_server import OwnAddresses, is_own
from ui.server_settings import PUBLIC


@pytest.mark.parametrize(
    ("origin", "host", "is_secure", "expected"),
    [
        ("http://localhost:8501", "localhost:8501", False, True),
        ("http://LOCALHOST:8501", "localhost:8501", False, True),
        ("https://a.example", "a.example", False, True),  # a proxy ends the encryption
        ("https://a.example:443", "a.example", True, True),
        ("http://a.example", "a.example:80", False, True),
        ("http://[::1]:8501", "[::1]:8501", False, True),
        ("http://localhost:9999", "localhost:8501", False, False),
        ("http://localhost", "localhost:8501", False, False),
        ("http://127.0.0.1:8501", "localhost:8501", False, False),
        ("http://a.example:443", "a.example", True, False),
        ("ftp://localhost:8501", "localhost:8501", False, False),
        ("null", "localhost:8501", False, False),
        ("http://[", "localhost:8501", False, False),
        ("http://localhost:x", "localhost:8501", False, False),
        ("", "localhost:8501", False, False),
    ],
)
def test_a_page_is_the_apps_own_by_scheme_host_and_port(origin, host, is_secure, expected):
    assert is_own(origin, host, is_secure) is expected


@pytest.mark.parametrize("is_public", [True, False])
def test_the_caches_of_a_public_server_are_not_cleared_by_a_visitor(monkeypatch, is_public):
    asked = BackMsg(clear_cache=True), BackMsg(stop_script=True)
    sent = [*(each.SerializeToString() for each in asked), b"\xff"]
    monkeypatch.setenv(PUBLIC, str(int(is_public)))
    left, received = iter(sent), []

    async def receive():
        return {"type": "websocket.receive", "bytes": next(left)}

    async def app(scope, receive, send):
        received.extend([(await receive())["bytes"] for _ in sent[is_public:]])

    scope = {"type": "websocket", "path": "/", "scheme": "ws", "headers": [(b"host", b"localhost:8501")]}
    with ThreadPoolExecutor() as pool:  # a browser of other tests may run a loop in this thread
        pool.submit(asyncio.run, OwnAddresses(app)(scope, receive, None)).result()
    assert received == sent[is_public:]
