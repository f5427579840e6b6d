"""The engine's own server in a thread of the tests, on a free port."""

import json
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, replace

import httpx
from openai import OpenAI

from engine.serving.app import LOCAL_HOSTS, create_app
from engine.serving.server import listening, server_of

MODEL = "all-MiniLM-L6-v2"


@dataclass(frozen=True)
class EngineServer:
    """A running server, and clients of it."""

    url: str
    key: str = ""
    stop: Callable[[], None] = lambda: None

    @property
    def openai(self):
        return OpenAI(base_url=f"{self.url}/v1", api_key=self.key or "none", max_retries=0)

    def post(self, path, body=None, **settings):
        if body is not None:
            settings |= {"content": json.dumps(body), "headers": {"Content-Type": "application/json"}}
        return httpx.post(f"{self.url}{path}", timeout=60, **settings)

    def get(self, path, **settings):
        return httpx.get(f"{self.url}{path}", timeout=60, **settings)

    def embed(self, texts, **fields):
        return self.post("/v1/embeddings", {"model": MODEL, "input": texts, **fields})

    def metric(self, name):
        """The value of a metric without labels."""
        lines = self.get("/metrics").text.splitlines()
        return next(float(line.split()[-1]) for line in lines if line.startswith(f"{name} "))

    def until_at_most(self, name, most):
        """Wait until a metric without labels has fallen."""
        until = time.monotonic() + 60
        while (value := self.metric(name)) > most:
            assert time.monotonic() < until, f"{name} stays at {value}"
            time.sleep(0.02)


@contextmanager
def engine_server(served, limits=None, hosts=LOCAL_HOSTS, key=""):
    listener = listening("127.0.0.1", 0)
    served = replace(served, limits=limits or served.limits)
    app = create_app(served, hosts, key)
    server = server_of(app, served.limits.drain_s)

    def stop():
        server.should_exit = True

    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield EngineServer(f"http://127.0.0.1:{listener.getsockname()[1]}", key, stop)
    finally:
        stop()
        thread.join()
