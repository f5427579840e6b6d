"""An answer with its sources, its timing and its prompt."""

from collections.abc import Collection, Iterator, Mapping

import streamlit as st

from engine.documents.document import Chunk, Document, document_languages
from engine.evaluation.questions import Reference, stem
from engine.generation.answer import Answer, Retrieval, Written
from engine.generation.prompt import Source
from engine.generation.reading import AnswerSpan
from engine.generation.server import Server
from engine.retrieval.evidence import CandidateSentence
from engine.retrieval.language_fit import language_note
from engine.wording import counted, shortened
from pages.ask.evidence import show_found, show_model_words
from pages.ask.excerpts import place_words, words_and_quotes
from pages.ask.marked_text import from_place, in_context
from pages.ask.timing import show_timing
from ui.asking import Asked, answering_sentence
from ui.closeness import score_words, show_closeness
from ui.colours import source_colour
from ui.current import open_diagnosis
from ui.documents import documents_called
from ui.figures import show_prompt_parts
from ui.languages import show_language_note
from ui.look_inside import show_look_inside
from ui.nothing_found import retriever_name, show_hit, show_nothing_found
from ui.questions.kept import LABELLED, keep_label
from ui.report import Html, Report, element, facts, paragraph
from ui.setting_values import settings_words
from ui.settings import settings_values
from ui.text import Strong, escape_html, passage_label, show_text
from ui.tokens import AS_DECODER_COUNTS
from ui.uploaded_vectors import search_model

# Characters shown around a passage, and of a document: browsers are slow with more.
PASSAGE_CONTEXT, DOCUMENT_CHARACTERS = 240, 200_000
BEGINNING = "the beginning"
# Files whose notes on what was left out stand above an answer, and the characters of each.
MAX_FILES_NOTED, NOTE_CHARACTERS = 3, 240

SCORE_HELP = (
    "The cosine between the vectors of question and passage: 1 is the same direction. It is not a "
    "percentage, and its scale depends on the model. So the share of pairs of an unrelated question and a "
    "passage of these documents with a smaller cosine is given too and, where passages are ranked by cosine, "
    "the lead over the next passage."
)
WRONG = "Was this wrong? Show the right passage"
WRONG_HELP = "Finds out why it was not answered from that passage, and tries what gives the right answer."
RIGHT_HELP = (
    "Keeps the question with the answer's sentence as the passage that answers it, on the page “Questions”. "
    "From a few dozen on, “Best settings” can tell which settings answer your questions best."
)
LEFT_OUT_HELP = (
    "The retriever decides the order, the cosine decides the relevance: a passage that shares words with "
    "the question can be about something else. For names and codes, where only words matter, lower the "
    "relevance threshold; at 0 every passage found counts."
)


def show_answer(answer: Answer, asked: Asked, server: Server | None = None) -> None:
    """Draw an answer: what was found, a model's words, and sources, timing and prompt below."""
    report = Report(*question_parts(answer, asked))
    show_notes(report, answer)
    languages = document_languages([asked.documents[hit.chunk.document] for hit in answer.retrieved.hits])
    is_read = bool(answer.retrieved.relevant) and not answer.is_english
    note = language_note(languages.values(), search_model(asked.chosen), answer.question, is_read)
    show_language_note(report, note)
    if not answer.retrieved.relevant:
        show_nothing_found(report, answer.retrieved)
        show_next_steps(report, answer, asked)
        keep_settings(report, asked)
        return
    show_found(report, answer, asked.documents, answer.sources, is_language_said=note != "")
    if answer.judged.status != "refused":
        with st.container(border=True):
            show_model_words(report, answer, asked, server)
    show_next_steps(report, answer, asked)
    names = ["Sources", "In the documents", "Timing", *(["Exact prompt"] if answer.written else [])]
    sources, document, timing, *prompt = st.tabs(names)
    with sources:
        show_sources(report, answer, asked.documents)
    with document:
        show_documents(answer, asked.documents)
    with timing:
        show_timing(report, answer)
    if answer.written:
        with prompt[0]:
            show_prompt(answer.written, answer.timed.writing.answer_tokens)
    keep_settings(report, asked)


def show_notes(report: Report, answer: Answer) -> None:
    """Say what reading left out of the files that an answer draws from, a line each."""
    for name, notes in list(answer.notes.items())[:MAX_FILES_NOTED]:
        report.caption(f"{name}: {shortened('; '.join(notes), NOTE_CHARACTERS)}")


def pieces_of(answer: Answer) -> list[tuple[int, Source]]:
    """Return what was read or else found, by its number, each with its passage's place among the hits.

    What was found is numbered best first; of sentences in a prompt the best has the last number.
    """
    if answer.written:
        return [*zip(answer.written.source_places, answer.sources, strict=True)]
    words, quotes = words_and_quotes(answer)
    hits = answer.retrieved.hits
    found: list[tuple[int, AnswerSpan | CandidateSentence | Chunk]] = [(each.place, each) for each in words]
    found += [(quote.place, quote) for quote in quotes]
    found = found or [(place, hits[place].chunk) for place in answer.retrieved.relevant]
    places = list(dict.fromkeys(place for place, _ in found))
    return [
        (
            place,
            Source(
                1 + places.index(place),
                each.document,
                each.start,
                each.end,
                each.text,
                hits[place].score,
                n_tokens=0,
                cut=False,
            ),
        )
        for place, each in found
    ]


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


