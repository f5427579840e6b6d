"""The process of a server: where it listens, and how it ends."""

import signal
import socket
from collections.abc import Callable, Collection
from types import FrameType

import uvicorn

from engine.errors import InputError
from engine.serving.app import LOCAL_HOSTS, create_app
from engine.serving.limits import Limits
from engine.serving.served import Served

ENDING = (signal.SIGINT, signal.SIGTERM)
KEPT_ALIVE_S = 30  # that a connection without a request stays open
ANY_ADDRESS = ("0.0.0.0", "::")


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens; 0 is any free port.

    Raises
    ------
    InputError
        There is no such address here, or the port is in use.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot listen on {host}, port {port} ({reason}): give another --port") from error


def run(
    served: Served,
    limits: Limits,
    host: str,
    port: int,
    hosts: Collection[str] = (),
    api_key: str = "",
    on_start: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve until SIGTERM or SIGINT; then answer the requests at work, take no others, and return.

    Parameters
    ----------
    served, limits, api_key
        As in `create_app`.
    host, port
        Where to listen.
    hosts
        Names of this server besides its own address and those of this machine.
    on_start
        Called with the address once the socket listens.

    Raises
    ------
    InputError
        It cannot listen there.
    """
    names = {*LOCAL_HOSTS, *hosts, *({host} - set(ANY_ADDRESS))}
    with listening(host, port) as listener:
        app = create_app(served, limits, names, api_key)
        config = uvicorn.Config(
            app,
            log_level="error",
            access_log=False,
            server_header=False,
            timeout_keep_alive=KEPT_ALIVE_S,
            timeout_graceful_shutdown=limits.drain_s,
            lifespan="on",
            ws="none",
        )
        shown = f"[{host}]" if ":" in host else host
        on_start(f"http://{shown}:{listener.getsockname()[1]}")
        # uvicorn ends on these signals and raises them anew once it has drained: by then this is done.
        before = {each: signal.signal(each, drained) for each in ENDING}
        try:
            uvicorn.Server(config).run(sockets=[listener])
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)


def drained(number: int, frame: FrameType | None) -> None:
    """Take a signal that has been acted on."""
