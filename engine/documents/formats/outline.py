"""Texts made of blocks, and the headings above every place."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.documents.document import Section


@dataclass(frozen=True)
class Block:
    """A piece of text; ``level`` is a heading's depth from 1, or 0; ``gap`` parts it from the one before."""

    text: str
    level: int = 0
    gap: str = "\n\n"


@dataclass(frozen=True)
class Heading:
    """A heading that begins at the character ``start``; ``level`` counts from 1, the outermost."""

    start: int
    level: int
    text: str


def join_blocks(blocks: Iterable[Block]) -> tuple[str, tuple[Section, ...]]:
    """Return the blocks as one text, and where its headings begin."""
    parts: list[str] = []
    headings: list[Heading] = []
    position = 0
    for block in blocks:
        gap = block.gap if parts else ""
        parts.append(gap + block.text)
        if block.level:
            headings.append(Heading(position + len(gap), block.level, one_line(block.text)))
        position += len(parts[-1])
    return "".join(parts), sections_under(headings)


def sections_under(headings: Iterable[Heading]) -> tuple[Section, ...]:
    """Return a section for each heading, with the path to it: the last one before of every lower level."""
    path: list[Heading] = []
    sections = []
    for heading in headings:
        path = [outer for outer in path if outer.level < heading.level] + [heading]
        sections.append(Section(heading.start, tuple(outer.text for outer in path)))
    return tuple(sections)


def title_of(headings: Sequence[Heading]) -> str:
    """Return the first heading's text where its level is 1: what such a file calls itself."""
    return headings[0].text if headings and headings[0].level == 1 else ""


def one_line(text: str) -> str:
    """Return a text without line ends and with single blanks, as a title or a message needs it."""
    return " ".join(text.split())
