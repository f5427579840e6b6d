"""Answers of servers within a number of bytes, from the address that was asked and no other."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from ..errors import ModelUnavailableError

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response, Timeout

# 32 vectors of 8192 numbers take some 6 MB.
MAX_BYTES = 16 * 1024**2
END_MARK = b"[DONE]"  # OpenAI's, behind the last event of a stream
N_LAST = 64  # bytes at the end of an answer that are kept to find it


def bounded_client(timeout: "Timeout") -> "AsyncClient":
    """Return a client of HTTP that follows no redirection and reads `MAX_BYTES` of an answer, unpacked."""
    from httpx2 import AsyncClient

    return AsyncClient(
        timeout=timeout,
        follow_redirects=False,
        headers={"Accept-Encoding": "identity"},
        event_hooks={"response": [bound]},
    )


async def bound(response: "Response") -> None:
    """Bound the bytes of a response before they are read; refuse a packed one."""
    from httpx2 import AsyncByteStream

    packing = response.headers.get("Content-Encoding", "identity")
    if packing.lower() != "identity":
        raise ModelUnavailableError("it packs its answer, although it was asked not to")

    class BoundedStream(AsyncByteStream):
        """The bytes of a response, up to `MAX_BYTES`."""

        def __init__(self, stream: Any) -> None:
            self.stream, self.n_bytes, self.last = stream, 0, b""

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in self.stream:
                self.n_bytes += len(piece)
                self.last = (self.last + piece)[-N_LAST:]
                if self.n_bytes > MAX_BYTES:
                    raise ModelUnavailableError(
                        f"the server's answer has over {MAX_BYTES // 1024**2} MB, the most that is read: "
                        "check that its address is that of an OpenAI-compatible server"
                    )
                yield piece

        async def aclose(self) -> None:
            await self.stream.aclose()

    response.stream = BoundedStream(response.stream)


def has_end_mark(response: "Response") -> bool:
    """Whether a bounded stream ended with OpenAI's mark of the end, which the client takes out."""
    return END_MARK in response.stream.last  # type: ignore[union-attr]
