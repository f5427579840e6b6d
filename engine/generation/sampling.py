"""Choosing the next token: pure functions on logits ``(vocab_size,)``.

Equal to the logits processors of transformers, in the order in which its ``generate`` applies them:
repetition penalty, temperature, top-k, top-p, min-p.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ..errors import InputError
from ..installed import row_of
from ..layers.activation import log_softmax, softmax
from ..layers.tracing import Array


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen: a field for each of `RULES`, None where it is off, and the seed.

    Temperature 0 is greedy: the largest logit, no draw. As in transformers, the repetition penalty counts
    the tokens of prompt and answer. A seed of None draws differently each time.
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float = 1.0
    seed: int | None = None

    def __post_init__(self) -> None:
        for name, rule in RULES.items():
            value = getattr(self, name)
            if value is not None and not rule.is_valid(value):
                raise InputError(f"{name} is {value}: give {rule.advice}")
        if self.seed is not None and self.seed < 0:
            raise InputError(
                f"seed is {self.seed}: give 0 or more, or leave it out for another draw each time"
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


def divide_by_temperature(logits: Array, temperature: float) -> Array:
    """``(logits - max(logits)) / temperature`` in float64."""
    with np.errstate(over="ignore"):  # a tiny temperature makes all but the largest -inf, as it should
        return (logits.astype(np.float64) - logits.max()) / temperature


def keep_top_k(logits: Array, top_k: int) -> Array:
    """Set all but the ``top_k`` largest logits to -inf; ties with the smallest one kept stay."""
    place = -min(top_k, logits.size)
    smallest = np.partition(logits, place)[place]
    return np.where(logits < smallest, -np.inf, logits)


def keep_top_p(logits: Array, top_p: float) -> Array:
    """Keep the fewest most probable tokens that together reach probability ``top_p``.

    Nucleus sampling (Holtzman et al. 2020); the rest becomes -inf. Of equal logits at the border, those with
    the smaller ids stay.
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


@dataclass(frozen=True)
class Rule:
    """One setting of `Sampling`: what it does to logits, and how it is set."""

    # apply(logits, value, seen): logits (vocab_size,) under the rule; seen are ids of prompt and answer
    apply: Callable[[Array, Any, Sequence[int]], Array]
    is_valid: Callable[[float], bool]
    advice: str  # the values that are valid
    low: float  # range and step of a slider
    high: float
    step: float
    off: float  # the value of the slider that turns the rule off
    label: str
    help: str
    if_greedy: bool = False  # whether it also counts at temperature 0; such rules come before the temperature
    on_server: bool = False  # whether OpenAI-compatible servers share it, under the same name


def in_table(name: str) -> dict[str, Any]:
    """Return the fields of a rule that data/sampling_rules.csv holds: its slider and its texts."""
    row = row_of("sampling_rules.csv", name)
    return row | {key: json.loads(row[key]) for key in ("low", "high", "step", "off")}


# To add a rule, add an entry, its row in data/sampling_rules.csv, its function and the field of `Sampling`:
# the app draws its sliders and the command line its options from here, in this order. Rules apply in this
# order too, those ``if_greedy`` first.
RULES = {
    "temperature": Rule(
        lambda logits, value, _: divide_by_temperature(logits, value),
        lambda value: 0 <= value < np.inf,
        **in_table("temperature"),
        on_server=True,
    ),
    "top_k": Rule(
        lambda logits, value, _: keep_top_k(logits, value), lambda value: value >= 1, **in_table("top_k")
    ),
    "top_p": Rule(
        lambda logits, value, _: keep_top_p(logits, value) if value < 1 else logits,
        lambda value: 0 < value <= 1,
        **in_table("top_p"),
        on_server=True,
    ),
    "min_p": Rule(
        lambda logits, value, _: keep_min_p(logits, value), lambda value: 0 <= value <= 1, **in_table("min_p")
    ),
    "repetition_penalty": Rule(
        lambda logits, value, seen: penalize_repetition(logits, seen, value),
        lambda value: 0.01 <= value <= 100,
        **in_table("repetition_penalty"),
        if_greedy=True,
    ),
}
GREEDY = Sampling()


def sampling_of(values: Mapping[str, Any], seed: int | None = None) -> Sampling:
    """Return the sampling of slider values by rule; those that are missing or off have their defaults."""
    on = {name: value for name, value in values.items() if value != RULES[name].off}
    return Sampling(**on, seed=seed)


def unused_settings(sampling: Sampling) -> list[str]:
    """Return the names of settings that are given and have no effect, as the temperature is 0."""
    if sampling.temperature != 0:
        return []
    off = {name: rule.off for name, rule in RULES.items() if not rule.if_greedy} | {"seed": None}
    return [name for name, value in off.items() if getattr(sampling, name) not in (None, value)]


def server_settings(sampling: Sampling) -> dict[str, Any]:
    """Return the settings that go to an OpenAI-compatible server, without those that are None."""
    shared = [*(name for name, rule in RULES.items() if rule.on_server), "seed"]
    for field in fields(sampling):
        value = getattr(sampling, field.name)
        if field.name not in shared and value != field.default:
            raise InputError(
                f"{field.name} is {value}, and a server has only {', '.join(shared[:-1])} and {shared[-1]}: "
                "leave it out"
            )
    return {name: value for name in shared if (value := getattr(sampling, name)) is not None}


def apply_rules(logits: Array, sampling: Sampling, seen: Sequence[int], if_greedy: bool) -> Array:
    """Apply the rules that are set, those that also count at temperature 0 or the others."""
    for name, rule in RULES.items():
        value = getattr(sampling, name)
        if rule.if_greedy == if_greedy and value is not None:
            logits = rule.apply(logits, value, seen)
    return logits


def chances(logits: Array, sampling: Sampling, seen: Sequence[int]) -> Array:
    """Probability with which `sample` takes each token: float64 ``(vocab_size,)``."""
    logits = apply_rules(logits, sampling, seen, if_greedy=True)
    if sampling.temperature == 0:
        return (np.arange(logits.size) == np.argmax(logits)).astype(np.float64)
    return softmax(apply_rules(logits, sampling, seen, if_greedy=False))


def sample(logits: Array, sampling: Sampling, seen: Sequence[int], rng: np.random.Generator) -> int:
    """Choose a token id: the largest logit at temperature 0, otherwise drawn by `chances`."""
    if sampling.temperature == 0:
        return int(np.argmax(apply_rules(logits, sampling, seen, if_greedy=True)))
    return draw(chances(logits, sampling, seen), rng)


def draw(chance: Array, rng: np.random.Generator) -> int:
    """Draw a token id by probabilities ``(vocab_size,)``."""
    cumulative = np.cumsum(chance)
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


def divergence(reference: Array, logits: Array) -> Array:
    """KL divergence ``sum(p (log p - log q))`` of ``(n, vocab_size)`` logits, in nats: ``(n,)``."""
    log_p, log_q = (log_softmax(each.astype(np.float64)) for each in (reference, logits))
    return (np.exp(log_p) * (log_p - log_q)).sum(axis=-1)


def most_probable(logits: Array, n: int) -> Array:
    """Ids of the ``n`` largest logits, the largest first: ``(n,)``."""
    best = np.argpartition(-logits, n - 1)[:n]
    return best[np.lexsort((best, -logits[best]))]
