"""Jupyter notebooks: their Markdown and code, without outputs."""

from typing import Any

from engine.documents.document import Document
from engine.documents.formats.json_lines import parse_json
from engine.documents.formats.markdown import atx_headings
from engine.documents.formats.outline import MAX_HEADINGS, Heading, bounded, sections_under, title_of
from engine.documents.formats.plain import decode, unified
from engine.errors import DocumentError

GAP = "\n\n"  # between cells


def read_notebook(name: str, content: bytes) -> Document:
    """Make a document from a notebook of format 4; headings of Markdown cells become sections.

    Only two keys of each cell are needed (https://nbformat.readthedocs.io/en/latest/format_description.html),
    so the JSON is read without nbformat.
    """
    notebook = parse_json(name, decode(name, content))
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise DocumentError(f"{name} has no cells: save it as a notebook of format 4")
    texts: list[str] = []
    headings: list[Heading] = []
    start = 0
    for cell in cells:
        kind, text = cell_source(cell)
        if text.strip():
            found = atx_headings(text, start) if kind == "markdown" else ()
            headings += bounded(name, found, MAX_HEADINGS, "headings")
            texts.append(text)
            start += len(text) + len(GAP)
    if not texts:
        raise DocumentError(f"{name} is empty: there is no text to search")
    headings = list(bounded(name, headings, MAX_HEADINGS, "headings"))
    return Document(name, GAP.join(texts), title_of(headings), sections_under(headings))


def cell_source(cell: Any) -> tuple[str, str]:
    """Return a cell's type and text, which is stored as a string or a list of lines."""
    if not isinstance(cell, dict) or cell.get("cell_type") not in ("markdown", "code"):
        return "", ""
    source = cell.get("source", "")
    lines = source if isinstance(source, list) else [source]
    return cell["cell_type"], unified("".join(line for line in lines if isinstance(line, str)))
