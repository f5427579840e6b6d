"""The top of an answer: its status and confidence, the quotes, and the model's text with its checks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

import streamlit as st

from engine.documents.document import Document
from engine.documents.sentences import unwrapped
from engine.generation.answer import Answer, Judged
from engine.generation.checks import CheckedSentence
from engine.retrieval.evidence import Quote, heads_above
from ui.asking import THOUGHT_ICON
from ui.colours import FAINT, QUOTE_EDGE, REMOVED, source_colour
from ui.nothing_found import no_text_words
from ui.report import Report, element, paragraph
from ui.text import Strong, faint_html, mark_html, show_text

CONTEXT = 120  # characters of its paragraph shown on either side of a quoted sentence
SUPPORT_HELP = (
    "Each sentence of the model is checked against its sources, below: the sentences or passages that it "
    "read. Numbers, names and rare words that occur in no source are underlined. A sentence with such a "
    "number or name is struck through, and so is one that would be as probable without the sources: the "
    "model has made it up."
)
CONFIDENCE_HELP = (
    "How often answers like this one were right on labelled questions: it depends on how far the first "
    "sentence leads over all others, on its similarity with the question, and on how far the model's words "
    "agree with the quotes. The thresholds are under Answer in the sidebar."
)


@dataclass(frozen=True)
class Status:
    """A status of an answer: its label, icon and colour, its meaning, and advice to the reader."""

    label: str
    icon: str
    colour: Literal["green", "orange", "gray"]
    meaning: str = ""
    advice: str = ""


ENDS = {
    "length": "Cut at the longest answer allowed; the limit is under Answer in the sidebar.",
    "stopped": "You stopped it here.",
    "content_filter": "The server's content filter ended it here.",
}
STATUSES = {
    "answered": Status("Answered", ":material/check_circle:", "green"),
    "unsure": Status(
        "Unsure",
        ":material/help:",
        "orange",
        "The closest sentences are below. They may not answer the question: read them first.",
    ),
    "refused": Status(
        "Refused",
        ":material/block:",
        "gray",
        "No sentence of these documents is likely to answer the question.",
        "Ask in other words, add a document, or lower “Refused below” under Answer in the sidebar. The "
        "closest sentences:",
    ),
}


def show_status(report: Report, judged: Judged) -> None:
    """Draw the status of an answer with its confidence, its meaning and the advice."""
    status = STATUSES[judged.status]
    words = f"{status.label} · {judged.confidence:.0%} sure"
    st.badge(words, icon=status.icon, color=status.colour, help=CONFIDENCE_HELP)
    report.parts.append(paragraph(Strong(words)))
    if status.meaning:
        report.caption(f"{status.meaning} {status.advice}".strip())


def show_quotes(
    report: Report, quotes: Sequence[Quote], documents: Mapping[str, Document], n_read: int
) -> None:
    """Draw the quoted sentences, each marked in its surroundings.

    The model reads ``n_read`` sentences, the best last; a quote has the colour of its number among them.
    """
    for excerpt in excerpts(quotes, documents, n_read, CONTEXT):
        report.text(
            f'<blockquote style="margin:0 0 4px;padding:2px 0 2px 12px;border-left:3px solid {QUOTE_EDGE}">'
            f"{excerpt_html(excerpt, CONTEXT)}</blockquote>"
        )
        report.caption(excerpt_source(excerpt))


@dataclass(frozen=True)
class Excerpt:
    """Quotes that stand near one another in a document, the best first, and the number of each."""

    quotes: list[Quote]
    numbers: list[int]
    document: Document

    @property
    def span(self) -> tuple[int, int]:
        """First character of all quotes, and the last + 1."""
        return min(quote.start for quote in self.quotes), max(quote.end for quote in self.quotes)


def excerpts(
    quotes: Sequence[Quote], documents: Mapping[str, Document], n_read: int, characters: int
) -> list[Excerpt]:
    """Group quotes of one paragraph that have at most ``characters`` between them.

    The model reads ``n_read`` sentences, the best last: its number is ``n_read``. Quotes that it does not
    read have numbers below 1.
    """
    found: list[Excerpt] = []
    for place, quote in enumerate(quotes):
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
        excerpt.numbers.append(n_read - place)
    return found


def excerpt_html(excerpt: Excerpt, characters: int) -> str:
    """Return quotes, marked, within their paragraph.

    Of the paragraph, at most ``characters`` stand on either side. Above the row of a table stand the names of
    its columns.
    """
    marks = [
        (
            quote.start,
            quote.end,
            mark_html(escape(" ".join(quote.text.split())), source_colour(max(1, number))),
        )
        for quote, number in zip(excerpt.quotes, excerpt.numbers, strict=True)
    ]
    first, last = excerpt.span
    start = max(0, first - characters)
    around = unwrapped(excerpt.document.text, start, last + characters)
    before = around[: first - start].rpartition("\n")[2]
    after = around[last - start :].partition("\n")[0]
    if len(before) == characters:
        before = "…" + before.partition(" ")[2]
    if len(after) == characters:
        after = after.rpartition(" ")[0] + "…"
    heads = faint_html(" ".join(heads_above(excerpt.document.text, first).split()))
    html, place = (f"{heads}<br>" if heads else "") + faint_html(before), first
    for quote_start, quote_end, mark in sorted(marks):
        html += faint_html(around[place - start : quote_start - start]) + mark
        place = quote_end
    return html + faint_html(after)


def excerpt_source(excerpt: Excerpt) -> str:
    """``"[3] [2] tower.md · Towers › Height · page 3 · characters 12–160"``."""
    numbers = "".join(f"[{number}] " for number in excerpt.numbers if number > 0)
    return f"{numbers}{excerpt.quotes[0].document} · {place_words(excerpt.document, *excerpt.span)}"


def place_words(document: Document, start: int, end: int) -> str:
    """``"Towers › Height · page 3 · characters 12–60"``."""
    found = document.section_at(start)
    page = f"page {found.page}" if found.page else ""
    parts = (" › ".join(found.headings), page, f"characters {start:,}–{end:,}")
    return " · ".join(part for part in parts if part)


def show_model_words(report: Report, answer: Answer) -> None:
    """Draw the model's text with its checks, or why there is none."""
    st.markdown("**In the model's words**", help=SUPPORT_HELP)
    report.parts.append(element("h2", "In the model's words"))
    written, sentences = answer.written, answer.judged.sentences
    if written is not None and written.thought:
        n_tokens = len(written.thought_ids)
        label = f"The model's thought{f' · {n_tokens:,} tokens' if n_tokens else ''}"
        with st.expander(label, icon=THOUGHT_ICON):
            show_text(escape(written.thought))
            st.caption("No part of the answer: it is neither checked nor kept for the next question.")
    if written is None or not written.text:
        report.caption(f"{no_text_words(written)} The quotes above are the answer.")
        return
    report.text(checked_html(written.text, sentences))
    if unsupported := unsupported_words(sentences):
        report.caption(unsupported)
    if ended := ENDS.get(written.finish_reason):
        report.caption(ended)


def unsupported_words(sentences: Sequence[CheckedSentence]) -> str:
    """Say how many sentences of a text are unsupported, and why; nothing where none is."""
    struck = [sentence.reason for sentence in sentences if not sentence.is_supported]
    if struck and len(struck) == len(sentences):
        return f"All of it is unsupported ({struck[0]}): rely on the quotes above."
    reasons = "; ".join(sorted(set(struck)))
    return f"{len(struck)} of {len(sentences)} sentences unsupported: {reasons}." if struck else ""


def checked_html(text: str, sentences: Sequence[CheckedSentence]) -> str:
    """Return a text, escaped, with unknown words underlined and unsupported sentences struck through."""
    html = ""
    for sentence in sentences:
        piece, place = "", sentence.start
        for word in sentence.unknown:
            title = f"this {word.kind} occurs in no source"
            piece += escape(text[place : word.start])
            piece += (
                f'<u style="text-decoration:underline wavy;background:{REMOVED}" title="{title}">'
                f"{escape(text[word.start : word.end])}</u>"
            )
            place = word.end
        piece += escape(text[place : sentence.end])
        if not sentence.is_supported:
            piece = f'<s style="{FAINT}" title="{escape(sentence.reason)}">{piece}</s>'
        html += piece
    return html
