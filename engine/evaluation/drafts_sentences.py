"""Sentences to draft questions about: drawn over all documents and sections, none of them boilerplate."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby

import numpy as np

from ..documents.document import Document
from ..documents.sentences import stripped_sentences
from .questions import Reference

FEWEST_WORDS, MOST_WORDS = 8, 45  # of a sentence
PLAIN_SHARE = 0.85  # of letters and blanks among its characters, at least
AROUND = 400  # characters of its passage on either side

NOT_FIRST = re.compile(
    r"(?:he|she|it|they|this|these|that|those|his|her|its|their|such|but|and|or|so|however|there|here|both|"
    r"also|then|thus|therefore|moreover|see|yes|no|as|table|figure|fig)\b",
    re.IGNORECASE,
)
FUNCTION_WORD = re.compile(
    r"\b(?:the|an?|of|to|in|is|are|was|were|has|have|had|that|which|for|with|by|on|can|will|from|at|be)\b",
    re.IGNORECASE,
)
MARKUP = re.compile(r"\||https?:|www\.|[{}]|[#=<>]{2}")


@dataclass(frozen=True)
class Sentence:
    """The span ``[start, end)`` of a document."""

    document: Document = field(repr=False)
    start: int
    end: int

    @cached_property
    def text(self) -> str:
        """Its characters."""
        return self.document.text[self.start : self.end]

    @property
    def reference(self) -> Reference:
        """The sentence as a passage that answers a question."""
        return Reference(self.text, self.start, self.end)

    @cached_property
    def key(self) -> str:
        """Its words in lower case: what stands twice with the same words is boilerplate."""
        return re.sub(r"\W+", " ", self.text.lower()).strip()

    @property
    def can_be_asked_about(self) -> bool:
        """Whether it is prose that stands alone: no heading, row or code, and no pronoun begins it."""
        return (
            FEWEST_WORDS <= len(self.text.split()) <= MOST_WORDS
            and self.text[-1] in ".!”\"')"
            and sum(c.isalpha() or c.isspace() for c in self.text) >= PLAIN_SHARE * len(self.text)
            and len(FUNCTION_WORD.findall(self.text)) >= 2
            and not MARKUP.search(self.text)
            and not NOT_FIRST.match(self.text.lstrip("\"“'(*- "))
        )

    @cached_property
    def passage(self) -> tuple[int, int]:
        """The span of the sentence with `AROUND` characters on either side, cut between words."""
        text = self.document.text
        first, last = max(0, self.start - AROUND), min(len(text), self.end + AROUND)
        while 0 < first < self.start and not text[first - 1].isspace():
            first += 1
        while self.end < last < len(text) and not text[last].isspace():
            last -= 1
        return first, last

    def is_near(self, other: "Sentence") -> bool:
        """Whether it shares a character with the passage of another."""
        first, last = other.passage
        return self.document.name == other.document.name and self.start < last and first < self.end


def sentences_of(document: Document) -> list[Sentence]:
    """Return the sentences of a document without the blanks around them."""
    return [Sentence(document, *span) for span in stripped_sentences(document.text)]


def strips(sentences: Sequence[Sentence], n: int, rng: np.random.Generator) -> list[list[Sentence]]:
    """Divide the sentences that can be asked about into ``n`` strips or more, in random order inside and out.

    Together strips cover all documents and their sections. Where there are fewer documents than
    strips, each has one or more, by its size; else a strip has the sentences of several documents. Of fewer
    sentences each is a strip.
    """
    times = Counter(each.key for each in sentences)
    usable = [each for each in sentences if times[each.key] == 1 and each.can_be_asked_about]
    by_document = [list(own) for _, own in groupby(usable, lambda each: each.document.name)]
    groups = by_document if len(by_document) < n else [usable]
    ends = np.rint(np.cumsum([len(own) for own in groups]) * n / max(1, len(usable))).astype(int)
    found = []
    for own, n_own in zip(groups, np.diff(ends, prepend=0), strict=True):
        for places in np.array_split(np.arange(len(own)), min(len(own), max(1, n_own))):
            found.append([own[place] for place in rng.permutation(places)])
    return [found[place] for place in rng.permutation(len(found))]
