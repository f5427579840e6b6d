"""A cache of models, and a server on this machine that answers as the Hub does."""

import hashlib
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import huggingface_hub.constants
import pytest

from tests.chat_server import running


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache; no Hub, and wheels from an empty folder alone."""
    (tmp_path / "wheels").mkdir()
    monkeypatch.setenv("GLASSBOX_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    return tmp_path / "cache"


class Hub(dict):
    """Bytes by ``owner/name/file``, and how they are served.

    ``has_ranges``: whether a request for a part is answered by it. ``cut``: after how many bytes of its
    answers the server hangs up, the first of a list each time. ``etags``: sums that differ from the bytes'.
    ``sent`` are the ranges asked for and the bytes sent.
    """

    def __init__(self):
        self.has_ranges, self.cut, self.etags, self.sent, self.refused = True, [], {}, [], {}


@pytest.fixture
def hub(cache, monkeypatch):
    """The files of a server that answers as the Hub does."""
    files = Hub()

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.answer(body=False)

        def do_GET(self):
            self.answer(body=True)

        def answer(self, body):
            owner, name, _, _, *file = [*self.path.strip("/").split("/"), *[""] * 5]
            place = "/".join([owner, name, *filter(None, file)])
            data, asked = files.get(place), self.headers.get("Range")
            if place in files.refused:
                status, code = files.refused[place]
                return self.empty(status, code)
            if data is None:
                return self.empty(200 if self.path == "/" else 404, "EntryNotFound")
            start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and files.has_ranges else 0
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
            self.send_header("X-Repo-Commit", "0" * 40)
            self.send_header("ETag", f'"{files.etags.get(place) or hashlib.sha256(data).hexdigest()}"')
            self.send_header("Content-Length", str(len(data) - start))
            self.end_headers()
            if body:
                part = data[start : start + files.cut.pop(0)] if files.cut else data[start:]
                files.sent.append((asked, len(part)))
                self.wfile.write(part)
                self.close_connection = True
            return None

        def empty(self, status, code):
            self.send_response(status)
            self.send_header("X-Error-Code", code)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *arguments):
            pass

    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    with running(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        yield files
