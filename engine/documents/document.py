"""Documents, their chunks, and what was read of files."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple

from .language import ENGLISH, LANGUAGES, LATIN, detected

MOST_OF_NAME = 5000  # characters; those that are read here have at most some 1000


class Section(NamedTuple):
    """A part of a document from character ``start`` to the next section."""

    start: int
    # the path of headings above it, the outermost first, and a table row's number: ``("row 12",)``
    headings: tuple[str, ...] = ()
    page: int | None = None  # counts from 1, None for files without pages
    is_row: bool = False


@dataclass(frozen=True)
class Document:
    r"""A text with a name.

    Attributes
    ----------
    name
        The file's name, or its path within a folder or archive; unique in a corpus.
    text
        The text; chunks and passages are spans of it, line ends are ``\n``.
    title
        The title in the file, empty if it has none.
    sections
        The parts under headings and on pages, in order; none for plain text.
    date
        The day that the file states of itself, as ``2026-05-01``, empty if it states none.
    tags
        The tags in the file.
    notes
        What reading the file left out or changed, and where: ``("2 formulas could not be read",)``.
    language
        The language that was chosen for it, one of `LANGUAGES`; empty for the one detected.
    """

    name: str
    text: str
    title: str = ""
    sections: tuple[Section, ...] = ()
    date: str = ""
    tags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    language: str = ""

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle holds: sections by their columns, as each object costs a pickle memory."""
        return {**vars(self), "sections": tuple(zip(*self.sections, strict=True))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what a pickle holds."""
        vars(self).update(state, sections=tuple(map(Section._make, zip(*state["sections"], strict=True))))

    @cached_property
    def fingerprint(self) -> str:
        """A digest of all that it holds, as a key of caches."""
        return sha256(repr(self).encode()).hexdigest()

    @cached_property
    def detected_language(self) -> str:
        """The language that its text tells, as `detected`."""
        return detected(self.text)

    def section_at(self, position: int) -> Section:
        """Return the section of a character; before the first section there are no headings."""
        number = bisect_right(self.sections, position, key=lambda section: section.start)
        return self.sections[number - 1] if number else Section(0)

    @property
    def has_rows(self) -> bool:
        """Whether it is a table, or has some."""
        return any(section.is_row for section in self.sections)

    def row_at(self, position: int) -> tuple[int, int] | None:
        """Return the span of the table's row that holds a character, None for one in no row."""
        number = bisect_right(self.sections, position, key=lambda section: section.start)
        if not number or not self.sections[number - 1].is_row:
            return None
        start = self.sections[number - 1].start
        end = self.sections[number].start if number < len(self.sections) else len(self.text)
        return start, start + len(self.text[start:end].rstrip())


def with_bounded_names(document: Document) -> Document:
    """Return a document from a file of ours that somebody else may have made.

    Raises `ValueError` where its name, its title or a heading is so long that it can be none.
    """
    names = (document.name, document.title, *(each for one in document.sections for each in one.headings))
    if max(map(len, names)) > MOST_OF_NAME:
        raise ValueError(f"a name or title in {document.name:.80} has over {MOST_OF_NAME:,} characters")
    return document


@dataclass(frozen=True)
class Chunk:
    """A span of the document of a name: ``document.text[start:end] == text``."""

    document: str
    start: int
    end: int
    text: str
    n_tokens: int  # special ones included, and those of the context
    headings: tuple[str, ...] = ()  # of the section in which it begins, as the page
    page: int | None = None
    # the larger chunk around it, which a decoder reads in its place, if there is one
    parent: "Chunk | None" = None
    context: str = ""  # put before the text where it is embedded and indexed: see `chunk_context`

    @property
    def indexed(self) -> str:
        """What is embedded and indexed of it."""
        return f"{self.context}\n{self.text}" if self.context else self.text


@dataclass(frozen=True)
class Failure:
    """A file or part that could not be read; the reason is one line that names it and a solution."""

    name: str
    reason: str


@dataclass(frozen=True)
class Loaded:
    """Documents in order, failures, and the names of skipped files of other formats."""

    documents: tuple[Document, ...] = ()
    failures: tuple[Failure, ...] = ()
    skipped: tuple[str, ...] = ()


def document_languages(documents: Iterable[Document]) -> dict[str, str]:
    """Return the language of each document, by its name: the one chosen for it, or else detected.

    A text whose language nothing tells has that of most others in Latin letters, or else is English.
    """
    found = {document.name: document.language or document.detected_language for document in documents}
    latin = Counter(each for each in found.values() if each and LANGUAGES[each].script == LATIN)
    [(most, _)] = latin.most_common(1) or [(ENGLISH, 0)]
    return {name: language or most for name, language in found.items()}
