"""Markdown: the text is unchanged, and its headings become sections."""

from collections.abc import Iterator

from engine.documents.document import Document
from engine.documents.formats.metadata import date_of, front_matter, tags_of
from engine.documents.formats.outline import MAX_HEADINGS, Heading, bounded, sections_under, title_of
from engine.documents.formats.plain import decode


def read_markdown(name: str, content: bytes) -> Document:
    """Make a document with a section under each ATX heading (``#`` to ``######``).

    Its date and tags are those of the front matter, ``date`` and ``tags``, which remains part of the text.
    """
    text = decode(name, content)
    headings = list(bounded(name, atx_headings(text), MAX_HEADINGS, "headings"))
    values = front_matter(text)
    day, tags = date_of(values.get("date")), tags_of(values.get("tags"))
    return Document(name, text, title_of(headings), sections_under(headings), day, tags)


def atx_headings(text: str, offset: int = 0) -> Iterator[Heading]:
    """Yield the headings outside of code fences (CommonMark 0.31, sections 4.2 and 4.5).

    ``offset`` is the start of the text in the document.
    """
    fence = ""
    for line in text.split("\n"):
        body = line.lstrip(" ")
        if len(line) - len(body) > 3:  # indented code, or the content of a list
            pass
        elif fence:
            if closes(body, fence):
                fence = ""
        elif opening := fence_of(body):
            fence = opening
        elif heading := heading_of(body):
            yield Heading(offset + len(line) - len(body), *heading)
        offset += len(line) + 1


def fence_of(line: str) -> str:
    """Return the three or more marks that open a code fence, empty for other lines."""
    marks = line[: len(line) - len(line.lstrip(line[:1]))] if line[:1] in ("`", "~") else ""
    return marks if len(marks) >= 3 and not (marks[0] == "`" and "`" in line[len(marks) :]) else ""


def closes(line: str, fence: str) -> bool:
    """Whether a line closes a code fence: only its marks, at least as many."""
    marks = line.rstrip(" \t")
    return len(marks) >= len(fence) and marks == fence[0] * len(marks)


def heading_of(line: str) -> tuple[int, str] | None:
    """Return level and text of an ATX heading without its closing marks, or None."""
    rest = line.lstrip("#")
    level = len(line) - len(rest)
    if not 1 <= level <= 6 or (rest and rest[0] not in " \t"):
        return None
    text = rest.strip(" \t")
    unmarked = text.rstrip("#")
    if not unmarked or unmarked[-1] in " \t":
        text = unmarked.rstrip(" \t")
    return (level, text) if text else None
