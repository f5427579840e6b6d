"""JSON Lines: one document per line."""

import json
from collections.abc import Iterator
from typing import Any

from engine.documents.document import Document, Failure
from engine.documents.formats.metadata import date_of, tags_of
from engine.documents.formats.outline import one_line
from engine.documents.formats.plain import decode, unified
from engine.errors import DocumentError
from engine.wording import printable, reason_of

# Possible keys of the text; the first of these in the file's first record is used.
TEXT_KEYS = ("text", "content", "contents", "body", "passage", "document")


def read_jsonl(name: str, content: bytes) -> Iterator[Document | Failure]:
    """Yield a document for each line, named after the line: ``a.jsonl#1`` is the first.

    The first record determines which of `TEXT_KEYS` has the texts; ``title`` is the title, and
    ``date`` and ``tags`` are the document's. A line that is damaged or has no text is a failure, and the rest
    is still read.
    """
    lines = [(i, line) for i, line in enumerate(decode(name, content).split("\n"), 1) if line.strip()]
    key = text_key(name, record(f"{name}#{lines[0][0]}", lines[0][1]))
    for number, line in lines:
        line_name = f"{name}#{number}"
        try:
            yield line_document(line_name, record(line_name, line), key)
        except DocumentError as error:
            yield Failure(line_name, str(error))


def record(name: str, line: str) -> dict[str, Any]:
    """Return the JSON object of a line."""
    value = parse_json(name, line)
    if not isinstance(value, dict):
        raise DocumentError(f'{name} is no JSON object: write {{"text": "…"}} on every line')
    return value


def parse_json(name: str, text: str) -> Any:
    """Parse JSON; raise `DocumentError` if it is invalid."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise DocumentError(f"{name} nests its JSON too deep: flatten it") from error
    except ValueError as error:  # invalid JSON, or a number with thousands of digits
        raise DocumentError(f"{name} is not JSON ({reason_of(error)}): fix it") from error


def text_key(name: str, first: dict[str, Any]) -> str:
    """Return the first of `TEXT_KEYS` with a text in a record."""
    for key in TEXT_KEYS:
        if isinstance(first.get(key), str):
            return key
    found = printable(", ".join(map(unified, first)))[:300] or "none"
    raise DocumentError(f"{name} has no text under {', '.join(TEXT_KEYS)}, its keys are: {found}. Rename one")


def line_document(name: str, values: dict[str, Any], key: str) -> Document:
    """Make a document from a record."""
    text, title = values.get(key), values.get("title")
    text = unified(text) if isinstance(text, str) else ""
    if not text.strip():
        raise DocumentError(f"{name} has no text under {key}: fill it in, or leave the line out")
    title = one_line(unified(title)) if isinstance(title, str) else ""
    return Document(name, text, title, date=date_of(values.get("date")), tags=tags_of(values.get("tags")))
