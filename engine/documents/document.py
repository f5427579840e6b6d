"""A document and its pieces."""

from bisect import bisect_right
from dataclasses import dataclass


@dataclass(frozen=True)
class Section:
    """A place in a document: from character ``start`` on, until the next section.

    ``headings`` is the path of headings above it, the outermost first; ``page`` counts from 1, and is
    None where the file has no pages.
    """

    start: int
    headings: tuple[str, ...] = ()
    page: int | None = None


@dataclass(frozen=True)
class Document:
    r"""A text with a name.

    Attributes
    ----------
    name
        The file's name, or its path within a folder or archive; unique in a corpus.
    text
        The text that everything is a span of; line ends are ``\n``.
    title
        What the file calls itself, empty where it does not.
    sections
        Where pages and headings begin, in the order of their places; none for plain text.
    """

    name: str
    text: str
    title: str = ""
    sections: tuple[Section, ...] = ()

    def section_at(self, position: int) -> Section:
        """Return the section that a character belongs to; before the first there are no headings."""
        number = bisect_right(self.sections, position, key=lambda section: section.start)
        return self.sections[number - 1] if number else Section(0)


@dataclass(frozen=True)
class Chunk:
    """A span of a document: ``document.text[start:end] == text``.

    Attributes
    ----------
    document
        The document's name.
    start, end, text
        The span.
    n_tokens
        What the model would read of it, special tokens included.
    headings, page
        The section that it begins in.
    parent
        The larger chunk around it that a decoder is given in its place, where there is one.
    """

    document: str
    start: int
    end: int
    text: str
    n_tokens: int
    headings: tuple[str, ...] = ()
    page: int | None = None
    parent: "Chunk | None" = None
