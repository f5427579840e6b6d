"""Patches of all heads or positions of a pair, measured in a background job."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from engine.inspection.model.patching import (
    Part,
    PromptPair,
    patch_each_head,
    patch_heads,
    patch_positions,
    read_pair,
    strongest,
)
from engine.layers.tracing import Array
from ui.jobs import Job, current_job, session_jobs, start_job
from ui.models import load_decoder

PAGE = "inside/answer"
MOST_POSITIONS = 24  # the last ones of both prompts
TOGETHER = 5  # heads that are patched together, too
What = Literal["heads"] | Part


@dataclass(frozen=True)
class Measured:
    """Effects of all patches, NaN for those left out, and of the strongest heads patched together."""

    effects: Array
    together: float = 0.0


def positions_of(pair: PromptPair) -> int:
    """Return how many of a pair's last positions are compared."""
    return min(max(MOST_POSITIONS, len(pair.answer)), pair.n_aligned)


def start_sweep(pair: PromptPair, what: What) -> None:
    """Measure a pair in a job; stop the one that is running, if any."""
    for other in session_jobs().values():
        if other.page == PAGE:
            other.stop()
    decoder = load_decoder()

    def work(job: Job[Measured]) -> Measured:
        job.words = "Reading both prompts…"

        def go_on(done: int, total: int) -> bool:
            job.report(done, total, f"{done:,} of {total:,} patches")
            return job.take_turn()

        if what != "heads":
            runs = read_pair(decoder, pair, positions_of(pair))
            return Measured(runs.effects(patch_positions(runs, what, go_on)))
        runs = read_pair(decoder, pair, len(pair.answer))
        effects = runs.effects(patch_each_head(runs, go_on))
        together = patch_heads(runs, strongest(effects, TOGETHER))
        return Measured(effects, float(runs.effects(np.array(together))))

    start_job(f"patches-{what}", work, request=request_of(pair), page=PAGE)


def sweep_of(pair: PromptPair, what: What) -> Job[Measured] | None:
    """Return the session's job that measures a pair, if any."""
    return current_job(f"patches-{what}", request_of(pair))


def request_of(pair: PromptPair) -> object:
    """Return what a job is for: the pair, and the model that reads it."""
    decoder = load_decoder()
    return decoder.name, decoder.kv_bits, pair
