"""Progress bars of work that is counted, with the time that its rest takes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import streamlit as st

from engine.wording import TimeLeft


@contextmanager
def counting(title: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Draw a bar, ``"{title}: 3 of 10 {unit}, about 12 s left"``; the yielded function moves it."""
    bar, left = st.progress(0.0, f"{title}…"), TimeLeft()

    def show(done: int, total: int) -> None:
        share = done / total
        bar.progress(share, f"{title}: {done:,} of {total:,} {unit}{left(share)}")

    try:
        yield show
    finally:
        bar.empty()
