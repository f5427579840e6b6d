"""What an answer shows first: how sure it is, the quotes, and the model's words with their checks."""

from collections.abc import Mapping, Sequence
from html import escape

import streamlit as st

from engine.documents.document import Document
from engine.generation.answering import Answer
from engine.generation.checks import CheckedSentence
from engine.retrieval.evidence import Quote
from ui.colours import FAINT, QUOTE_EDGE, REMOVED, source_colour
from ui.nothing_found import NO_TEXT
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


def show_status(answer: Answer) -> None:
    """Say whether it is an answer, only the closest sentences, or a refusal, and how sure that is."""
    sure = f"{answer.confidence:.0%} sure"
    if answer.status == "answered":
        st.badge(f"Answered · {sure}", icon=":material/check_circle:", color="green", help=CONFIDENCE_HELP)
    elif answer.status == "unsure":
        st.badge(f"Unsure · {sure}", icon=":material/help:", color="orange", help=CONFIDENCE_HELP)
        st.caption("The closest sentences are below. They may not answer the question: read them first.")
    else:
        st.badge(f"Refused · {sure}", icon=":material/block:", color="gray", help=CONFIDENCE_HELP)
        st.caption(
            "No sentence of these documents is likely to answer the question. Ask in other words, add a "
            "document, or lower “Refused below” under Answer in the sidebar. The closest sentences:"
        )


def show_quotes(quotes: Sequence[Quote], documents: Mapping[str, Document], n_read: int) -> None:
    """Draw the quoted sentences, each marked in its surroundings.

    The model reads ``n_read`` sentences, the best last; a quote has the colour of its number among them.
    """
    for place, quote in enumerate(quotes):
        number = max(1, n_read - place)
        document = documents.get(quote.document)
        show_text(
            f'<blockquote style="margin:0 0 4px;padding:2px 0 2px 12px;border-left:3px solid {QUOTE_EDGE}">'
            f"{quote_html(quote, number, document)}</blockquote>"
        )
        label = f"\\[{number}\\] " if place < n_read else ""
        st.caption(f"{label}{escape_markdown(quote.document)} · characters {quote.start}–{quote.end}")


def quote_html(quote: Quote, number: int, document: Document | None) -> str:
    """Return a quoted sentence, marked, between the words around it if the document is known."""
    style = f"background:{source_colour(number)};color:inherit;border-radius:3px;padding:1px 0"
    marked = f'<mark style="{style}">{escape(quote.text)}</mark>'
    if document is None or document.text[quote.start : quote.end] != quote.text:
        return marked
    before = document.text[max(0, quote.start - CONTEXT) : quote.start].rpartition("\n")[2]
    after = document.text[quote.end : quote.end + CONTEXT].partition("\n")[0]
    if len(before) == CONTEXT:
        before = "…" + before.partition(" ")[2]
    if len(after) == CONTEXT:
        after = after.rpartition(" ")[0] + "…"
    faint = f'<span style="{FAINT}">{{}}</span>'
    return faint.format(escape(before)) + marked + faint.format(escape(after))


def show_model_words(answer: Answer) -> None:
    """Draw the model's text with its checks, or why there is none."""
    st.markdown("**In the model's words**", help=HELD_HELP)
    if not answer.text:
        st.caption(f"{NO_TEXT[answer.finish_reason or 'stop']} The quotes above are the answer.")
        return
    show_text(checked_html(answer.text, answer.sentences))
    struck = [sentence.reason for sentence in answer.sentences if not sentence.holds]
    if len(struck) == len(answer.sentences):
        st.caption(f"Nothing of it holds ({struck[0]}): rely on the quotes above.")
    elif struck:
        reasons = "; ".join(sorted(set(struck)))
        st.caption(f"{len(struck)} of {len(answer.sentences)} sentences do not hold: {reasons}.")
    if answer.finish_reason == "length":
        st.caption("Cut at the longest answer allowed; the limit is under Answer in the sidebar.")
    if answer.finish_reason == "stopped":
        st.caption("You stopped it here.")


def checked_html(text: str, sentences: Sequence[CheckedSentence]) -> str:
    """Return a text, escaped, with unknown words underlined and sentences that do not hold struck through."""
    html = ""
    for sentence in sentences:
        piece, place = "", sentence.start
        for word in sentence.unknown:
            title = f"this {word.kind} occurs in no passage"
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
