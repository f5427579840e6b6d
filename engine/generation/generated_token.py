"""A generated token, and the candidates for its place."""

from dataclasses import dataclass
from typing import Literal

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True)
class Candidate:
    """A token that might have come next."""

    token_id: int
    text: str
    probability: float  # from the model's own distribution
    # to be drawn under the sampling settings: 0 where a filter removed it, 1 for the greedy choice
    chance: float


@dataclass(frozen=True)
class GeneratedToken:
    """One generated token."""

    token_id: int
    text: str  # what is certain by now: it lags behind where a character or a stop string may be incomplete
    log_probability: float  # the token's under the model's own distribution, in nats
    finish_reason: FinishReason | None
    entropy: float | None = None  # of that distribution, in nats; given on request, as the candidates are
    candidates: tuple[Candidate, ...] = ()
    guessed: bool = False  # whether it was read before it was chosen, as a right guess
