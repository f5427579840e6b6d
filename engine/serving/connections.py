"""Connections of a server: how long they may send nothing, and how many there may be."""

import asyncio
from functools import cache
from time import monotonic
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

IDLE_S = 60  # that a connection without a request stays open
HEAD_S = 10  # from the first byte of a request to the end of its headers
STALLED_S = 30  # for which an answer may be left unread, and one more for so many bytes of it:
READ_BYTES_PER_S = 100_000
CONNECTIONS, OTHER_FILES = 1000, 500  # at most, and files left to the rest of the process and to a rush


class Connection(H11Protocol):
    """A connection that is closed when its client sends no request, half of one, or reads no answer.

    Where all places are taken, a new connection has that of the one that has been without a request for
    longest.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._since = monotonic()  # when it last was without a request
        self._head: asyncio.TimerHandle | None = None  # of headers that have begun
        self._stalled: asyncio.TimerHandle | None = None  # of an answer that is not read

    @property
    def is_idle(self) -> bool:
        """Whether no request is at work."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self.timeout_keep_alive_task = self.loop.call_later(IDLE_S, self.timeout_keep_alive_handler)
        if len(self.connections) > most_connections():
            idle = [each for each in self.connections if isinstance(each, Connection) and each.is_idle]
            longest = min(idle, key=lambda each: each._since)
            longest.transport.abort()
            self.connections.discard(longest)  # before it is lost: others may come in this turn of the loop

    def connection_lost(self, error: Exception | None) -> None:
        """End the waiting."""
        for timer in (self._head, self._stalled, self.timeout_keep_alive_task):
            if timer is not None:
                timer.cancel()
        super().connection_lost(error)

    def data_received(self, data: bytes) -> None:
        """Read bytes; those before the end of a request's headers have `HEAD_S` together."""
        super().data_received(data)
        if not self.is_idle:
            if self._head is not None:
                self._head.cancel()
            self._head = None
        elif self._head is None:
            self._head = self.loop.call_later(HEAD_S, self.transport.abort)

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        self._since = monotonic()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Begin to wait for the client to read."""
        super().pause_writing()
        allowed = STALLED_S + self.transport.get_write_buffer_size() / READ_BYTES_PER_S
        self._stalled = self.loop.call_later(allowed, self.transport.abort)

    def resume_writing(self) -> None:
        """End the waiting for the client to read."""
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()


@cache
def most_connections() -> int:
    """Return how many connections there may be by the limit of open files, raised where it can be."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows, which has no such limit
        return CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS + OTHER_FILES
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(1, min(CONNECTIONS, soft - OTHER_FILES))
