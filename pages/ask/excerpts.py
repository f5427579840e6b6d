"""Excerpts of documents: sentences that stand near one another, within their paragraph, with their place."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from engine.documents.chunk_context import heads_above
from engine.documents.document import Document
from engine.documents.sentences import unwrapped
from engine.generation.answer import Answer
from engine.generation.prompt import Source
from engine.generation.reading import AnswerSpan
from engine.retrieval.evidence import CandidateSentence
from ui.colours import source_colour
from ui.text import faint_html, mark_html

CONTEXT = 120  # characters of its paragraph shown on either side of a quoted sentence


@dataclass(frozen=True)
class Excerpt:
    """Quotes that stand near one another in a document, the best first."""

    quotes: list[CandidateSentence]
    numbers: list[int]  # of the source in the prompt that holds each quote, 0 where none does
    document: Document

    @property
    def span(self) -> tuple[int, int]:
        """First character of all quotes, and the last + 1."""
        return min(quote.start for quote in self.quotes), max(quote.end for quote in self.quotes)


def excerpts(
    quotes: Sequence[CandidateSentence],
    documents: Mapping[str, Document],
    sources: Sequence[Source] = (),
    characters: int = CONTEXT,
) -> list[Excerpt]:
    """Group quotes of one paragraph that have at most ``characters`` between them."""
    found: list[Excerpt] = []
    for quote in quotes:
        document = documents[quote.document]
        for excerpt in found:
            first, second = sorted((quote, excerpt.quotes[0]), key=lambda each: each.start)
            is_near = document is excerpt.document and second.start - first.end <= characters
            if is_near and "\n" not in unwrapped(document.text, first.start, second.end):
                break
        else:
            excerpt = Excerpt([], [], document)
            found.append(excerpt)
        excerpt.quotes.append(quote)
        holding = (
            source.number
            for source in sources
            if source.document == quote.document and source.start <= quote.start and quote.end <= source.end
        )
        excerpt.numbers.append(next(holding, 0))
    return found


def excerpt_html(excerpt: Excerpt, words: Sequence[AnswerSpan] = ()) -> str:
    """Return quotes within their paragraph, with the words that answer marked, or else all of the quotes.

    Of the paragraph, at most `CONTEXT` characters stand on either side. Above the row of a table stand the
    names of its columns.
    """
    marks = []
    in_row = excerpt.document.row_at(excerpt.span[0]) is not None
    for quote, number in zip(excerpt.quotes, excerpt.numbers, strict=True):
        own = sorted((each.start, each.end) for each in (words_in(quote, words) if words else [quote]))
        marks.append((quote.start, quote.end, quote_html(quote, own, source_colour(max(1, number)), in_row)))
    first, last = excerpt.span
    start = max(0, first - CONTEXT)
    around = unwrapped(excerpt.document.text, start, last + CONTEXT)
    before = around[: first - start].rpartition("\n")[2]
    after = around[last - start :].partition("\n")[0]
    if len(before) == CONTEXT:
        before = "…" + before.partition(" ")[2]
    if len(after) == CONTEXT:
        after = after.rpartition(" ")[0] + "…"
    heads = faint_html(" ".join(heads_above(excerpt.document.text, first).split()))
    html, place = (f"{heads}<br>" if heads else "") + faint_html(before.lstrip()), first
    for quote_start, quote_end, mark in sorted(marks):
        html += faint_html(around[place - start : quote_start - start]) + mark
        place = quote_end
    return html + faint_html(after)


def quote_html(
    quote: CandidateSentence, spans: Sequence[tuple[int, int]], colour: str, in_row: bool = False
) -> str:
    """Return a sentence on one line, or a row of a table as it is, with spans of its document marked."""
    html, place, text = "", 0, quote.text if in_row else re.sub(r"\s", " ", quote.text)
    for first, last in spans:
        start, end = first - quote.start, last - quote.start
        html += escape(text[place:start]) + mark_html(escape(text[start:end]), colour)
        place = end
    return html + escape(text[place:])


def words_and_quotes(answer: Answer) -> tuple[list[AnswerSpan], list[CandidateSentence]]:
    """Return the reader's words, the best first, and the quotes that hold none of them."""
    words = [each for each in (answer.reading, answer.other_reading) if each]
    return words, [quote for quote in answer.quotes if not words_in(quote, words)]


def words_in(quote: CandidateSentence, words: Sequence[AnswerSpan]) -> list[AnswerSpan]:
    """Return those of the words that begin in a sentence."""
    return [each for each in words if quote.holds(each.document, each.start)]


def excerpt_source(excerpt: Excerpt, words: Sequence[AnswerSpan] = ()) -> str:
    """``"[3] tower.md · Towers › Height · page 3 · characters 12–160"``, those of words that answer."""
    numbers = "".join(f"[{number}] " for number in excerpt.numbers if number)
    own = [each for quote in excerpt.quotes for each in words_in(quote, words)]
    start, end = (own[0].start, own[0].end) if own else excerpt.span
    return f"{numbers}{excerpt.quotes[0].document} · {place_words(excerpt.document, start, end)}"


def place_words(document: Document, start: int, end: int) -> str:
    """``"Towers › Height · page 3 · characters 12–60"``."""
    found = document.section_at(start)
    page = f"page {found.page}" if found.page else ""
    parts = (" › ".join(found.headings), page, f"characters {start:,}–{end:,}")
    return " · ".join(part for part in parts if part)
