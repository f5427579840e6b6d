"""Documents named in files of questions: exactly, up to ending and case, or by the most similar name.

Questions name a document by its stem, the name without its ending. An unknown name stands for the only
document that it can mean; otherwise the passages quoted in the file identify the document.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from pathlib import PurePath
from typing import Protocol, Self, TypeVar

from ..documents.document import Document
from .questions import names_for, stem


class AboutDocument(Protocol):
    """A question that names its document."""

    @property
    def about(self) -> str:
        """The stem of the document's name, as the file gives it; empty where it names none."""

    def renamed(self, document: str) -> Self:
        """Return the question about the document of another name."""

    def within(self, document: Document, row: tuple[int, int]) -> Self:
        """Return the question about a document, with places that were counted from the start of its row."""

    def fits(self, text: str) -> bool | None:
        """Whether a document's text has at its places what the file quotes; None where it quotes nothing."""


Asked = TypeVar("Asked", bound=AboutDocument)


@dataclass(frozen=True)
class Proposal:
    """Documents that an unknown name may mean."""

    name: str  # the unknown name
    n_questions: int  # how many questions give it, and how many of them quote a text at a place
    n_quoting: int
    fitting: Mapping[str, int]  # of these, how many fit each loaded document, by its name
    best: str  # the document proposed: the one that most fit, of several the most similar in its name


def at_rows(questions: Iterable[Asked], documents: Sequence[Document]) -> list[Asked]:
    """Return questions about a row, ``prices#3``, as questions about the document of the table."""
    questions = list(questions)
    unknown = [name for name in unknown_names(questions, [each.name for each in documents]) if "#" in name]
    if not unknown:
        return questions
    rows: dict[str, list[tuple[Document, int]]] = {}
    for document in documents:
        for section in document.sections:
            if section.is_row:
                name = f"{stem(document.name)}#{section.headings[0].removeprefix('row ')}"
                rows.setdefault(name.casefold(), []).append((document, section.start))
    found = []
    for each in questions:
        places = rows.get(each.about.casefold(), []) if each.about in unknown else []
        row = places[0][0].row_at(places[0][1]) if len(places) == 1 else None
        found.append(each.within(places[0][0], row) if row else each)
    return found


def matched_names(questions: Iterable[AboutDocument], documents: Iterable[str]) -> dict[str, str]:
    """Return the document of each unknown name that differs from it, and only it, in ending and capitals."""
    names = list(documents)
    matched = {}
    for name in unknown_names(questions, names):
        # "a.doc" and "a.pages" are no files that are read, but "LGPL-2.1" has no ending.
        path = PurePath(name)
        without = path.stem if path.suffix[1:].isalpha() else stem(name)
        spellings = {name.casefold(), without.casefold()}
        found = [document for document in names if stem(document).casefold() in spellings]
        if len(found) == 1:
            matched[name] = found[0]
    return matched


def renamed(questions: Iterable[Asked], names: Mapping[str, str]) -> list[Asked]:
    """Return questions with the documents of some names replaced."""
    return [each.renamed(names[each.about]) if each.about in names else each for each in questions]


def unknown_names(questions: Iterable[AboutDocument], documents: Iterable[str]) -> list[str]:
    """Return the names that are given and that no document has, each once."""
    known = {name for document in documents for name in names_for(document)}
    return [name for name in dict.fromkeys(each.about for each in questions) if name and name not in known]


def proposals(questions: Sequence[AboutDocument], documents: Sequence[Document]) -> list[Proposal]:
    """Return a proposal for each unknown name; none without documents."""
    found = []
    for name in unknown_names(questions, [document.name for document in documents]) if documents else []:
        own = [each for each in questions if each.about == name]
        fits = {document.name: [each.fits(document.text) for each in own] for document in documents}
        fitting = {document: sum(each is True for each in found) for document, found in fits.items()}
        best = max(fitting, key=lambda document: (fitting[document], likeness(name, document)))
        n_quoting = sum(each is not None for each in fits[best])
        found.append(Proposal(name, len(own), n_quoting, fitting, best))
    return found


def likeness(name: str, document: str) -> float:
    """Return the similarity of two names without endings, in one case, 0 to 1."""
    return SequenceMatcher(None, name.casefold(), stem(document).casefold()).ratio()


def did_you_mean(name: str, documents: Iterable[str]) -> str:
    """``"did you mean finance_slice?"``, or nothing where no document has a similar name."""
    stems = {stem(document).casefold(): stem(document) for document in documents}
    close = get_close_matches(stem(name).casefold(), stems, 1)
    return f"did you mean {stems[close[0]]}?" if close else ""
