"""A document as values of JSON and SQLite, and back; each is checked when it is read."""

import json
from typing import Any, TypeVar

from engine.documents.document import Document, Section

T = TypeVar("T")


def metadata_row(document: Document) -> dict[str, Any]:
    """Return the sections, date and tags of a document as JSON values."""
    sections = [[int(s.start), list(s.headings), optional_int(s.page)] for s in document.sections]
    return {"sections": sections, "date": document.date, "tags": list(document.tags)}


def to_document(_: int, name: str, title: str, text: str, metadata: str) -> Document:
    """Restore a document from its row; one of the first version holds nothing but sections."""
    content = json.loads(metadata)
    if isinstance(content, list):
        content = {"sections": content, "date": "", "tags": []}
    return Document(
        checked(name, str),
        checked(text, str),
        checked(title, str),
        tuple(
            Section(checked(start, int), to_strings(headings), optional(page, int))
            for start, headings, page in checked(content["sections"], list)
        ),
        checked(content["date"], str),
        to_strings(content["tags"]),
    )


def to_strings(value: object) -> tuple[str, ...]:
    """Restore several texts from JSON values."""
    return tuple(checked(text, str) for text in checked(value, list))


def to_json(value: object) -> str:
    """Return a value as JSON; raises for other values."""
    return json.dumps(value, allow_nan=False)


def optional_int(value: int | None) -> int | None:
    """Return a plain int from one that may be NumPy's or missing."""
    return None if value is None else int(value)


def optional(value: object, kind: type[T]) -> T | None:
    """Return a value that is None or of type ``kind``."""
    return None if value is None else checked(value, kind)


def checked(value: object, kind: type[T]) -> T:
    """Return a value of type ``kind``, or raise `TypeError`; a bool is not an int here."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{value!r:.80} stands where a {kind.__name__} must be")
    return value