def show_next_steps(report: Report, answer: Answer, asked: Asked) -> None:
    """Draw the buttons that follow an answer; the last one saves the report, titled by the question."""
    sentence = answering_sentence(answer, asked.documents)
    with st.container(horizontal=True):
        # A label names its document: an answer can be kept if the name is that of one document.
        is_given = answer.judged.status != "refused"
        if sentence and is_given and len(documents_called(stem(sentence.document))) == 1:
            st.button(
                "It is right",
                icon=":material/thumb_up:",
                help=RIGHT_HELP,
                on_click=keep,
                args=(answer.question, sentence),
            )
        if st.button(WRONG, icon=":material/troubleshoot:", help=WRONG_HELP):
            open_diagnosis(asked.typed)
        if answer.retrieved.relevant and st.button("Look inside", icon=":material/account_tree:"):
            st.switch_page("pages/inside/answer/page.py")
        if st.button("Find better settings", icon=":material/science:"):
            st.switch_page("pages/improve/settings/page.py")
        report.button("answer", asked.typed)


def keep(question: str, quote: CandidateSentence) -> None:
    """Keep a question with the sentence that answers it."""
    passage = Reference(quote.text, quote.start, quote.end)
    keep_label(LABELLED, question, stem(quote.document), passage)
    st.toast("Kept as a labelled question on the page “Questions”.", icon=":material/bookmark_added:")


def show_left_out(report: Report, found: Retrieval, read: Collection[int], used: str) -> None:
    """List the passages that were found and not ``used``, as those at some places were."""
    unread = [place for place in found.relevant if place not in read]
    n_passages = counted(len(found.hits), "passage")
    if unread:
        with report.expander(f"Found, and not {used}: {len(unread)} of {n_passages}"):
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
    """List what an answer rests on, the pieces of each number marked in their surroundings."""
    report.parts.append(element("h2", "Sources"))
    found, written, pieces = answer.retrieved, answer.written, pieces_of(answer)
    places = {source.number: place for place, source in pieces}
    for number, place in places.items():
        own = [source for _, source in pieces if source.number == number]
        with st.container(border=True):
            document = documents[own[0].document]
            first, last = min(each.start for each in own), max(each.end for each in own)
            tokens = f" · {counted(own[0].n_tokens, 'token')} {AS_DECODER_COUNTS}" if written else ""
            cut = " · cut to fit the prompt" if own[0].cut else ""
            report.text(
                f"{passage_label(number, source_colour(number))} "
                f"{escape_html(f'{document.name} · {place_words(document, first, last)}')}{tokens}{cut}"
            )
            report.caption(
                f"from the passage of rank {place + 1} by {retriever_name(found)} · "
                f"{score_words(found, place)}",
                SCORE_HELP,
            )
            report.text(in_context(document, own, PASSAGE_CONTEXT))
            show_look_inside(found.hits[place].chunk, f"source-{number}")
    if written and written.prompt.left_out:
        report.caption(f"{len(written.prompt.left_out)} more did not fit the prompt budget.")
    show_left_out(report, found, places.values(), "read by the model" if written else "quoted")
    show_closeness(found)


def show_documents(answer: Answer, documents: Mapping[str, Document]) -> None:
    """Draw a whole document with what the answer rests on marked."""
    sources = [source for _, source in pieces_of(answer)]
    names = [name for name in documents if any(source.document == name for source in sources)]
    name = st.selectbox("Document", names, key="shown_document") or names[0]
    own = [source for source in sources if source.document == name]
    starts: dict[str, int] = {}
    for source in own:
        starts.setdefault(f"[{source.number}]", source.start - PASSAGE_CONTEXT)
    begin = st.segmented_control(
        "Begin at", [*starts, BEGINNING], default=next(iter(starts)), key=f"begin-{answer.question}-{name}"
    )
    st.caption(f"{counted(len(own), 'place')} marked, of {len(documents[name].text):,} characters.")
    show_text(from_place(documents[name], own, starts.get(begin or "", 0), DOCUMENT_CHARACTERS), height=480)


def show_prompt(written: Written, n_tokens: int) -> None:
    """Draw the exact prompt of an answer of ``n_tokens``, and the tokens of each part."""
    prompt = written.prompt
    show_prompt_parts(prompt)
    if written.server:
        st.caption(
            f"About {len(prompt.ids)} tokens in, about {n_tokens} out, counted by the tokenizer of "
            "the built-in model: the server's own prompt is not visible."
        )
        for message in prompt.messages:
            st.caption(message["role"])
            st.code(message["content"], language=None, wrap_lines=True)
        return
    st.caption(
        f"{len(prompt.ids)} tokens in, {n_tokens} out, {AS_DECODER_COUNTS}. "
        "The decoder sees nothing of the documents but this."
    )
    st.code(prompt.text, language=None, wrap_lines=True)
