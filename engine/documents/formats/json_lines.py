"""JSON Lines: a document a line."""

import json
from collections.abc import Iterator
from typing import Any

from engine.documents.document import Document
from engine.documents.formats.loaded import Failure
from engine.documents.formats.outline import one_line
from engine.documents.formats.plain import decode, unified
from engine.errors import DocumentError

# Where a record keeps its text; the first of these that the file's first record has.
TEXT_KEYS = ("text", "content", "contents", "body", "passage", "document")


def read_jsonl(name: str, content: bytes) -> Iterator[Document | Failure]:
    """Yield a document for each line, named by the line: ``a.jsonl#1`` is the first.

    The first record decides under which of `TEXT_KEYS` the texts are; ``title`` is its title. A line that
    is damaged or has no such text is a failure, and those after it are read.

    Raises
    ------
    DocumentError
        The first record is damaged or has none of `TEXT_KEYS`.
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
    """Return what a JSON text says."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise DocumentError(f"{name} nests its JSON too deep: flatten it") from error
    except ValueError as error:  # bad JSON, or a number of thousands of digits
        raise DocumentError(f"{name} is not JSON ({one_line(str(error))[:200]}): mend it") from error


def text_key(name: str, first: dict[str, Any]) -> str:
    """Return the first of `TEXT_KEYS` under which a record has a text."""
    for key in TEXT_KEYS:
        if isinstance(first.get(key), str):
            return key
    found = one_line(", ".join(map(unified, first)))[:300] or "none"
    raise DocumentError(f"{name} has no text under {', '.join(TEXT_KEYS)}, its keys are: {found}. Rename one")


def line_document(name: str, values: dict[str, Any], key: str) -> Document:
    """Make a document of a record."""
    text, title = values.get(key), values.get("title")
    if not isinstance(text, str) or not text.strip():
        raise DocumentError(f"{name} has no text under {key}: fill it in, or leave the line out")
    return Document(name, unified(text), one_line(unified(title)) if isinstance(title, str) else "")
