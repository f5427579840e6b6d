"""Middleware before every route: host names, API key, limits, metrics, and errors in one line."""

import asyncio
import hmac
import re
import sys
import time
from collections.abc import Collection
from contextlib import suppress
from traceback import extract_tb

from pydantic_core import to_json
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..memory import give_back_soon
from ..wording import reason_of
from .bodies import RequestError, overloaded
from .metrics import Metrics
from .served import RequestLimits

OPEN_PATHS = ("/health", "/health/live", "/health/ready")  # without a key, and while the server is busy
ANY_HOST = "*"
DRAIN_S = 2.0  # for which the rest of a refused body is read
# A body of n bytes is taken for 10 + n / 50,000 seconds, as Apache's RequestReadTimeout has it.
BODY_S, BODY_BYTES_PER_S = 10, 50_000
BODIES = 32  # of the largest size, whose bytes may be in memory together
LARGE_BODY = 1_000_000  # bytes of one that takes long to parse, and whose memory is given back
ENDED = "the server ended before this request was answered: send it to another one, or again later"
CLOSING = {"Connection": "close"}
# In JSON, a mark that may hide the end of a text, and a text without such.
ESCAPED, JSON_TEXT = re.compile(rb"\\.", re.DOTALL), re.compile(rb'"[^"]*"')
OTHER_VALUES = 2_000  # of a body, besides token ids and texts
FAILED = "the server failed on this request: see its log"


class Guard:
    """An application with its limits: it is given whole requests only, and ends where their clients leave.

    ``hosts`` are the accepted host names, `ANY_HOST` for any: web pages cannot reach the server by DNS
    rebinding. Requests must send ``api_key``, unless it is empty, and are counted by the application's
    ``paths``.
    """

    def __init__(
        self,
        app: ASGIApp,
        limits: RequestLimits,
        metrics: Metrics,
        hosts: Collection[str],
        api_key: str,
        paths: Collection[str],
    ) -> None:
        self._app, self._limits, self._metrics, self._paths = app, limits, metrics, paths
        self._hosts = frozenset(host.lower() for host in hosts)
        self._key = api_key.encode()
        self.n_requests = 0  # whole ones, at work or waiting
        self.n_left = 0  # requests not answered when the server ended
        self._body_bytes = 0  # of all requests, in memory
        self._parsing = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), 0
        is_open, body = scope["path"] in OPEN_PATHS, bytearray()

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._check(scope, receive, is_open)
            await self._read(receive, body)
            if len(body) > LARGE_BODY:
                async with self._parsing:  # one a turn of the event loop, so that others go on between them
                    await asyncio.sleep(0)
            check_values(body, self._limits)
            await self._answer(scope, receive, send_on, body, is_open)
        except RequestError as error:
            status = status or await send_error(error, send)
        except ClientLeftError:
            pass
        except asyncio.CancelledError:  # the server ends, and the time to drain is over
            self.n_left += 1
            status = status or await send_error(RequestError(503, ENDED, None, "ended"), send)
        except Exception as error:  # of any kind: client and log get one line
            log_failure(scope["path"], error)
            status = status or await send_error(RequestError(500, FAILED), send)
        finally:
            self._body_bytes -= len(body)
            if len(body) > LARGE_BODY:
                give_back_soon()
            path = scope["path"] if scope["path"] in self._paths else "other"
            self._metrics.count_request(path, status or 499, time.perf_counter() - start)

    async def _check(self, scope: Scope, receive: Receive, is_open: bool) -> None:
        """Raise `RequestError` for an unknown host name, a wrong key, or a large body."""
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
        if int(headers.get("content-length", "0")) > self._limits.body_bytes:
            if headers.get("expect", "").lower() != "100-continue":  # the body is being sent
                await self._drain(receive)
            raise self._too_large()

    async def _read(self, receive: Receive, body: bytearray) -> None:
        """Read a body, in as many seconds as its bytes are allowed.

        Raises `RequestError` where the body is slower, or larger, or the server holds as many as it may, and
        `ClientLeftError` where the client has left.
        """
        more, start = True, asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(BODY_S) as timeout:
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientLeftError
                    more = message.get("more_body", False)
                    body += message["body"]
                    self._body_bytes += len(message["body"])
                    if len(body) > self._limits.body_bytes:
                        if more:
                            await self._drain(receive)
                        raise self._too_large()
                    if self._body_bytes > BODIES * self._limits.body_bytes:
                        raise overloaded(f"its clients send over {BODIES} large bodies at once")
                    timeout.reschedule(start + BODY_S + len(body) / BODY_BYTES_PER_S)
        except TimeoutError as error:
            slow = f"the body came too slowly, {len(body):,} bytes of it: send it at once"
            raise RequestError(408, slow, None, "body_too_slow", CLOSING) from error

    async def _answer(
        self, scope: Scope, receive: Receive, send: Send, body: bytearray, is_open: bool
    ) -> None:
        """Have a whole request answered, unless too many are, it takes too long, or its client leaves."""
        if not is_open and self.n_requests >= self._limits.requests:
            raise overloaded(f"{self._limits.requests} requests are at work or waiting")
        unread, left, answered = [body], asyncio.Event(), False

        async def receive_read() -> Message:
            """Receive the body at once, then wait for the client to leave."""
            if unread:
                return {"type": "http.request", "body": bytes(unread.pop()), "more_body": False}
            await left.wait()
            return {"type": "http.disconnect"}

        async def send_on(message: Message) -> None:
            nonlocal answered
            if message["type"] == "http.response.start" and not left.is_set():
                timeout.reschedule(None)
            answered = message["type"] == "http.response.body" and not message.get("more_body")
            await send(message)

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            left.set()
            if not answered:
                timeout.reschedule(0)  # at once

        self.n_requests += not is_open
        watching = asyncio.create_task(watch())
        try:
            async with asyncio.timeout(self._limits.seconds) as timeout:
                try:
                    await self._app(scope, receive_read, send_on)
                finally:
                    watching.cancel()
        except TimeoutError as error:
            if left.is_set():
                raise ClientLeftError from error
            late = f"not done within {self._limits.seconds:g} s: send fewer texts at once, or try again later"
            raise RequestError(504, late, None, "timeout") from error
        finally:
            self.n_requests -= not is_open

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
            CLOSING,
        )


