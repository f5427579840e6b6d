"""The report of an answer: one HTML page of its quotes, text, passages, times and settings."""

from collections.abc import Iterator, Mapping
from html import escape
from urllib.parse import urlsplit

from engine.documents.document import Document
from engine.generation.answering import NOTHING_FOUND, Answer
from engine.retrieval.retrievers import RETRIEVERS
from engine.wording import counted
from pages.ask.evidence import (
    STATUSES,
    checked_html,
    excerpt_html,
    excerpt_source,
    excerpts,
    held_words,
    place_words,
    status_words,
    unknown_words,
)
from pages.ask.marked_text import marked
from pages.ask.timing import stages_of
from ui.asking import Asked
from ui.closeness import score_words
from ui.nothing_found import nearest_words, no_text_words
from ui.report import (
    Html,
    Tone,
    facts,
    heading,
    note,
    page_html,
    paragraph,
    quotation,
    section,
    sentence_html,
    table,
    text_block,
)
from ui.settings import settings_values
from ui.settings_card import settings_words
from ui.text import Strong, readable_seconds
from ui.tokens import AS_ENCODER_COUNTS

PARAGRAPH = 2_000  # characters of a paragraph on either side of a quoted sentence
TONES: dict[str, Tone] = {"answered": "good", "unsure": "unsure", "refused": "plain"}
ENDS = {
    "length": "Cut at the longest answer allowed.",
    "stopped": "Stopped before its end.",
    "content_filter": "Ended by a content filter of the server.",
}
LEFT_OUT, NOT_READ = "left out: not close enough", "found, and not read by the model"


def report(answer: Answer, asked: Asked, documents: Mapping[str, Document]) -> str:
    """Return an answer as one HTML page.

    Parameters
    ----------
    answer, asked
        The answer, and the question with the settings that it was answered with.
    documents
        The documents by their names, those only whose text is still the one that was searched.
    """
    about = {
        "Asked": asked.time.strftime("%Y-%m-%d %H:%M %Z"),
        "Encoder": asked.encoder,
        "Written by": writer_name(answer) or "no model",
        "Documents searched": ", ".join(sorted(asked.documents)),
    }
    return page_html(
        "Answer",
        asked.typed,
        *question_parts(answer, asked),
        *status_parts(answer),
        facts(about),
        *quote_sections(answer, documents),
        *text_sections(answer),
        *passage_sections(answer, documents),
        section("Time", *time_parts(answer)),
        section("Settings", facts(settings_words(settings_values(asked.settings)))),
    )


def writer_name(answer: Answer) -> str:
    """Return the model that wrote the text, with its server if it has one; empty where no model ran."""
    name = answer.model or ""
    return f"{name} at {urlsplit(answer.server).netloc}" if answer.server else name


def question_parts(answer: Answer, asked: Asked) -> Iterator[Html]:
    """The question as it was read and searched, where it was typed otherwise, and the earlier turns."""
    if asked.question != asked.typed:
        yield paragraph("Read as a follow-up: ", Strong(asked.question))
    if asked.turns:
        yield paragraph("Earlier in this conversation:", faint=True)
        for turn in asked.turns:
            yield quotation(sentence_html(Strong(turn.question), f"\n{turn.answer or 'Refused.'}"))
    if answer.searched_for is not None:
        yield paragraph("Searched for, with a passage that the built-in model made up:", faint=True)
        yield text_block(Html(escape(answer.searched_for)))


def status_parts(answer: Answer) -> Iterator[Html]:
    """The status of the answer and what it means."""
    if not answer.relevant:
        yield note("plain", Strong(STATUSES["refused"].label), f" · {NOTHING_FOUND}")
        retriever = RETRIEVERS[answer.retriever].label
        yield paragraph(
            nearest_words(answer, retriever)
            if answer.hits
            else f"The retriever {retriever} finds no passage: none shares a word with the question."
        )
        return
    meaning = STATUSES[answer.status].meaning
    yield note(TONES[answer.status], Strong(status_words(answer)), f" {meaning}" if meaning else "")


