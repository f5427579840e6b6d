"""What the commands print: JSON and tables, and the progress of downloads."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..documents.document import Chunk
from ..documents.loaders import OnPage
from ..generation.prompt import Source
from ..progress import status_line
from ..retrieval.evidence import Quote
from ..weights.fetch import Progress
from ..weights.transfer import Transfer


@contextmanager
def download_progress(name: str) -> Iterator[Progress]:
    """Yield a reporter of bytes: ``Downloading Qwen3-0.6B: 12.3 of 639.4 MB · 4.5 MB/s · 139 s left``."""
    transfer = Transfer()
    with status_line() as show:

        def report(done: int, total: int) -> None:
            transfer(done, total)
            show(f"Downloading {name}: {transfer.words}", transfer.share if total else None)

        yield report


@contextmanager
def page_progress() -> Iterator[OnPage]:
    """Yield a reporter of pages: ``Recognising text in scan.pdf: page 3 of 40``."""
    with status_line() as show:
        yield lambda name, page, n_pages: show(
            f"Recognising text in {name}: page {page} of {n_pages}", (page - 1) / n_pages
        )


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
