"""Progress bars of work that is counted, with the time that its rest takes at the rate measured so far."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

import streamlit as st

from engine.wording import readable_time

SURE_S = 1.0  # of work that are measured before the rest is estimated


class TimeLeft:
    """The time that the rest of some work takes, by its rate since the first report.

    What was done before that report, such as texts whose vectors are known, does not count for the rate.
    """

    def __init__(self) -> None:
        self._first: tuple[float, float] | None = None  # the time of the first report, and its share

    def __call__(self, share: float) -> str:
        """Note the share that is done: ``", about 12 s left"``, or ``""`` where it is not known yet."""
        now = monotonic()
        if self._first is None:
            self._first = now, share
        elapsed, done = now - self._first[0], share - self._first[1]
        if elapsed < SURE_S or not done > 0 or share >= 1:
            return ""
        return f", about {readable_time(elapsed * (1 - share) / done)} left"


@contextmanager
def counting(title: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Draw a progress bar during a block; the yielded function moves it.

    It says ``"{title}: 3 of 10 {unit}, about 12 s left"``.
    """
    bar, left = st.progress(0.0, f"{title}…"), TimeLeft()

    def show(done: int, total: int) -> None:
        share = done / total
        bar.progress(share, f"{title}: {done:,} of {total:,} {unit}{left(share)}")

    try:
        yield show
    finally:
        bar.empty()
