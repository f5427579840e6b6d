"""Activation patching: which layer, position and head carry a fact from one of two prompts to the answer.

A *clean* prompt is followed by an answer that a *corrupted* one makes less probable, as it lacks the fact or
states another. One activation of the corrupted run is replaced by that of the clean run, and the rise of the
answer's log-probability is the effect of this activation (Vig et al. 2020; Meng et al. 2022). The effect of
several patches together need not be the sum of the single ones (Heimersheim & Nanda 2024).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from time import perf_counter
from typing import Any, Literal, get_args

import numpy as np

from ...errors import InputError
from ...generation.decoder import Decoder
from ...generation.prefix_cache import common_prefix
from ...generation.sampling import log_probability
from ...layers.tracing import Array, Tracer, no_trace
from ...models.decoders import resume_forward
from ...models.kv_cache import KVCache
from .last_positions import MAX_POSITIONS, LastPositions, read_last

# Smallest difference between the two runs, in nats, whose shares are meaningful: compiled operations round by
# up to a hundredth of it.
MIN_GAP = 0.5
Part = Literal["residual", "attention", "ffn"]
Head = tuple[int, int]  # layer and head
GoOn = Callable[[int, int], bool]  # receives patches done and in all; whether to go on


@dataclass(frozen=True)
class PromptPair:
    """Two prompts, and the answer whose log-probability is compared."""

    # token ids
    clean: tuple[int, ...]
    corrupted: tuple[int, ...]
    answer: tuple[int, ...]
    # number of last tokens of prompt and answer, without the answer's last, that have a counterpart in the
    # other prompt: for prompts of one length, from the first token that differs; otherwise the equal tokens
    # at the end, whose positions differ and whose distances from each other do not
    n_aligned: int


def align_prompts(clean: Sequence[int], corrupted: Sequence[int], answer: Sequence[int]) -> PromptPair:
    """Align two prompts by their tokens."""
    if not answer:
        raise InputError("the answer is empty: give the text whose probability is compared")
    if not clean or not corrupted:
        raise InputError("a prompt is empty: give two prompts that end in the same words")
    if list(clean) == list(corrupted):
        raise InputError("both prompts are the same: let them state different facts")
    n_same = common_prefix(clean[::-1], corrupted[::-1])  # tokens at the end
    if n_same == 0:
        raise InputError("the prompts end in different tokens: end both in the same question")
    if len(clean) == len(corrupted):
        n_same = len(clean) - common_prefix(clean, corrupted)
    return PromptPair(tuple(clean), tuple(corrupted), tuple(answer), n_same + len(answer) - 1)


@dataclass(frozen=True)
class PairRuns:
    """The runs of both prompts, followed by the answer, over the last ``n`` of their aligned positions."""

    decoder: Decoder
    pair: PromptPair
    ids: tuple[int, ...]  # the corrupted run's tokens at these positions, ``n`` of them
    clean: LastPositions
    corrupted: LastPositions
    # log-probability of the answer after each prompt, in nats
    log_p_clean: float
    log_p_corrupted: float
    cache: KVCache = field(repr=False)  # of the corrupted run

    @property
    def n_layers(self) -> int:
        """Number of layers."""
        return self.decoder.config.n_layers

    @property
    def gap(self) -> float:
        """Nats by which the clean prompt makes the answer more probable."""
        return self.log_p_clean - self.log_p_corrupted

    def patched(self, trace: Tracer = no_trace, first: int = 0, states: Array | None = None) -> float:
        """Log-probability of the answer in the corrupted run with activations replaced.

        ``trace`` returns each named array of the layers, or another in its place. ``states (n, d_model)`` are
        the residual stream before layer ``first``, by default that of the corrupted run.
        """
        config, weights = self.decoder.config, self.decoder.weights
        self.cache.rollback(self.cache.length - len(self.ids))
        before = self.corrupted.states[first] if states is None else states
        final = resume_forward(self.ids, weights, config, self.cache, trace, first, before)
        return answer_log_probability(self.decoder, final, self.pair.answer)

    def effects(self, patched: Array) -> Array:
        """Return the share of `gap` that each patch restores: 0 as if corrupted, 1 as if clean, or beyond."""
        if abs(self.gap) < MIN_GAP:
            raise InputError(
                f"the prompts change the answer's log-probability by {self.gap:+.2f} nats, too little to be "
                f"traced: {MIN_GAP} are needed. Give an answer that one prompt makes clearly more probable"
            )
        return (patched - self.log_p_corrupted) / self.gap


def read_pair(decoder: Decoder, pair: PromptPair, n: int = MAX_POSITIONS) -> PairRuns:
    """Run both prompts of a pair, followed by the answer, and keep the last ``n`` aligned positions."""
    if not len(pair.answer) <= n <= MAX_POSITIONS:
        raise InputError(
            f"{n} positions for an answer of {len(pair.answer)} tokens: give {len(pair.answer)} to "
            f"{MAX_POSITIONS}, or a shorter answer"
        )
    n = min(n, pair.n_aligned)
    clean, _ = read_last(decoder, [*pair.clean, *pair.answer[:-1]], n)
    ids = [*pair.corrupted, *pair.answer[:-1]]
    corrupted, cache = read_last(decoder, ids, n)
    log_p, log_p_corrupted = (
        answer_log_probability(decoder, run.final, pair.answer) for run in (clean, corrupted)
    )
    return PairRuns(decoder, pair, tuple(ids[-n:]), clean, corrupted, log_p, log_p_corrupted, cache)


def answer_log_probability(decoder: Decoder, final: Array, answer: Sequence[int]) -> float:
    """Log-probability of an answer whose last token follows the last of the final hidden states."""
    logits = decoder.unembed(final[-len(answer) :])  # (n_answer, vocab_size)
    return float(log_probability(logits, np.asarray(answer)).sum())


def patch_positions(
    runs: PairRuns,
    part: Part,
    go_on: GoOn = lambda done, total: True,
) -> Array:
    """Log-probability of the answer with one position of one layer patched, for all of them.

    Parts are the ``residual`` stream before the first and after every layer, ``(n_layers + 1, n)``, and the
    outputs of ``attention`` and ``ffn`` of each layer, ``(n_layers, n)``. ``go_on`` is called with
    patches done and patches in all; where it returns False the rest stays NaN.
    """
    if part not in get_args(Part):
        raise InputError(f"part is {part!r}: give one of {', '.join(get_args(Part))}")
    name = "states" if part == "residual" else part
    clean, corrupted = getattr(runs.clean, name), getattr(runs.corrupted, name)

    def patch(row: int, place: int) -> float:
        value = clean[row, place]
        if np.array_equal(value, corrupted[row, place]):
            return runs.log_p_corrupted
        if part == "residual":
            states = corrupted[row].copy()  # (n, d_model)
            states[place] = value
            return runs.patched(first=row, states=states)
        return runs.patched(replacing({f"layers.{row}.{part}.output": (place, value)}), row)

    return sweep(patch, clean.shape[0], clean.shape[1], go_on)


def patch_heads(runs: PairRuns, heads: Iterable[Head]) -> float:
    """Log-probability of the answer with some heads' contexts patched where its tokens are predicted."""
    places = np.arange(-len(runs.pair.answer), 0)
    chosen = sorted(set(heads))
    patches = {}
    for layer in sorted({layer for layer, _ in chosen}):
        own = np.array([head for number, head in chosen if number == layer])
        index = np.ix_(own, places)
        patches[f"layers.{layer}.attention.context"] = index, runs.clean.heads[layer][index]
    return runs.patched(replacing(patches), chosen[0][0]) if chosen else runs.log_p_corrupted


