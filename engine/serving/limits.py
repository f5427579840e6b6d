"""The most that requests may take."""

from dataclasses import dataclass

QUEUED_REQUESTS = 4  # of the largest size, whose tokens may wait together
QUEUED_ANSWERS = 8  # questions that are answered by the language model or wait for it
ANSWER_S = 2.0  # that a client is asked to wait for each of them


@dataclass(frozen=True)
class Limits:
    """The most that requests may take."""

    body_mb: float = 4.0  # megabytes of a body
    texts: int = 2048  # of one request, as OpenAI has it
    tokens: int = 300_000  # of one request, as OpenAI has it
    requests: int = 128  # at work or waiting, of all clients
    seconds: float = 120.0  # from a request's first byte to the beginning of its answer; a stream ends then
    drain_s: int = 30  # seconds in which requests at work are answered after SIGTERM

    @property
    def body_bytes(self) -> int:
        """Bytes of a body."""
        return round(self.body_mb * 1e6)
