"""Choosing the next token: pure functions on logits ``(vocab_size,)``.

Equal to the logits processors of transformers, in the order in which its ``generate`` applies them:
repetition penalty, temperature, top-k, top-p, min-p.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.errors import InputError
from engine.layers.activation import softmax
from engine.layers.tracing import Array


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen.

    Attributes
    ----------
    temperature
        Logits are divided by it; 0 is greedy: the largest logit, no draw.
    top_k, top_p, min_p
        Draw only among the ``top_k`` most probable tokens, the nucleus of probability ``top_p``, and
        those at least ``min_p`` times as probable as the most probable; None is no limit.
    repetition_penalty
        Above 1, tokens that occurred before lose probability; 1 is none. It counts at temperature 0.

    Raises
    ------
    InputError
        A setting is outside its range.
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < np.inf:
            raise InputError(f"temperature is {self.temperature}: give 0 (greedy) or more")
        if self.top_k is not None and self.top_k < 1:
            raise InputError(f"top_k is {self.top_k}: give 1 or more, or None for no limit")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise InputError(f"top_p is {self.top_p}: give a value above 0 and up to 1, or None for no limit")
        if self.min_p is not None and not 0 <= self.min_p <= 1:
            raise InputError(f"min_p is {self.min_p}: give a value from 0 to 1, or None for no limit")
        if not 0 < self.repetition_penalty < np.inf:
            raise InputError(
                f"repetition_penalty is {self.repetition_penalty}: give a value above 0, 1 for no penalty"
            )


def penalize_repetition(logits: Array, seen: Sequence[int], penalty: float) -> Array:
    """Divide the logits of tokens ``seen`` by ``penalty``, or multiply them where negative.

    The penalised sampling of CTRL (Keskar et al. 2019), whatever the number of times a token occurred.
    """
    if penalty == 1:
        return logits
    places = np.asarray(seen, np.intp)
    score = logits[places]
    penalized = logits.copy()
    penalized[places] = np.where(score < 0, score * penalty, score / penalty)
    return penalized


def keep_top_k(logits: Array, top_k: int) -> Array:
    """Set all but the ``top_k`` largest logits to -inf; ties with the smallest kept stay."""
    smallest = np.partition(logits, -min(top_k, logits.size))[-min(top_k, logits.size)]
    return np.where(logits < smallest, -np.inf, logits)


def keep_top_p(logits: Array, top_p: float) -> Array:
    """Keep the fewest most probable tokens that together reach probability ``top_p``.

    Nucleus sampling (Holtzman et al. 2020); the rest becomes -inf. Of equal logits on the border those
    with the smaller ids stay.
    """
    probability = softmax(logits)
    # All tokens below this add up to less than 1 - top_p, so none of them has to be sorted.
    likely = probability >= min((1 - top_p) / logits.size, probability.max())
    order = np.flatnonzero(likely)[::-1]
    order = order[np.argsort(logits[order], kind="stable")]  # least probable first
    mass_up_to = probability[~likely].sum() + np.cumsum(probability[order])
    mass_up_to[-1] = np.inf  # the most probable stays, however small top_p
    kept = np.full_like(logits, -np.inf)
    nucleus = order[mass_up_to > 1 - top_p]
    kept[nucleus] = logits[nucleus]
    return kept


def keep_min_p(logits: Array, min_p: float) -> Array:
    """Set tokens less than ``min_p`` times as probable as the most probable to -inf (Nguyen et al. 2024)."""
    return np.where(np.exp(logits - logits.max()) < min_p, -np.inf, logits)


def chances(logits: Array, sampling: Sampling, seen: Sequence[int]) -> Array:
    """Probability with which `sample` takes each token: float64 ``(vocab_size,)``."""
    logits = penalize_repetition(logits, seen, sampling.repetition_penalty)
    if sampling.temperature == 0:
        return (np.arange(logits.size) == np.argmax(logits)).astype(np.float64)
    with np.errstate(over="ignore"):  # a tiny temperature makes all but the largest -inf, as it should
        logits = (logits.astype(np.float64) - logits.max()) / sampling.temperature
    if sampling.top_k is not None:
        logits = keep_top_k(logits, sampling.top_k)
    if sampling.top_p is not None and sampling.top_p < 1:
        logits = keep_top_p(logits, sampling.top_p)
    if sampling.min_p is not None:
        logits = keep_min_p(logits, sampling.min_p)
    return softmax(logits)


def sample(logits: Array, sampling: Sampling, seen: Sequence[int], rng: np.random.Generator) -> int:
    """Pick a token id: the largest logit at temperature 0, else by its chance.

    ``seen`` are the ids that the repetition penalty counts.
    """
    if sampling.temperature == 0:
        return int(np.argmax(penalize_repetition(logits, seen, sampling.repetition_penalty)))
    cumulative = np.cumsum(chances(logits, sampling, seen))
    return int(np.searchsorted(cumulative / cumulative[-1], rng.random(), side="right"))


def log_probability(logits: Array, tokens: Array) -> Array:
    """``log_softmax(logits)`` at one token a row: ``(n, vocab_size), (n,) -> (n,)``."""
    largest = logits.max(axis=-1)
    shifted = logits - largest[:, None]
    chosen = shifted[np.arange(len(tokens)), tokens]
    return chosen - np.log(np.exp(shifted, out=shifted).sum(axis=-1))


def entropy(logits: Array) -> float:
    """``-sum(p log p)`` of ``p = softmax(logits)``, in nats."""
    probability = softmax(logits.astype(np.float64))
    log_p = np.log(probability, where=probability > 0, out=np.zeros_like(probability))
    return -float(probability @ log_p)


def most_probable(logits: Array, n: int) -> Array:
    """Ids of the ``n`` largest logits, the largest first: ``(n,)``."""
    if n == 0:
        return np.empty(0, np.intp)
    best = np.argpartition(-logits, n - 1)[:n]
    return best[np.lexsort((best, -logits[best]))]