def patch_each_head(
    runs: PairRuns,
    go_on: GoOn = lambda done, total: True,
) -> Array:
    """`patch_heads` for every single head: ``(n_layers, n_heads)``, NaN for what was not measured."""

    def patch(layer: int, head: int) -> float:
        return patch_heads(runs, [(layer, head)])

    return sweep(patch, runs.n_layers, runs.decoder.config.n_heads, go_on)


def strongest(effects: Array, n: int) -> list[tuple[int, int]]:
    """Row and column of the ``n`` largest effects, the largest first; NaN are none."""
    order = np.argsort(-effects, axis=None)[: min(n, np.isfinite(effects).sum())]  # NaN come last
    return [divmod(int(place), effects.shape[1]) for place in order]


def expected_seconds(runs: PairRuns, n: int, n_patches: int) -> float:
    """Seconds of patches of all layers over the last ``n`` positions, from one timed run of all layers.

    A patch runs half of them on average. Nothing may have been patched in ``runs``.
    """
    last = replace(runs, ids=runs.ids[-n:])
    start = perf_counter()
    last.patched(states=runs.corrupted.states[0, -n:])
    return (perf_counter() - start) * n_patches / 2


def sweep(
    patch: Callable[[int, int], float],
    n_rows: int,
    n_columns: int,
    go_on: GoOn,
) -> Array:
    """Return ``patch(row, column)`` for all cells, from the last row on: ``(n_rows, n_columns)``."""
    found = np.full((n_rows, n_columns), np.nan)
    for n_done, (row, column) in enumerate(product(reversed(range(n_rows)), range(n_columns)), start=1):
        found[row, column] = patch(row, column)
        if not go_on(n_done, found.size):
            break
    return found


def replacing(patches: Mapping[str, tuple[Any, Array]]) -> Tracer:
    """Return a tracer that replaces entries of arrays, by name: an index, and the values there."""

    def trace(name: str, value: Array) -> Array:
        if name not in patches:
            return value
        index, entries = patches[name]
        patched = value.copy()
        patched[index] = entries
        return patched

    return trace
