"""The most that requests may take."""

from dataclasses import dataclass

QUEUED_REQUESTS = 4  # of the largest size, whose tokens may wait together
QUEUED_ANSWERS = 8  # questions that are answered by the language model or wait for it
ANSWER_S = 2.0  # that a client is asked to wait for each of them


@dataclass(frozen=True)
class Limits:
    """The most that requests may take.

    Attributes
    ----------
    body_mb
        Megabytes of a body.
    texts, tokens
        Of one request; OpenAI's own by default.
    requests
        Requests at work or waiting, of all clients.
    seconds
        Of one request, from its first byte to the beginning of its answer; a streamed answer ends then.
    drain_s
        Seconds in which requests at work are answered after SIGTERM.
    """

    body_mb: float = 4.0
    texts: int = 2048
    tokens: int = 300_000
    requests: int = 128
    seconds: float = 120.0
    drain_s: int = 30

    @property
    def body_bytes(self) -> int:
        """Bytes of a body."""
        return round(self.body_mb * 1e6)
