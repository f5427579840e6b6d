"""Lines about the work in progress, on standard error; in a terminal with a bar, which rich draws."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .wording import TimeLeft, with_short_names

LINE_S = 5.0  # between two lines where there is no terminal, such as in a log file
KEPT = "warning: "  # the beginning of lines that are printed also where none about progress are
_is_quiet = False

Show = Callable[[str, float | None], None]  # a line, and the share that is done, if it is known


@contextmanager
def quiet(is_wanted: bool = True) -> Iterator[None]:
    """Print no lines about the work in progress within the block, if that is wanted; warnings are printed."""
    global _is_quiet
    before, _is_quiet = _is_quiet, is_wanted
    try:
        yield
    finally:
        _is_quiet = before


def say(line: str) -> None:
    """Print a line on standard error."""
    if not _is_quiet or line.startswith(KEPT):
        print(with_short_names(line), file=sys.stderr, flush=True)


def new_bar() -> Any:
    """Return a bar of rich, None where there is no terminal that can redraw a line."""
    if not sys.stderr.isatty():
        return None
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(stderr=True)
    if not console.is_interactive:
        return None
    columns = TextColumn("{task.description}", markup=False), BarColumn(bar_width=20)
    return Progress(*columns, console=console, redirect_stdout=False, refresh_per_second=5)


@contextmanager
def status_line(first: str = "") -> Iterator[Show]:
    """Yield a function that shows a line: redrawn with a bar, or after the ``first`` one every `LINE_S`."""
    bar, last = None if _is_quiet else new_bar(), time.monotonic()
    if first and bar is None:
        say(first)

    def show(line: str, share: float | None) -> None:
        nonlocal last
        if bar is not None:
            if not bar.tasks:
                bar.add_task("", total=1)
                bar.start()
            bar.update(0, description=line, completed=share, total=None if share is None else 1)
        elif (now := time.monotonic()) - last >= LINE_S:
            last = now
            say(line)

    try:
        yield show
    finally:
        if bar is not None:
            bar.stop()


@contextmanager
def progress(label: str) -> Iterator[Callable[[float, int], None]]:
    """Yield a reporter of counts: ``Embedding 426 chunks: 128 of 426, about 12 s left``."""
    left = TimeLeft()
    with status_line(label) as show:

        def report(done: float, total: int) -> None:
            share = done / max(1, total)
            show(f"{label}: {int(done):,} of {total:,}{left(share)}", share)

        yield report
