"""What a decoder tells of one token that it generates."""

from dataclasses import dataclass
from typing import Literal

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True)
class Candidate:
    """A token that might have come next.

    ``probability`` is that under the model's own distribution, ``chance`` that with which the sampler
    takes it under the current settings: 0 where a filter took it out, 1 for the greedy choice.
    """

    token_id: int
    text: str
    probability: float
    chance: float


@dataclass(frozen=True)
class Step:
    """One generated token.

    ``text`` is what may be shown now: it lags behind the tokens where a character or a stop string
    may go on. ``log_probability`` is that of the token under the model's own distribution, and
    ``entropy`` that distribution's, in nats. ``entropy`` and ``candidates`` are there where they were
    asked for. ``guessed`` is whether the token was read before it was chosen, as a right guess.
    """

    token_id: int
    text: str
    log_probability: float
    finish_reason: FinishReason | None
    entropy: float | None = None
    candidates: tuple[Candidate, ...] = ()
    guessed: bool = False
