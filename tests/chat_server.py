"""An OpenAI-compatible server on this machine, with a fixed answer, for tests of whoever talks to one."""

import json
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WORDS = ("Forty ", "masons ", "built ", "the ", "tower.")


def event(content):
    return f"data: {content if isinstance(content, str) else json.dumps(content)}\n\n".encode()


def chunk(text=None, finish_reason=None):
    choice = {"index": 0, "delta": {"content": text} if text else {}, "finish_reason": finish_reason}
    return {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "mason", "choices": [choice]}


def whole_answer(finish_reason="stop"):
    """What OpenAI's own servers send: the words, the reason, a chunk without choices, the end mark."""
    usage = {**chunk(), "choices": []}
    return [
        *(event(chunk(word)) for word in WORDS),
        event(chunk(None, finish_reason)),
        event(usage),
        event("[DONE]"),
    ]


class ChatServer(ThreadingHTTPServer):
    """Sends `events` one by one, `pause` seconds apart; `hung_up` is set where the client does first.

    ``refused`` has the status and the body for each setting, or ``system``, that it takes none of.
    """

    daemon_threads = True

    def __init__(
        self, events=None, pause=0.0, key=None, models=("mason", "miller"), content_type=None, refused=()
    ):
        super().__init__(("127.0.0.1", 0), Handler)
        self.events = whole_answer() if events is None else events
        self.pause = pause
        self.key = key
        self.models = models
        self.content_type = content_type
        self.refused = dict(refused)
        self.requests = []
        self.hung_up = threading.Event()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def refused(self):
        if self.server.key and self.headers["Authorization"] != f"Bearer {self.server.key}":
            self.reply({"error": {"message": "Incorrect API key provided"}}, 401)
            return True
        return False

    def do_GET(self):
        if self.refused():
            return
        if self.path == "/v1/models":
            self.reply(
                {"object": "list", "data": [{"id": name, "object": "model"} for name in self.server.models]}
            )
        else:
            self.reply({"error": {"message": "no such page"}}, 404)

    def asked(self, path):
        """The body of a request to a path; None for one that is refused."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(body)
        if self.refused():
            return None
        if self.path == path and body["model"] in self.server.models:
            return body
        return self.reply({"error": {"message": f"model {body['model']!r} not found"}}, 404)

    def do_POST(self):
        if (body := self.asked("/v1/chat/completions")) is None:
            return
        for setting, (status, reply) in self.server.refused.items():
            if setting in body or setting in [message["role"] for message in body["messages"]]:
                self.reply(reply, status)
                return
        self.send_response(200)
        self.send_header("Content-Type", self.server.content_type or "text/event-stream")
        self.end_headers()
        for item in self.server.events:
            if self.has_hung_up_within(self.server.pause):
                self.server.hung_up.set()
                return
            self.wfile.write(item)
            self.wfile.flush()

    def has_hung_up_within(self, seconds):
        self.connection.settimeout(seconds or 0.001)
        try:
            return self.connection.recv(1) == b""
        except TimeoutError:
            return False
        except OSError:
            return True
        finally:
            self.connection.settimeout(None)

    def reply(self, content, status=200):
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def chat_server(**settings):
    return running(ChatServer(**settings))


@contextmanager
def running(server):
    """Serve in a thread until the end of the block."""
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def full_port():
    """A port whose queue of connections is full, so that it takes no more and says nothing."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        with socket.create_connection(listener.getsockname()):
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"


@contextmanager
def closed_port():
    """A port at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{probe.getsockname()[1]}/v1"
