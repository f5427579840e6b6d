"""Choosing the next token: pure functions on logits ``(vocab_size,)``."""

import numpy as np

from engine.errors import InputError
from engine.layers.activation import softmax
from engine.layers.tracing import Array


def check_sampling(temperature: float, top_k: int | None, top_p: float | None) -> None:
    """Raise `InputError` for a setting outside its range."""
    if not 0 <= temperature < np.inf:
        raise InputError(f"temperature is {temperature}: give 0 (greedy) or more")
    if top_k is not None and top_k < 1:
        raise InputError(f"top_k is {top_k}: give 1 or more, or None for no limit")
    if top_p is not None and not 0 < top_p <= 1:
        raise InputError(f"top_p is {top_p}: give a value above 0 and up to 1, or None for no limit")


def keep_top_k(logits: Array, top_k: int) -> Array:
    """Set all but the ``top_k`` largest logits to -inf; ties with the smallest kept stay."""
    smallest = np.partition(logits, -min(top_k, logits.size))[-min(top_k, logits.size)]
    return np.where(logits < smallest, -np.inf, logits)


def keep_top_p(logits: Array, top_p: float) -> Array:
    """Keep the fewest most probable tokens that together reach probability ``top_p``.

    Nucleus sampling (Holtzman et al. 2020); the rest becomes -inf.
    """
    order = np.argsort(-logits, kind="stable")
    probability = softmax(logits[order])
    mass_before = np.cumsum(probability) - probability
    kept = np.full_like(logits, -np.inf)
    nucleus = order[mass_before < top_p]
    kept[nucleus] = logits[nucleus]
    return kept


def sample(
    logits: Array, temperature: float, top_k: int | None, top_p: float | None, rng: np.random.Generator
) -> int:
    """Pick a token id: the largest logit at temperature 0, else by probability.

    The order is that of transformers: temperature, top-k, top-p.
    """
    if temperature == 0:
        return int(np.argmax(logits))
    with np.errstate(over="ignore"):  # a tiny temperature makes all but the largest -inf, as it should
        logits = (logits.astype(np.float64) - logits.max()) / temperature
    if top_k is not None:
        logits = keep_top_k(logits, top_k)
    if top_p is not None:
        logits = keep_top_p(logits, top_p)
    return int(rng.choice(logits.size, p=softmax(logits)))