class ClientLeftError(Exception):
    """The client of a request has left."""


def check_values(body: bytearray, limits: RequestLimits) -> None:
    """Raise `RequestError` for a body of more values or lists than its texts can be, before it is parsed.

    A list in Python takes fifty times the bytes that it has in JSON. Marks within texts count only where
    there are many.
    """
    values, lists = limits.tokens + OTHER_VALUES, limits.texts + OTHER_VALUES
    outside = bytes(body)
    for _ in range(2):
        if outside.count(b",") <= values and outside.count(b"[") + outside.count(b"{") <= lists:
            return
        outside = JSON_TEXT.sub(b"", ESCAPED.sub(b"", outside))
    why = f"the body has over {values:,} values or {lists:,} lists in JSON: send fewer texts at once"
    raise RequestError(400, why)


def host_name(header: str) -> str:
    """``Localhost:8000 -> localhost``, ``[::1]:8000 -> ::1``: the name in a Host header."""
    header = header.strip().lower()
    return header[1:].partition("]")[0] if header.startswith("[") else header.partition(":")[0]


async def send_error(error: RequestError, send: Send) -> int:
    """Send the response to a refused request; return its status."""
    content = to_json(error.content)
    headers = {"content-type": "application/json", "content-length": str(len(content))}
    headers |= error.headers or {}
    pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": error.status_code, "headers": pairs})
    await send({"type": "http.response.body", "body": content})
    return error.status_code


def log_failure(path: str, error: Exception) -> None:
    """Print where and why a request failed, in a line for the operator."""
    frame = extract_tb(error.__traceback__)[-1]
    print(
        f"error: {path:.80}: {type(error).__name__} in {frame.name}, line {frame.lineno}: {reason_of(error)}",
        file=sys.stderr,
        flush=True,
    )
