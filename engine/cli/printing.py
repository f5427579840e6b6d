"""What the commands print: one JSON object, a table, a place in a document."""

import json
import sys
from collections.abc import Sequence
from typing import Any

from engine.documents.document import Chunk


def print_json(content: dict[str, Any]) -> None:
    """Print one JSON object on standard output, with escapes where its encoding lacks characters."""
    print(json.dumps(content, ensure_ascii=sys.stdout.encoding.lower() != "utf-8", indent=2))


def print_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table with columns as wide as their longest cell."""
    lines = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def place(chunk: Chunk) -> str:
    """``document:start-end`` of a chunk."""
    return f"{chunk.document}:{chunk.start}-{chunk.end}"
