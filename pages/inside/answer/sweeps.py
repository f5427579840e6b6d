"""Patches of all heads or positions of a pair, measured in a background job."""

from dataclasses import dataclass, field
from time import monotonic
from typing import Literal

import numpy as np
import streamlit as st

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
from engine.wording import readable_time
from ui.jobs import Job, announce
from ui.models import load_decoder

STATE = "origin-sweeps"
MOST_POSITIONS = 24  # the last ones of both prompts
TOGETHER = 5  # heads that are patched together, too
What = Literal["heads"] | Part


@dataclass(frozen=True)
class Measured:
    """Effects of all patches, NaN for those left out, and of the strongest heads patched together."""

    effects: Array
    together: float = 0.0


@dataclass
class Sweep:
    """A job that measures, and how far it is."""

    done: int = 0
    total: int = 0
    started: float = field(default_factory=monotonic)
    job: Job[Measured] = field(init=False)

    @property
    def share(self) -> float:
        """How much of the work is done."""
        return self.done / max(self.total, 1)

    def count(self, done: int, total: int) -> None:
        """Record the progress."""
        self.done, self.total = done, total

    def progress(self) -> tuple[float, str]:
        """Return the share of the work that is done, and that in words."""
        if not self.done:
            return 0.0, "Reading both prompts…"
        left = (monotonic() - self.started) * (1 / self.share - 1)
        return self.share, f"{self.done:,} of {self.total:,} patches, about {readable_time(left)} left"


def positions_of(pair: PromptPair) -> int:
    """Return how many of a pair's last positions are compared."""
    return min(max(MOST_POSITIONS, len(pair.answer)), pair.n_aligned)


def start_sweep(pair: PromptPair, what: What) -> None:
    """Measure a pair in a job; stop the one that is running, if any."""
    sweeps = sweeps_of(pair)
    for other in sweeps.values():
        other.job.stop()
    decoder, sweep = load_decoder(), Sweep()

    def work(job: Job[Measured]) -> Measured:
        def stop() -> bool:
            return not job.take_turn()

        if what != "heads":
            runs = read_pair(decoder, pair, positions_of(pair))
            return Measured(runs.effects(patch_positions(runs, what, sweep.count, stop)))
        runs = read_pair(decoder, pair, len(pair.answer))
        effects = runs.effects(patch_each_head(runs, sweep.count, stop))
        together = patch_heads(runs, strongest(effects, TOGETHER))
        return Measured(effects, float(runs.effects(np.array(together))))

    sweep.job = Job(work)
    announce("inside/answer", sweep.job, lambda: sweep.share)
    sweeps[what] = sweep


def sweeps_of(pair: PromptPair) -> dict[What, Sweep]:
    """Return the session's sweeps of a pair; those of another pair are stopped and dropped."""
    decoder = load_decoder()
    name = decoder.name, decoder.kv_bits, pair
    kept: tuple[object, dict[What, Sweep]] | None = st.session_state.get(STATE)
    if kept is not None and kept[0] == name:
        return kept[1]
    for other in kept[1].values() if kept else ():
        other.job.stop()
    st.session_state[STATE] = name, {}
    return st.session_state[STATE][1]
