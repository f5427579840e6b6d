"""Middleware before every route: host names, API key, limits, metrics, and errors in one line."""

import asyncio
import hmac
import sys
import time
from collections.abc import Collection, MutableMapping
from contextlib import suppress
from traceback import extract_tb
from typing import Any

from pydantic_core import to_json
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..wording import reason_of
from .bodies import RequestError, overloaded
from .metrics import Metrics
from .served import Limits

OPEN_PATHS = ("/health", "/health/live", "/health/ready")  # without a key, and while the server is busy
ANY_HOST = "*"
DRAIN_S = 2.0  # for which the rest of a refused body is read
ENDED = "the server ended before this request was answered: send it to another one, or again later"
FAILED = "the server failed on this request: see its log"


class Guard:
    """An application with its limits; requests are refused before their bodies are read.

    ``hosts`` are the accepted host names, `ANY_HOST` for any: web pages cannot reach the server by DNS
    rebinding. Requests must send ``api_key``, unless it is empty, and are counted by the application's
    ``paths``.
    """

    def __init__(
        self,
        app: ASGIApp,
        limits: Limits,
        metrics: Metrics,
        hosts: Collection[str],
        api_key: str,
        paths: Collection[str],
    ) -> None:
        self._app, self._limits, self._metrics, self._paths = app, limits, metrics, paths
        self._hosts = frozenset(host.lower() for host in hosts)
        self._key = api_key.encode()
        self.n_requests = 0  # at work or waiting
        self.n_left = 0  # requests not answered when the server ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), 0
        is_open = scope["path"] in OPEN_PATHS
        self.n_requests += not is_open

        try:
            async with asyncio.timeout(self._limits.seconds) as timeout:

                async def send_on(message: Message) -> None:
                    nonlocal status
                    if message["type"] == "http.response.start":
                        status = message["status"]
                        timeout.reschedule(None)
                    await send(message)

                await self._check(scope, receive, is_open)
                await self._app(scope, self._bounded(scope, receive), send_on)
        except RequestError as error:
            status = status or await send_error(error, send)
        except TimeoutError:
            late = f"not done within {self._limits.seconds:g} s: send fewer texts at once, or try again later"
            status = status or await send_error(RequestError(504, late, None, "timeout"), send)
        except asyncio.CancelledError:  # the server ends, and the time to drain is over
            self.n_left += 1
            status = status or await send_error(RequestError(503, ENDED, None, "ended"), send)
        except Exception as error:  # of any kind: client and log get one line
            log_failure(scope["path"], error)
            status = status or await send_error(RequestError(500, FAILED), send)
        finally:
            self.n_requests -= not is_open
            path = scope["path"] if scope["path"] in self._paths else "other"
            self._metrics.count_request(path, status or 499, time.perf_counter() - start)

    async def _check(self, scope: Scope, receive: Receive, is_open: bool) -> None:
        """Raise `RequestError` for an unknown host name, a wrong key, too many requests or a large body."""
        headers = Headers(scope=scope)
        if ANY_HOST not in self._hosts and host_name(headers.get("host", "")) not in self._hosts:
            raise RequestError(
                421, "this server is not reached by that host name: its operator can add it by --allowed-host"
            )
        if is_open:
            return
        if self._key:
            _, _, key = headers.get("authorization", "").partition(" ")
            if not hmac.compare_digest(key.strip().encode("latin-1", "replace"), self._key):
                wrong = "the API key is missing or wrong: send it as Authorization: Bearer KEY"
                raise RequestError(401, wrong, None, "invalid_api_key", {"WWW-Authenticate": "Bearer"})
        if self.n_requests > self._limits.requests:
            raise overloaded(f"{self._limits.requests} requests are at work or waiting")
        if int(headers.get("content-length", "0")) > self._limits.body_bytes:
            if headers.get("expect", "").lower() != "100-continue":  # the body is being sent
                await self._drain(receive)
            raise self._too_large()

    async def _drain(self, receive: Receive) -> None:
        """Read the rest of a refused body, up to as much as one may have.

        A connection that is closed while its client sends is reset, and the client may not see the answer
        (RFC 9112, section 9.6).
        """
        n_bytes, more = 0, True
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                while more and n_bytes <= self._limits.body_bytes:
                    message = await receive()
                    n_bytes, more = n_bytes + len(message.get("body", b"")), message.get("more_body", False)

    def _too_large(self) -> RequestError:
        return RequestError(
            413,
            f"the body has more than {self._limits.body_mb:g} MB: send fewer texts at once",
            None,
            "body_too_large",
            {"Connection": "close"},
        )

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        """Return the receiver of a body that raises `RequestError` beyond the limit."""
        n_bytes = 0

        async def received() -> MutableMapping[str, Any]:
            nonlocal n_bytes
            message = await receive()
            n_bytes += len(message.get("body", b""))
            if n_bytes > self._limits.body_bytes:
                if message.get("more_body"):
                    await self._drain(receive)
                raise self._too_large()
            return message

        return received


def host_name(header: str) -> str:
    """``Localhost:8000 -> localhost``, ``[::1]:8000 -> ::1``: the name in a Host header."""
    header = header.strip().lower()
    return header[1:].partition("]")[0] if header.startswith("[") else header.partition(":")[0]


async def send_error(error: RequestError, send: Send) -> int:
    """Send the response to a refused request; return its status."""
    headers = {"content-type": "application/json", **(error.headers or {})}
    pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": error.status_code, "headers": pairs})
    await send({"type": "http.response.body", "body": to_json(error.content)})
    return error.status_code


def log_failure(path: str, error: Exception) -> None:
    """Print where and why a request failed, in a line for the operator."""
    frame = extract_tb(error.__traceback__)[-1]
    print(
        f"error: {path}: {type(error).__name__} in {frame.name}, line {frame.lineno}: {reason_of(error)}",
        file=sys.stderr,
        flush=True,
    )
