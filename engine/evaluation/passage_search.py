"""Search of a text for a passage: exactly, with another spelling of marks, or approximately.

Passages that a file of questions gives without their places are `located` in the documents.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property
from itertools import pairwise

import numpy as np

from ..documents.document import Document
from ..layers.tracing import Array
from .questions import UNLOCATED, Question, Reference, names_for, stem

# Quotation marks and dashes that are typed and printed differently, each for one character.
ALIKE = str.maketrans("‘’‚‛′`“”„‟″«»‐‑‒–—―−", "''''''" + '"' * 7 + "-" * 7)
# Chinese, Japanese and Korean have no space between words: each character counts as a word.
CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
WORD = re.compile(f"[{CJK}]|[^\\W{CJK}]+")
LETTER = re.compile(f"[^\\W{CJK}]")  # or digit, of a script that puts spaces between words
# Share of common words, in order, of both texts, below which a place does not match the passage.
LEAST_ALIKE = 0.6
# Most words that a place may have in addition between two common words.
MOST_INSERTED = 5
ROUNDING = 1e-9  # of sums of words' weights
MOST_PLACES = 20  # of one passage in a document


@dataclass(frozen=True)
class SearchableText:
    """A document's text, prepared once for the search of many passages."""

    name: str
    text: str

    def holds(self, reference: Reference) -> bool:
        """Whether a passage is at its place."""
        return reference.start >= 0 and self.text[reference.start : reference.end] == reference.content

    def find(self, reference: Reference) -> tuple[str, Reference | None]:
        """Search for a passage: describe the result, and return the match nearest to its given place."""
        content, start = reference.content, reference.start
        if content.strip():
            if span := nearest(self.text, content, start):
                return self.suggestion("it stands", span)
            if span := self.alike(content, start):
                return self.suggestion("spelled alike, it stands", span)
            span, ratio = self.approximate(content, start)
            if span and ratio >= LEAST_ALIKE:
                return self.suggestion(f"a text that is alike to {ratio:.0%} stands", span)
        return "nothing like it was found there: correct the passage, or leave it out", None

    def suggestion(self, how: str, span: tuple[int, int]) -> tuple[str, Reference]:
        """Describe a match, and return it as a reference."""
        start, end = span
        return f"{how} at {start} to {end}: take that place", Reference(self.text[start:end], start, end)

    @cached_property
    def plain(self) -> tuple[str, Array, Array]:
        """The text with unified marks and single spaces, and the starts of its words in both texts."""
        starts = np.fromiter((run.start() for run in re.finditer(r"\S+", self.text)), np.int64)
        runs = self.text.split()
        lengths = np.fromiter((len(run) + 1 for run in runs), np.int64, len(runs))
        return " ".join(runs).translate(ALIKE), starts, np.cumsum(lengths) - lengths

    def alike(self, content: str, start: int) -> tuple[int, int] | None:
        """Find a passage that differs only in white space, quotation marks and dashes."""
        plain, starts, plain_starts = self.plain
        before = max(0, int(np.searchsorted(starts, start, "right")) - 1)
        near = plain_starts[before] if len(starts) else 0
        span = nearest(plain, " ".join(content.split()).translate(ALIKE), int(near))
        return None if span is None else self.of_plain(span)

    def everywhere(self, content: str) -> list[tuple[int, int]]:
        """Find all places of a passage, as whole words, where white space and marks may differ."""
        wanted = " ".join(content.split()).translate(ALIKE)
        before = r"(?<!\w)" if LETTER.match(wanted) else ""
        after = r"(?!\w)" if LETTER.match(wanted[-1:]) else ""
        plain = self.plain[0]
        return [self.of_plain(each.span()) for each in re.finditer(before + re.escape(wanted) + after, plain)]

    def of_plain(self, span: tuple[int, int]) -> tuple[int, int]:
        """Return the span of the text that a span of the plain text stands for."""
        _, starts, plain_starts = self.plain
        ends = np.array([span[0], span[1] - 1])  # the first and the last character
        runs = np.searchsorted(plain_starts, ends, "right") - 1
        first, last = (starts[runs] + ends - plain_starts[runs]).tolist()
        return first, last + 1

    @cached_property
    def words(self) -> tuple[Array, dict[str, int], Array]:
        """Spans of words, (n_words, 2), the number of each distinct word, and their numbers, (n_words,)."""
        numbers: dict[str, int] = {}
        spans = np.array([word.span() for word in WORD.finditer(self.text)], np.int64).reshape(-1, 2)
        ids = np.fromiter((numbers.setdefault(word, len(numbers)) for word in words_of(self.text)), np.int64)
        return spans, numbers, ids

    def approximate(self, content: str, start: int) -> tuple[tuple[int, int] | None, float]:
        """Find the place most similar to a passage, and the share of common words, from 0 to 1.

        The words of a window as long as the passage are compared with it in order. The window is the one with
        most of the passage's words, where rare words count more.
        """
        spans, numbers, ids = self.words
        wanted = [numbers.get(word, -1) for word in words_of(content)]
        known = [number for number in set(wanted) if number >= 0]
        if not known:
            return None, 0.0
        is_known = np.isin(np.arange(len(numbers)), known)
        weights = np.where(is_known, 1 / np.bincount(ids), 0)[ids]  # (n_words,)
        sums = np.cumsum(np.concatenate([[0.0], weights, np.zeros(len(wanted))]))
        found = sums[len(wanted) :] - sums[: -len(wanted)]  # (n_words + 1,), by the window's first word
        best = np.flatnonzero(found >= found.max() - ROUNDING)
        middle = int(best[np.abs(best - np.searchsorted(spans[:, 0], start)).argmin()])
        low, high = max(0, middle - len(wanted) // 2), middle + len(wanted) + len(wanted) // 2 + 1
        first, last, ratio = most_alike(wanted, ids[low:high].tolist())
        return with_marks(content, self.text, int(spans[low + first, 0]), int(spans[low + last, 1])), ratio


def words_of(text: str) -> Iterator[str]:
    """Yield the words of a text in one case."""
    return (word[0].casefold() for word in WORD.finditer(text))


def nearest(text: str, content: str, near: int) -> tuple[int, int] | None:
    """Return the occurrence of a content nearest to a position of a text, or None."""
    places = [text.rfind(content, 0, near + len(content)), text.find(content, max(0, near))]
    found = [place for place in places if place >= 0]
    if not found:
        return None
    start = min(found, key=lambda place: abs(place - near))
    return start, start + len(content)


def most_alike(wanted: Sequence[int], window: Sequence[int]) -> tuple[int, int, float]:
    """Find the part of a window with most wanted words in order; return its first and last word, the share.

    The window must have at least one of the words.
    """
    matches = [match for match in SequenceMatcher(None, wanted, window).get_matching_blocks() if match.size]
    groups = [matches[:1]]
    for before, after in pairwise(matches):  # matches far apart are different places
        inserted = (after.b - before.b - before.size) - (after.a - before.a - before.size)
        if inserted > MOST_INSERTED:
            groups.append([])
        groups[-1].append(after)
    group = max(groups, key=lambda group: sum(match.size for match in group))
    begin, end = group[0], group[-1]
    first = max(0, begin.b - begin.a)  # different words at either end belong to the place
    last = min(len(window), end.b + len(wanted) - end.a) - 1
    n_shared = sum(match.size for match in group)
    return first, last, 2 * n_shared / (len(wanted) + last + 1 - first)


def with_marks(content: str, text: str, start: int, end: int) -> tuple[int, int]:
    """Widen a span of words by the marks at either end of the passage, if they are in the text."""
    words = list(WORD.finditer(content))
    opening, closing = content[: words[0].start()].lstrip(), content[words[-1].end() :].rstrip()
    if text.endswith(opening, 0, start):
        start -= len(opening)
    if text.startswith(closing, end):
        end += len(closing)
    return start, end


def located(questions: Sequence[Question], documents: Sequence[Document]) -> list[Question]:
    """Return questions in their order, with their unlocated passages found in the documents.

    A passage is searched in the document that the question names, in the rows of the file that it names, or
    in all; white space, quotation marks and dashes may differ. Every place where it stands counts. A question
    whose passages stand in no document, in several, or in more than `MOST_PLACES` places of one, is returned
    as it is.
    """
    texts = [SearchableText(document.name, document.text) for document in documents]
    named: dict[str, list[SearchableText]] = {}
    for text in texts:
        for name in names_for(text.name):
            named.setdefault(name, []).append(text)
    return [
        located_in(question, named.get(question.corpus_id, []) if question.corpus_id else texts)
        if any(is_unlocated(one) for one in question.references)
        else question
        for question in questions
    ]


def located_in(question: Question, texts: Sequence[SearchableText]) -> Question:
    """Return a question with its passages at their places in the one of its documents that holds them all."""
    found = [
        (stem(text.name), [places(text, one) if is_unlocated(one) else (one,) for one in question.references])
        for text in texts
    ]
    # A document may be there twice, cut by the app and with given vectors: the places are the same.
    holding = {(name, tuple(each)) for name, each in found if all(each)}
    if len(holding) != 1:
        return question
    [(name, each)] = holding
    references = tuple(dict.fromkeys(one for places in each for one in places))
    return replace(question, corpus_id=name, references=references)


def places(text: SearchableText, passage: Reference) -> tuple[Reference, ...]:
    """Return where a text holds a passage; none where that is more than `MOST_PLACES`."""
    spans = text.everywhere(passage.content)
    if len(spans) > MOST_PLACES:
        return ()
    return tuple(Reference(text.text[slice(*span)], *span) for span in spans)


def is_unlocated(reference: Reference) -> bool:
    """Whether a passage has no place yet."""
    return reference.start == UNLOCATED
