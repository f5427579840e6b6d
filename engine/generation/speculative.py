"""Speculative sampling: tokens guessed ahead, which a decoder reads at once and accepts or replaces.

Leviathan et al. 2023, *Fast Inference from Transformers via Speculative Decoding*. Weights come from memory
once for all tokens read together, so right guesses save time. The rule that accepts them leaves the
distribution of the text as it is without guesses.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from engine.errors import InputError
from engine.generation.prefix_cache import PrefixCache
from engine.generation.sampling import Sampling, chances, draw, sample
from engine.layers.tracing import Array
from engine.models.decoders import fit_length
from engine.models.kv_cache import KVCache

if TYPE_CHECKING:
    from engine.generation.decoder import Decoder

DRAFT_TOKENS = 4  # that a draft model guesses at once


@dataclass(frozen=True)
class Guess:
    """Tokens that may come next.

    ``chances`` are the distributions that they were drawn from, float64 ``(vocab_size,)`` each, or None where
    nothing was drawn.
    """

    tokens: Sequence[int] = ()
    chances: Sequence[Array] | None = None


class Guesser(Protocol):
    """A source of guesses."""

    def guess(self, ids: Sequence[int], most: int) -> Guess:
        """Guess up to ``most`` tokens that follow ``ids``, which begin with those of the previous call."""


def chances_after_guess(p: Array, q: Array, guessed: int) -> Array:
    """Probability of each next token, given that ``guessed`` was drawn from ``q``: ``(vocab_size,)``.

    The guess is accepted with probability ``min(1, p / q)``, and otherwise replaced by a token drawn from
    ``max(p - q, 0)``, normalised. The mean over guesses is ``p``. A guess that was not drawn has
    ``q[guessed] = 1``, and then the result is ``p`` for every guess.

    Parameters
    ----------
    p, q
        Distributions of the decoder and of the guesses, float64 ``(vocab_size,)``.
    guessed
        A token with ``q`` above 0.
    """
    rest = np.maximum(p - q, 0)
    total = rest.sum()
    if p[guessed] >= q[guessed] or total == 0:
        return (np.arange(p.size) == guessed).astype(np.float64)
    accepted = p[guessed] / q[guessed]
    chance: Array = rest * ((1 - accepted) / total)
    chance[guessed] = accepted
    return chance


def choose(
    logits: Array, guess: Guess, place: int, sampling: Sampling, seen: Sequence[int], rng: np.random.Generator
) -> int:
    """Choose the token at a place of a guess, or behind its last, distributed as by `sample`."""
    if guess.chances is None or place == len(guess.tokens):
        return sample(logits, sampling, seen, rng)
    p = chances(logits, sampling, seen)
    return draw(chances_after_guess(p, guess.chances[place], guess.tokens[place]), rng)


class DraftModel:
    """A decoder, much smaller than the one it guesses for, that generates its guesses.

    Parameters
    ----------
    decoder
        With the vocabulary of the decoder that it guesses for.
    sampling, rng
        How its tokens are drawn.
    """

    def __init__(self, decoder: "Decoder", sampling: Sampling, rng: np.random.Generator) -> None:
        self._decoder, self._sampling, self._rng = decoder, sampling, rng
        self._kept = PrefixCache()

    def guess(self, ids: Sequence[int], most: int) -> Guess:
        """Generate up to ``most`` tokens, `DRAFT_TOKENS`, or as many as the draft's context has room for."""
        decoder, sampling, is_drawn = self._decoder, self._sampling, self._sampling.temperature > 0
        read, q = list(ids), []
        with self._kept.borrow(read, len(ids) - 1, decoder) as cache:
            longest = fit_length(cache, decoder.config, len(ids))
            for _ in range(min(most, DRAFT_TOKENS, longest + 1 - len(ids))):  # the last one is not read
                logits = next_logits(decoder, read[cache.length :], cache)
                if is_drawn:
                    q.append(chances(logits, sampling, read))
                read.append(draw(q[-1], self._rng) if is_drawn else sample(logits, sampling, read, self._rng))
        return Guess(read[len(ids) :], q if is_drawn else None)


def next_logits(decoder: "Decoder", unread: Sequence[int], cache: KVCache) -> Array:
    """Read tokens into the cache; return the logits after the last: ``(vocab_size,)``."""
    if len(unread) <= 1 + DRAFT_TOKENS:  # so few are read by operations that are recorded already
        return decoder.next_logits(unread[:1], cache, unread[1:])[-1]
    return decoder.next_logits(unread, cache)[-1]


def check_draft(decoder: "Decoder", draft: "Decoder") -> None:
    """Raise `InputError` unless a draft model has the vocabulary of the decoder that it guesses for."""
    n_tokens, n_drafted = decoder.config.vocab_size, draft.config.vocab_size
    if n_tokens != n_drafted or not decoder.tokenizer.has_tokens_of(draft.tokenizer):
        raise InputError(
            f"the draft {draft.name} ({n_drafted} tokens) has another vocabulary than {decoder.name} "
            f"({n_tokens} tokens): give a smaller model of the same family as the draft"
        )
