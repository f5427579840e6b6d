"""Jupyter notebooks: their Markdown, code and the text of outputs."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from ...errors import DocumentError
from ..document import Document
from .json_lines import parse_json
from .markdown import notes_of, shown
from .outline import MAX_HEADINGS, Heading, bounded, sections_under, title_of
from .plain import decode, unified
from .webpage import html_text

GAP = "\n\n"  # between cells
HTML, TABLE = "text/html", "<table"
TEXT_TYPES = ("text/markdown", "text/plain", "text/latex", "application/json")
PICTURE = re.compile(r"<[^<>]*>")  # "<Figure size 640x480 with 1 Axes>", in place of a picture
ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")  # colours of a terminal


def read_notebook(name: str, content: bytes) -> Document:
    """Make a document from a notebook of format 4; headings of Markdown cells become sections.

    Only a few keys of each cell are needed (https://nbformat.readthedocs.io/en/latest/format_description.html),
    so the JSON is read without nbformat.
    """
    notebook = parse_json(name, decode(name, content))
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise DocumentError(f"{name} has no cells: save it as a notebook of format 4")
    texts: list[str] = []
    headings: list[Heading] = []
    left_out: Counter[str] = Counter()
    start = 0
    for kind, text in (part for cell in cells for part in cell_parts(cell, left_out)):
        if kind == "markdown":
            text, found, n = shown(text, start)
            headings += found
            left_out += n
        if text.strip():
            texts.append(text)
            start += len(text) + len(GAP)
    if not texts:
        raise DocumentError(f"{name} is empty: there is no text to search")
    headings, text = list(bounded(name, headings, MAX_HEADINGS, "headings")), GAP.join(texts)
    return Document(name, text, title_of(headings), sections_under(headings), notes=notes_of(left_out))


def cell_parts(cell: Any, left_out: Counter[str]) -> Iterator[tuple[str, str]]:
    """Yield a cell's type and text, and the texts of its outputs; count the pictures among these."""
    if not isinstance(cell, dict) or cell.get("cell_type") not in ("markdown", "code", "raw"):
        return
    yield cell["cell_type"], joined(cell.get("source"))
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else ():
        if not isinstance(output, dict):
            continue
        data = output.get("data")
        data = data if isinstance(data, dict) else {}
        error = " ".join(filter(None, (joined(output.get("ename")), joined(output.get("evalue")))))
        texts = (joined(output.get("text")), *(joined(data.get(each)) for each in TEXT_TYPES), error)
        text = next(filter(None, texts), "")
        if HTML in data and (TABLE in joined(data[HTML]) or not text):
            text = html_text(joined(data[HTML])) or text
        if any(kind.startswith("image/") for kind in data):
            left_out["output picture"] += 1
            text = "" if PICTURE.fullmatch(text.strip()) else text
        yield "output", ANSI.sub("", text).rstrip()


def joined(source: Any) -> str:
    """Return a text that is stored as a string or a list of lines."""
    lines = source if isinstance(source, list) else [source]
    return unified("".join(line for line in lines if isinstance(line, str)))
