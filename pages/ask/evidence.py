"""What an answer shows first: how sure it is, the quotes, and the model's words with their checks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

import streamlit as st

from engine.documents.document import Document
from engine.documents.sentences import unwrapped
from engine.generation.answering import Answer
from engine.generation.checks import CheckedSentence, UnknownWord
from engine.retrieval.evidence import Quote
from ui.asking import THOUGHT_ICON
from ui.colours import FAINT, QUOTE_EDGE, REMOVED, source_colour
from ui.nothing_found import no_text_words
from ui.text import escape_markdown, show_text

CONTEXT = 120  # characters of its paragraph shown on either side of a quoted sentence
HELD_HELP = (
    "Each sentence of the model is checked. Numbers, names and rare words that occur in no passage are "
    "underlined. A sentence with such a number or name is struck through, and so is one that would be as "
    "probable without the passages: the model has made it up."
)
CONFIDENCE_HELP = (
    "How often answers like this one were right on labelled questions: it depends on how far the first "
    "sentence leads over all others, on its similarity with the question, and on how far the model's words "
    "agree with the quotes. The thresholds are under Answer in the sidebar."
)


@dataclass(frozen=True)
class Status:
    """A status of an answer: its label and look, what it means, and what to do about it."""

    label: str
    icon: str
    colour: Literal["green", "orange", "gray"]
    meaning: str = ""
    advice: str = ""


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


def status_words(answer: Answer) -> str:
    """``"Answered · 84% sure"``."""
    return f"{STATUSES[answer.status].label} · {answer.confidence:.0%} sure"


def show_status(answer: Answer) -> None:
    """Say whether it is an answer, only the closest sentences, or a refusal, and how sure that is."""
    status = STATUSES[answer.status]
    st.badge(status_words(answer), icon=status.icon, color=status.colour, help=CONFIDENCE_HELP)
    if status.meaning:
        st.caption(f"{status.meaning} {status.advice}".strip())


def show_quotes(quotes: Sequence[Quote], documents: Mapping[str, Document], n_read: int) -> None:
    """Draw the quoted sentences, each marked in its surroundings.

    The model reads ``n_read`` sentences, the best last; a quote has the colour of its number among them.
    """
    for place, quote in enumerate(quotes):
        number = quote_number(place, n_read)
        document = documents.get(quote.document)
        show_text(
            f'<blockquote style="margin:0 0 4px;padding:2px 0 2px 12px;border-left:3px solid {QUOTE_EDGE}">'
            f"{quote_html(quote, number, document)}</blockquote>"
        )
        label = f"\\[{number}\\] " if place < n_read else ""
        st.caption(f"{label}{escape_markdown(quote.document)} · characters {quote.start}–{quote.end}")


def quote_number(place: int, n_read: int) -> int:
    """Return the number of a quote among the sentences that the model reads, the best of which is last."""
    return max(1, n_read - place)


def quote_html(quote: Quote, number: int, document: Document | None, characters: int = CONTEXT) -> str:
    """Return a quoted sentence, marked, within its paragraph if the document is known.

    Of the paragraph, at most ``characters`` stand on either side.
    """
    style = f"background:{source_colour(number)};color:inherit;border-radius:3px;padding:1px 0"
    marked = f'<mark style="{style}">{escape(" ".join(quote.text.split()))}</mark>'
    if document is None or document.text[quote.start : quote.end] != quote.text:
        return marked
    start = max(0, quote.start - characters)
    around = unwrapped(document.text[start : quote.end + characters])
    before = around[: quote.start - start].rpartition("\n")[2]
    after = around[quote.end - start :].partition("\n")[0]
    if len(before) == characters:
        before = "…" + before.partition(" ")[2]
    if len(after) == characters:
        after = after.rpartition(" ")[0] + "…"
    faint = f'<span style="{FAINT}">{{}}</span>'
    return faint.format(escape(before)) + marked + faint.format(escape(after))


def show_model_words(answer: Answer) -> None:
    """Draw the model's text with its checks, or why there is none."""
    st.markdown("**In the model's words**", help=HELD_HELP)
    show_thought(answer)
    if not answer.text:
        st.caption(f"{no_text_words(answer)} The quotes above are the answer.")
        return
    show_text(checked_html(answer.text, answer.sentences))
    if held := held_words(answer.sentences):
        st.caption(held)
    if answer.finish_reason == "length":
        st.caption("Cut at the longest answer allowed; the limit is under Answer in the sidebar.")
    if answer.finish_reason == "stopped":
        st.caption("You stopped it here.")


def show_thought(answer: Answer) -> None:
    """Draw the thought before a text, folded; nothing where there is none."""
    if not answer.thought:
        return
    n_tokens = len(answer.thought_ids)
    label = f"The model's thought{f' · {n_tokens:,} tokens' if n_tokens else ''}"
    with st.expander(label, icon=THOUGHT_ICON):
        show_text(escape(answer.thought))
        st.caption("No part of the answer: it is neither checked nor kept for the next question.")


def held_words(sentences: Sequence[CheckedSentence]) -> str:
    """Say how many sentences of a text do not hold, and why; nothing where all do."""
    struck = [sentence.reason for sentence in sentences if not sentence.holds]
    if struck and len(struck) == len(sentences):
        return f"Nothing of it holds ({struck[0]}): rely on the quotes above."
    reasons = "; ".join(sorted(set(struck)))
    return f"{len(struck)} of {len(sentences)} sentences do not hold: {reasons}." if struck else ""


def unknown_words(word: UnknownWord) -> str:
    """Say why a word of a text is underlined."""
    return f"this {word.kind} occurs in no passage"


def checked_html(text: str, sentences: Sequence[CheckedSentence]) -> str:
    """Return a text, escaped, with unknown words underlined and sentences that do not hold struck through."""
    html = ""
    for sentence in sentences:
        piece, place = "", sentence.start
        for word in sentence.unknown:
            title = unknown_words(word)
            piece += escape(text[place : word.start])
            piece += (
                f'<u style="text-decoration:underline wavy;background:{REMOVED}" title="{title}">'
                f"{escape(text[word.start : word.end])}</u>"
            )
            place = word.end
        piece += escape(text[place : sentence.end])
        if not sentence.holds:
            piece = f'<s style="{FAINT}" title="{escape(sentence.reason)}">{piece}</s>'
        html += piece
    return html
