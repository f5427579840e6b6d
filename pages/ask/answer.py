"""An answer with its sources, its timing and its prompt."""

from collections.abc import Collection, Iterator, Mapping
from urllib.parse import urlsplit

import streamlit as st

from engine.documents.document import Document
from engine.evaluation.questions import Reference, stem
from engine.generation.answer import Answer, Retrieval, Written
from engine.retrieval.evidence import Quote
from engine.wording import counted
from pages.ask.evidence import place_words, show_model_words, show_quotes, show_status
from pages.ask.marked_text import from_place, in_context
from pages.ask.timing import show_timing
from ui.asking import Asked
from ui.closeness import score_words, show_closeness
from ui.colours import source_colour
from ui.current import open_diagnosis
from ui.documents import documents_called
from ui.figures import show_prompt_parts
from ui.look_inside import show_look_inside
from ui.nothing_found import retriever_name, show_hit, show_nothing_found
from ui.questions.kept import LABELLED, keep_label
from ui.report import Html, Report, element, facts, paragraph
from ui.setting_values import settings_words
from ui.settings import settings_values
from ui.text import Strong, escape_html, passage_label, show_text
from ui.tokens import AS_DECODER_COUNTS

# Characters shown around a passage, and of a document: browsers are slow with more.
PASSAGE_CONTEXT, DOCUMENT_CHARACTERS = 240, 200_000
BEGINNING = "the beginning"

SCORE_HELP = (
    "The cosine between the vectors of question and passage: 1 is the same direction. It is not a "
    "percentage, and its scale depends on the model. So the share of pairs of an unrelated question and a "
    "passage of these documents with a smaller cosine is given too and, where passages are ranked by cosine, "
    "the lead over the next passage."
)
RIGHT_HELP = (
    "Keeps the question with the first quote as the passage that answers it, on the page “Questions”. From a "
    "few dozen on, “Best settings” can tell which settings answer your questions best."
)
LEFT_OUT_HELP = (
    "The retriever decides the order, the cosine decides the relevance: a passage that shares words with "
    "the question can be about something else. For names and codes, where only words matter, lower the "
    "relevance threshold; at 0 every passage found counts."
)


def show_answer(answer: Answer, asked: Asked) -> None:
    """Draw an answer: how sure it is, its quotes, the model's words, and sources, timing and prompt below."""
    report = Report(*question_parts(answer, asked))
    if not answer.retrieved.relevant:
        show_nothing_found(report, answer.retrieved)
        show_next_steps(report, answer, asked.typed)
        keep_settings(report, asked)
        return
    show_status(report, answer.judged)
    show_quotes(report, answer.quotes, asked.documents, len(answer.sources))
    if answer.judged.status != "refused":
        show_model_words(report, answer)
    n_passages = counted(len(answer.retrieved.hits), "passage")
    report.caption(f"Quotes: the documents' own words, from {n_passages}. {written_by(answer)}")
    show_next_steps(report, answer, asked.typed)
    sources, document, timing, prompt = st.tabs(["Sources", "In the documents", "Timing", "Exact prompt"])
    with sources:
        show_sources(report, answer, asked.documents)
    with document:
        show_documents(answer, asked.documents)
    with timing:
        show_timing(report, answer)
    with prompt:
        if answer.written is not None:
            show_prompt(answer.written, answer.timed.writing.answer_tokens)
    keep_settings(report, asked)


def question_parts(answer: Answer, asked: Asked) -> Iterator[Html]:
    """The question as it was searched, where it was typed otherwise, and the earlier turns."""
    for turn in asked.turns:
        yield paragraph(
            "Earlier in this conversation: ", Strong(turn.question), f" {turn.answer or 'Refused.'}"
        )
    if asked.question != asked.typed:
        yield paragraph("Read as a follow-up: ", Strong(asked.question))


def keep_settings(report: Report, asked: Asked) -> None:
    """Keep the settings and the documents of a question, which the page shows in its sidebar."""
    about = {
        "Asked": asked.time.strftime("%Y-%m-%d %H:%M %Z"),
        "Encoder": asked.encoder,
        "Documents searched": ", ".join(sorted(asked.documents)),
    }
    settings = settings_words(settings_values(asked.settings))
    report.parts += [element("h2", "Settings"), facts(about | settings)]


def written_by(answer: Answer) -> str:
    """Say which model wrote the text that is shown, nothing where none is."""
    written = answer.written
    if answer.judged.status == "refused" or written is None or not written.text:
        return ""
    name, server = written.model, written.server
    writer = f"{name} at {urlsplit(server).netloc}" if server else f"a small model ({name})"
    return f"Written by {writer}, which makes mistakes: check it against them."


