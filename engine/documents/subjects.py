"""The subjects of a document: its headings, or the names that occur most often."""

import re
from collections import Counter
from collections.abc import Iterator

from .document import Document

WIKI_HEADING = re.compile(r"^[ \t]*=+ ([^=\n]+?) =+[ \t]*$", re.MULTILINE)
NUMBER = re.compile(r"^(?:\d+(?:\.\d+)*[.)]?|[IVX]+[.)])\s+")
# A capitalised word that begins no sentence, and those that follow it.
NAME = re.compile(r"(?<=[a-z,;:] )[A-Z]\w[\w'’-]+(?: (?:of |the |and )?[A-Z][\w'’-]+)*")
LONGEST = 50  # characters; a longer heading is a sentence
# Headings that most documents have.
COMMON = {"abstract", "acknowledgements", "appendix", "background", "conclusion", "conclusions", "contents"}
COMMON |= {"discussion", "introduction", "methods", "overview", "references", "results", "summary"}


def subjects(document: Document, n: int) -> list[str]:
    """Return up to ``n`` headings of a document, or names where it has no headings, each once.

    Headings are those of the document's sections, or of WikiText, without their numbers; of many, ones from
    all parts of the document. The first heading does not count: it is mostly the title.
    """
    headings = list(dict.fromkeys(headings_of(document)))
    if found := headings[1:]:
        return found[:: max(1, len(found) // n)][:n]
    names = Counter(match.group() for match in NAME.finditer(document.text))
    return [name for name, _ in names.most_common(n)]


def headings_of(document: Document) -> Iterator[str]:
    """Yield the headings of a document that are short and not `COMMON`, nor the number of a row."""
    found = [
        section.headings[-1]
        for section in document.sections
        if section.headings and not (section.is_row and section.headings[-1].startswith("row "))
    ]
    for each in found or WIKI_HEADING.findall(document.text):
        heading = NUMBER.sub("", each.strip(" *_`"))
        if heading and len(heading) <= LONGEST and heading.lower() not in COMMON:
            yield heading