def quote_sections(answer: Answer, documents: Mapping[str, Document]) -> Iterator[Html]:
    """The quotes, each marked in its paragraph."""
    if not answer.quotes:
        return
    found = excerpts(answer.quotes, documents, len(answer.sources), PARAGRAPH)
    quotes = [quotation(Html(excerpt_html(each, PARAGRAPH)), excerpt_source(each)) for each in found]
    yield section("Quotes", *quotes)


def text_sections(answer: Answer) -> Iterator[Html]:
    """The model's text with its checks, each explained."""
    if not answer.relevant:
        return
    if answer.status == "refused":
        yield section("The model's words", paragraph("Not shown, as the answer is refused."))
        return
    if not answer.text:
        yield section("The model's words", paragraph(no_text_words(answer)))
        return
    checks = check_rows(answer)
    parts = [text_block(Html(checked_html(answer.text, answer.sentences)))]
    ended = ENDS.get(answer.finish_reason or "", "")
    parts += [paragraph(each, faint=True) for each in (held_words(answer.sentences), ended) if each]
    parts.append(table(checks) if checks else paragraph("All of its sentences pass the checks.", faint=True))
    yield section("In the model's words", *parts)


def check_rows(answer: Answer) -> list[dict[str, str]]:
    """The marked parts of the text, each with the reason."""
    rows = []
    for sentence in answer.sentences:
        if not sentence.holds:
            text = answer.text[sentence.start : sentence.end].strip()
            rows.append({"Marked": "struck through", "Text": text, "Why": sentence.reason})
        for word in sentence.unknown:
            text = answer.text[word.start : word.end]
            rows.append({"Marked": "underlined", "Text": text, "Why": unknown_words(word)})
    return rows


def passage_sections(answer: Answer, documents: Mapping[str, Document]) -> Iterator[Html]:
    """All passages found, best first, with what the model read of each marked in it."""
    if not answer.hits:
        return
    relevant, parts = set(answer.relevant), []
    for place, hit in enumerate(answer.hits):
        chunk, document = hit.chunk, documents.get(hit.chunk.document)
        sources = [
            source for source, own in zip(answer.sources, answer.source_places, strict=True) if own == place
        ]
        numbers = ", ".join(f"[{source.number}]" for source in sources)
        unread = NOT_READ if place in relevant else LEFT_OUT
        parts += [
            heading(f"{place + 1} · {chunk.document}"),
            paragraph(
                f"{score_words(answer, place)} · {f'read by the model: {numbers}' if numbers else unread}",
                faint=True,
            ),
            text_block(
                Html(
                    marked(document, sources, chunk.start, chunk.end)
                    if document is not None and document.text[chunk.start : chunk.end] == chunk.text
                    else escape(chunk.text)
                )
            ),
            paragraph(
                f"{place_words(document, chunk.start, chunk.end)} · "
                f"{counted(chunk.n_tokens, 'token')} {AS_ENCODER_COUNTS}",
                faint=True,
            ),
        ]
    yield section(f"Passages found: {len(answer.hits)}", *parts)


def time_parts(answer: Answer) -> Iterator[Html]:
    """The time of each stage that ran, and the tokens read and written."""
    timings = answer.timings
    stages = {name: seconds for name, seconds in stages_of(timings).items() if seconds}
    rows = [{"Stage": name, "Time": readable_seconds(seconds)} for name, seconds in stages.items()]
    yield table([*rows, {"Stage": "Together", "Time": readable_seconds(sum(stages.values()))}])
    if answer.prompt:
        about = "about " if answer.server else ""
        yield paragraph(
            f"{about}{timings.prompt_tokens:,} tokens read, {timings.reused_tokens:,} of them kept from the "
            f"prompt before; {about}{timings.answer_tokens:,} tokens written.",
            faint=True,
        )
