"""What the commands print: JSON and tables; on standard error, plain lines about the work in progress."""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..documents.document import Chunk
from ..generation.prompt import Source
from ..retrieval.evidence import Quote
from ..weights.fetch import Progress
from ..weights.transfer import Transfer
from ..wording import TimeLeft, with_short_names

REDRAW_S = 0.2  # between two states of a line in a terminal
LINE_S = 5.0  # between two lines elsewhere, such as in a log file


KEPT = "warning: "  # the beginning of lines that are printed also where none about progress are
_is_quiet = False


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


class StatusLine:
    """A line that is redrawn in a terminal; elsewhere a new line every `LINE_S` seconds."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def show(self, line: str, is_last: bool = False) -> None:
        """Show a state, unless one was shown just now; a terminal always shows the last one."""
        if _is_quiet:
            return
        in_terminal, now = sys.stderr.isatty(), time.monotonic()
        if now - self._last < (REDRAW_S if in_terminal else LINE_S) and not (in_terminal and is_last):
            return
        self._last = now
        if in_terminal:
            print(f"\r{line:70}", end="\n" if is_last else "", file=sys.stderr, flush=True)
        else:
            say(line)


def progress(label: str) -> Progress:
    """Return a reporter of counts: ``Embedding 426 chunks: 128 of 426, about 12 s left``."""
    line, left = StatusLine(), TimeLeft()

    def report(done: int, total: int) -> None:
        line.show(f"{label}: {done:,} of {total:,}{left(done / max(1, total))}", done >= total)

    return report


def download_progress(name: str) -> Progress:
    """Return a reporter of bytes: ``Downloading Qwen3-0.6B: 12.3 of 639.4 MB · 4.5 MB/s · 139 s left``."""
    line, transfer = StatusLine(), Transfer()

    def report(done: int, total: int) -> None:
        transfer(done, total)
        line.show(f"Downloading {name}: {transfer.words}", bool(total) and done >= total)

    return report


def print_json(content: dict[str, Any]) -> None:
    """Print one JSON object on standard output, with escapes where its encoding lacks characters."""
    print(json.dumps(content, ensure_ascii=sys.stdout.encoding.lower() != "utf-8", indent=2))


def print_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table with columns as wide as their longest cell."""
    lines = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def place(piece: Chunk | Quote | Source, headings: Sequence[str] = ()) -> str:
    """``document:start-end`` of a piece of text, and headings: ``prices.csv:90-120, row 12``."""
    span = f"{piece.document}:{piece.start}-{piece.end}"
    return f"{span}, {' › '.join(headings)}" if headings else span
