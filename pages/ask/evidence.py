"""The top of an answer: how sure it is, the words found, the quotes, and a model's text with its checks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal
from urllib.parse import urlsplit

import streamlit as st

from engine.documents.document import Document
from engine.generation.answer import Answer
from engine.generation.checks import CheckedSentence
from engine.generation.prompt import Source
from engine.generation.reading import AnswerSpan
from engine.generation.server import Server
from engine.wording import model_name
from pages.ask.excerpts import Excerpt, excerpt_html, excerpt_source, excerpts, words_and_quotes, words_in
from ui.asking import THOUGHT_ICON, Asked, sentence_of, text_button
from ui.colours import FAINT, QUOTE_EDGE, REMOVED
from ui.nothing_found import no_text_words
from ui.report import Report, element, paragraph
from ui.text import Strong, show_text

SUPPORT_HELP = (
    "Each sentence of the model is checked against its sources, below: the sentences or passages that it "
    "read. Numbers, names and rare words that occur in no source are underlined. A sentence with such a "
    "number or name is struck through, and so is one that would be as probable without the sources: the "
    "model has made it up."
)
CONFIDENCE_HELP = (
    "How often answers like this one were right on labelled questions. It depends on how far the best "
    "sentence leads over all others and on its similarity with the question; for words also on how far the "
    "reader scores them above no answer and above the next reading, for sentences without words on how far a "
    "model's text agrees with them. The thresholds are under Answer in the sidebar."
)
NO_SHORT_ANSWER = "A few words cannot answer a question such as this one. The sentences that answer it best:"
NOT_ENGLISH = "The reader was trained on English: quotes only."
LONG_ANSWER = 60  # characters, from which on its words are drawn less large


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
    "unfinished": "The server ended it here without saying that it is complete.",
}
STATUSES = {
    "answered": Status("Answered", ":material/check_circle:", "green"),
    "unsure": Status(
        "Unsure",
        ":material/help:",
        "orange",
        "The closest of what was found is below. It may not answer the question: read it first.",
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


def show_found(
    report: Report,
    answer: Answer,
    documents: Mapping[str, Document],
    sources: Sequence[Source] = (),
    is_language_said: bool = False,
) -> None:
    """Draw how sure an answer is, the words found in their sentence, the second reading, and the quotes."""
    status, (words, quotes) = answer.judged.status, words_and_quotes(answer)
    if not answer.is_english and not is_language_said:
        report.caption(NOT_ENGLISH)
    about = STATUSES[status]
    sure = f"{about.label} · {answer.judged.confidence:.0%} sure"
    st.badge(sure, icon=about.icon, color=about.colour, help=CONFIDENCE_HELP)
    report.parts.append(paragraph(Strong(sure)))
    if about.meaning:
        report.caption(f"{about.meaning} {about.advice}".strip())
    if status != "refused" and answer.spans and not answer.best_span:
        report.caption(NO_SHORT_ANSWER)
    if not words:
        show_excerpts(report, excerpts(quotes, documents, sources))
        return
    is_sure = status == "answered"
    size = "2rem" if is_sure and len(words[0].text) <= LONG_ANSWER else "1.4rem"
    report.text(words_html(words[0], f"font-size:{size};font-weight:{700 if is_sure else 500}"))
    sentences = [sentence_of(each, documents[each.document].text) for each in words]
    first, *rest = excerpts([sentences[0], *quotes], documents, sources)
    show_excerpts(report, [first], words)
    for other in words[1:]:
        second = words_html(other, "font-size:1.15rem;font-weight:500")
        report.text(f'<span style="{FAINT}">or:</span> {second}')
        if not words_in(sentences[0], [other]):
            show_excerpts(report, excerpts(sentences[1:], documents, sources), [other])
    if rest:
        report.caption("Quoted as well:")
        show_excerpts(report, rest, words)


def words_html(words: AnswerSpan, style: str) -> str:
    """Return the words that answer on a line, as HTML in a style."""
    return f'<strong style="line-height:1.25;{style}">{escape(" ".join(words.text.split()))}</strong>'


def show_excerpts(report: Report, found: Sequence[Excerpt], words: Sequence[AnswerSpan] = ()) -> None:
    """Draw quoted sentences within their surroundings, each with its place; mark the words that answer."""
    for excerpt in found:
        report.text(
            '<blockquote dir="auto" style="margin:0 0 4px;padding-block:2px;padding-inline:12px 0;'
            f'border-inline-start:3px solid {QUOTE_EDGE}">'
            f"{excerpt_html(excerpt, words)}</blockquote>"
        )
        report.caption(excerpt_source(excerpt, words))


def show_model_words(report: Report, answer: Answer, asked: Asked, server: Server | None) -> None:
    """Draw the text of a language model with its checks, or the button that has it written."""
    st.markdown("**In a language model's words**", help=SUPPORT_HELP)
    written, sentences = answer.written, answer.judged.sentences
    if written is None:
        text_button(asked, server)
        return
    report.parts.append(element("h2", "In a language model's words"))
    if written.thought:
        n_tokens = len(written.thought_ids)
        label = f"The model's thought{f' · {n_tokens:,} tokens' if n_tokens else ''}"
        with st.expander(label, icon=THOUGHT_ICON):
            show_text(escape(written.thought))
            st.caption("No part of the answer: it is neither checked nor kept for the next question.")
    if not written.text:
        report.caption(f"{no_text_words(written)} What was found above is the answer.")
        return
    report.text(checked_html(written.text, sentences))
    if unsupported := unsupported_words(sentences):
        report.caption(unsupported)
    if ended := ENDS.get(written.finish_reason):
        report.caption(ended)
    name, url = written.model, written.server
    writer = f"{name} at {urlsplit(url).netloc}" if url else f"a small model ({model_name(name)})"
    report.caption(f"Written by {writer}, which makes mistakes: check it against the sentences above.")


def unsupported_words(sentences: Sequence[CheckedSentence]) -> str:
    """Say how many sentences of a text are unsupported, and why; nothing where none is."""
    struck = [sentence.reason for sentence in sentences if not sentence.is_supported]
    if struck and len(struck) == len(sentences):
        return f"All of it is unsupported ({struck[0]}): rely on what was found above."
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
