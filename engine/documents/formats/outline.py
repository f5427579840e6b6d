"""Texts built from blocks, and sections from headings."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import TypeVar

from ...errors import DocumentError
from ..document import Section

T = TypeVar("T")

MAX_HEADINGS = 100_000
MAX_HEADING = 1000  # characters kept of one


@dataclass(frozen=True)
class Block:
    """A piece of text; ``level`` is a heading's depth from 1, else 0; ``gap`` comes before it."""

    text: str
    level: int = 0
    gap: str = "\n\n"


@dataclass(frozen=True)
class Heading:
    """A heading that starts at the character ``start``; ``level`` 1 is the outermost."""

    start: int
    level: int
    text: str


def check_number(name: str, number: int, most: int, what: str) -> None:
    """Raise `DocumentError` for a file with more parts of a kind than are read."""
    if number > most:
        raise DocumentError(f"{name} has over {most} {what}, the most that are read: split it")


def bounded(name: str, found: Iterable[T], most: int, what: str) -> Iterator[T]:
    """Yield the parts of a file; raise `DocumentError` once there are over ``most``."""
    for number, part in enumerate(found, 1):
        check_number(name, number, most, what)
        yield part


def join_blocks(blocks: Iterable[Block]) -> tuple[str, tuple[Section, ...]]:
    """Join blocks; return the text and its sections."""
    whole = StringIO()
    headings: list[Heading] = []
    for block in blocks:
        whole.write(block.gap if whole.tell() else "")
        if block.level:
            headings.append(Heading(whole.tell(), block.level, one_line(block.text)))
        whole.write(block.text)
    return whole.getvalue(), sections_under(headings)


def join_slides(slides: Iterable[tuple[int, str, str]]) -> tuple[str, tuple[Section, ...]]:
    """Join the slides that have a text, each given by number, title and text; return all and its sections."""
    whole, sections = "", []
    for number, title, text in slides:
        if text:
            whole += "\n\n" if whole else ""
            sections.append(Section(len(whole), (title,) if title else (), number))
            whole += text
    return whole, tuple(sections)


def sections_under(headings: Iterable[Heading]) -> tuple[Section, ...]:
    """Return a section for each heading, with the path of headings above it."""
    path: list[Heading] = []
    sections = []
    for heading in headings:
        path = [outer for outer in path if outer.level < heading.level] + [heading]
        sections.append(Section(heading.start, tuple(outer.text[:MAX_HEADING] for outer in path)))
    return tuple(sections)


def title_of(headings: Sequence[Heading]) -> str:
    """Return the text of the first heading if its level is 1, else an empty title."""
    return headings[0].text[:MAX_HEADING] if headings and headings[0].level == 1 else ""


def one_line(text: str) -> str:
    """Return a text on one line with single blanks, for a title or a message."""
    return " ".join(text.split())
