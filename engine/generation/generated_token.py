"""A generated token, and the candidates for its place."""

from dataclasses import dataclass
from typing import Literal

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True)
class Candidate:
    """A token that might have come next.

    ``probability`` is from the model's own distribution, ``chance`` the probability with which it is drawn
    under the sampling settings: 0 where a filter removed it, 1 for the greedy choice.
    """

    token_id: int
    text: str
    probability: float
    chance: float


@dataclass(frozen=True)
class GeneratedToken:
    """One generated token.

    ``text`` is the text that is certain by now: it lags behind the tokens where a character or a stop string
    may be incomplete. ``log_probability`` is the token's under the model's own distribution, ``entropy`` that
    distribution's, both in nats. ``entropy`` and ``candidates`` are given on request. ``guessed`` is whether
    the token was read before it was chosen, as a right guess.
    """

    token_id: int
    text: str
    log_probability: float
    finish_reason: FinishReason | None
    entropy: float | None = None
    candidates: tuple[Candidate, ...] = ()
    guessed: bool = False
