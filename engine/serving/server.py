"""The process of a server: where it listens, and how it ends."""

import signal
import socket
from collections.abc import Collection

import uvicorn

from ..errors import InputError
from .app import LOCAL_HOSTS, create_app
from .connections import IDLE_S, Connection
from .guard import Guard
from .served import Served

ENDING = (signal.SIGINT, signal.SIGTERM)
WAITING = 2048  # connections that are not accepted yet
RUSH = 100  # connections that are accepted at once: their files are open before any is closed for another


def listening(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 is any free one. Early connections wait until the server runs."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=WAITING)
        # Its connections send the body of an answer at once, not when the client has confirmed the headers.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot listen on {host}, port {port} ({reason}): give another --port") from error


def address_of(listener: socket.socket) -> str:
    """``http://127.0.0.1:8000``."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run(
    served: Served, listener: socket.socket, hosts: Collection[str] = LOCAL_HOSTS, api_key: str = ""
) -> int:
    """Serve until SIGTERM or SIGINT; then answer the requests at work, take no others, and return.

    ``listener`` is from `listening`; the rest is as in `create_app`. Returns the number of requests that were
    not answered within ``served.limits.drain_s``.
    """
    app = create_app(served, hosts, api_key)
    # uvicorn raises these signals again once it has drained; by then they have been handled.
    before = {each: signal.signal(each, signal.SIG_IGN) for each in ENDING}
    try:
        server_of(app, served.limits.drain_s).run(sockets=[listener])
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    return app.n_left


def server_of(app: Guard, drain_s: int) -> uvicorn.Server:
    """Return the server of an application; it ends ``drain_s`` after it is asked to, at the latest."""
    config = uvicorn.Config(
        app,
        http=Connection,
        backlog=RUSH,
        log_level="critical",  # `Guard` reports what fails
        access_log=False,
        server_header=False,
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=drain_s,
        lifespan="on",
        ws="none",
    )
    return Server(config)


class Server(uvicorn.Server):
    """A server whose connections may wait in the kernel: more than are accepted at once."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections."""
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(WAITING)