def show_next_steps(report: Report, answer: Answer, question: str) -> None:
    """Draw the buttons that follow an answer; the last one saves the report, titled by the question."""
    with st.container(horizontal=True):
        # A label names its document: an answer can be kept if the name is that of one document.
        names = [stem(quote.document) for quote in answer.quotes[:1]]
        is_given = answer.judged.status != "refused"
        if is_given and any(len(documents_called(name)) == 1 for name in names):
            st.button(
                "It is right",
                icon=":material/thumb_up:",
                help=RIGHT_HELP,
                on_click=keep,
                args=(answer.question, answer.quotes[0]),
            )
        if st.button("Why was it not found?", icon=":material/troubleshoot:"):
            hits = answer.retrieved.hits
            nearest = hits[0].chunk.document if hits else None
            open_diagnosis(answer.question, answer.quotes[0].document if answer.quotes else nearest)
        if answer.text and st.button("Look inside", icon=":material/account_tree:"):
            st.switch_page("pages/inside/answer/page.py")
        if st.button("Find better settings", icon=":material/science:"):
            st.switch_page("pages/improve/settings/page.py")
        report.button("answer", question)


def keep(question: str, quote: Quote) -> None:
    """Keep a question with the sentence that answers it."""
    passage = Reference(quote.text, quote.start, quote.end)
    keep_label(LABELLED, question, stem(quote.document), passage)
    st.toast("Kept as a labelled question on the page “Questions”.", icon=":material/bookmark_added:")


def show_left_out(report: Report, found: Retrieval, read: Collection[int]) -> None:
    """List the passages that were found and not read by the model, which read those at some places."""
    unread = [place for place in found.relevant if place not in read]
    n_passages = counted(len(found.hits), "passage")
    if unread:
        with report.expander(f"Found, and not read by the model: {len(unread)} of {n_passages}"):
            report.caption("None of their sentences is among the best.")
            for place in unread:
                show_hit(report, found, place)
    too_far = [place for place in range(len(found.hits)) if place not in {*found.relevant, *read}]
    if too_far:
        with report.expander(f"Left out: {len(too_far)} of {n_passages} found"):
            report.caption(
                f"Not close enough: more than {100 - found.min_relevance:.0f} of 100 unrelated questions "
                "find a passage as close.",
                LEFT_OUT_HELP,
            )
            for place in too_far:
                show_hit(report, found, place)


def show_sources(report: Report, answer: Answer, documents: Mapping[str, Document]) -> None:
    """List what the model read, each piece marked in its surroundings."""
    report.parts.append(element("h2", "Sources"))
    found, written = answer.retrieved, answer.written
    places = written.source_places if written else ()
    for place, source in reversed([*zip(places, answer.sources, strict=True)]):
        with st.container(border=True):
            document = documents[source.document]
            where = place_words(document, source.start, source.end)
            cut = " · cut to fit the prompt" if source.cut else ""
            report.text(
                f"{passage_label(source.number, source_colour(source.number))} "
                f"{escape_html(f'{source.document} · {where}')} · "
                f"{counted(source.n_tokens, 'token')} {AS_DECODER_COUNTS}{cut}"
            )
            report.caption(
                f"from the passage of rank {place + 1} by {retriever_name(found)} · "
                f"{score_words(found, place)}",
                SCORE_HELP,
            )
            report.text(in_context(document, [source], PASSAGE_CONTEXT))
            show_look_inside(found.hits[place].chunk, f"source-{source.number}")
    if written and written.prompt.left_out:
        report.caption(f"{len(written.prompt.left_out)} more did not fit the prompt budget.")
    show_left_out(report, found, places)
    show_closeness(found)


def show_documents(answer: Answer, documents: Mapping[str, Document]) -> None:
    """Draw a whole document with its sources marked."""
    names = [name for name in documents if any(source.document == name for source in answer.sources)]
    name = st.selectbox("Document", names, key="shown_document") or names[0]
    own = [source for source in answer.sources if source.document == name]
    starts = {f"[{source.number}]": source.start - PASSAGE_CONTEXT for source in reversed(own)}
    begin = st.segmented_control(
        "Begin at", [*starts, BEGINNING], default=next(iter(starts)), key=f"begin-{answer.question}-{name}"
    )
    st.caption(f"{counted(len(own), 'passage')} marked, of {len(documents[name].text):,} characters.")
    show_text(from_place(documents[name], own, starts.get(begin or "", 0), DOCUMENT_CHARACTERS), height=480)


def show_prompt(written: Written, n_tokens: int) -> None:
    """Draw the exact prompt of an answer of ``n_tokens``, and the tokens of each part."""
    prompt = written.prompt
    show_prompt_parts(prompt)
    if written.server:
        st.caption(
            f"About {len(prompt.ids)} tokens in, about {n_tokens} tokens out, counted by the tokenizer of "
            "the built-in model: the server's own prompt is not visible."
        )
        for message in prompt.messages:
            st.caption(message["role"])
            st.code(message["content"], language=None, wrap_lines=True)
        return
    st.caption(
        f"{len(prompt.ids)} tokens in, {n_tokens} tokens out, {AS_DECODER_COUNTS}. "
        "The decoder sees nothing of the documents but this."
    )
    st.code(prompt.text, language=None, wrap_lines=True)
