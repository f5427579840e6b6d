"""What the server of the app does before Streamlit: it checks addresses, and imports what pages share.

Streamlit itself compares the host of a WebSocket with ``server.allowedHosts``, and of an Origin the host name
only: a page of another port of this machine could drive the app.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from threading import Thread
from urllib.parse import urlsplit

from google.protobuf.message import DecodeError
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import config
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.web.server.starlette.starlette_websocket import is_host_allowed

from ui.server_settings import is_public

HEALTH = "/_stcore/health"  # which proxies and containers ask by any name, and which holds nothing
PORTS = {"http": 80, "https": 443}
SECURE = ("https", "wss")
# Threads of several sessions that import parts of pandas at once may find it half made.
BEFORE_VISITORS = ("ui.frame", "pandas", "plotly.graph_objects")

_importer = Thread(target=lambda: list(map(import_module, BEFORE_VISITORS)), daemon=True)


@asynccontextmanager
async def importing(app: object) -> AsyncIterator[None]:
    """Begin to import what sessions share as the server starts, while the first browser loads its page."""
    _importer.start()
    yield


def imported() -> None:
    """Wait until what sessions share has been imported; without a server nothing was begun."""
    if _importer.ident is not None:
        _importer.join()


class OwnAddresses:
    """Middleware that answers only under the allowed hosts, and no page of another origin."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it with status 403."""
        if scope["type"] in ("http", "websocket"):
            headers = Headers(scope=scope)
            host, origin = headers.get("host", ""), headers.get("origin")
            base = config.get_option("server.baseUrlPath").strip("/")
            is_health = scope["path"] == (f"/{base}{HEALTH}" if base else HEALTH)
            is_here = is_health or is_host_allowed(host)
            if not (is_here and (origin is None or is_own(origin, host, scope["scheme"] in SECURE))):
                await refuse(scope, receive, send)
                return
        is_visit = scope["type"] == "websocket" and is_public()
        await self.app(scope, without_clearing(receive) if is_visit else receive, send)


def without_clearing(receive: Receive) -> Receive:
    """Leave out a visitor's messages that would clear the caches of all visitors."""

    async def receive_on() -> Message:
        while True:
            message = await receive()
            with suppress(DecodeError):  # which Streamlit refuses
                if BackMsg.FromString(message.get("bytes") or b"").WhichOneof("type") == "clear_cache":
                    continue
            return message

    return receive_on


async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse a request or a WebSocket with status 403."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
    else:
        await PlainTextResponse("This address is not served.", 403)(scope, receive, send)


def is_own(origin: str, host: str, is_secure: bool) -> bool:
    """Whether the page of an origin is the app's own, by scheme (but behind proxies), host and port."""
    if not config.get_option("server.enableCORS") or origin in config.get_option("server.corsAllowedOrigins"):
        return True
    try:
        page, own = urlsplit(origin), urlsplit(f"//{host}")
        port = PORTS[page.scheme]
        is_same = page.hostname == own.hostname and (page.port or port) == (own.port or port)
    except (ValueError, KeyError):  # of a port, or another scheme
        return False
    return is_same and not (is_secure and page.scheme == "http")
