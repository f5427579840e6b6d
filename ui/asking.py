"""A question asked in this session, answered in a background thread; all pages share it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from html import escape
from threading import Lock
from time import monotonic
from typing import Any, TypeVar
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine import Decoder
from engine.documents.document import Document
from engine.generation.answer import Answer, Written
from engine.generation.answering import ask
from engine.generation.conversation import Turn, follow_up
from engine.generation.prefix_cache import PrefixCache
from engine.generation.reading import AnswerSpan
from engine.generation.server import Server
from engine.generation.settings import DEFAULT_SEARCH
from engine.generation.writer import Writer
from engine.retrieval.embedding_model import Model
from engine.retrieval.evidence import LONGEST_SENTENCE, CandidateSentence, short_sentences
from engine.retrieval.index import Index
from engine.retrieval.relevance import NullScores
from engine.wording import model_name, readable_time
from ui.current import clear_question, set_passage, set_question
from ui.jobs import Job, follow, foreseen
from ui.models import decoder_name, load_decoder, load_reader, writing_seconds
from ui.server_settings import limits
from ui.settings import Settings
from ui.text import escape_markdown, text_html
from ui.widgets import MOST_QUESTION

T = TypeVar("T")
WRITING = "writing"  # the kind of work whose seconds are foreseen

THINKING, THOUGHT_ICON = "The model is thinking", ":material/psychology:"
# When the keys and values of each session were used last, by `monotonic`.
_last_used: WeakKeyDictionary[PrefixCache, float] = WeakKeyDictionary()
_last_used_lock = Lock()


@dataclass(frozen=True)
class Asked:
    """A question of the session, and what it was answered with."""

    typed: str  # as it was typed
    question: str  # as it was answered
    turns: tuple[Turn, ...]  # those that it follows on
    settings: Settings
    documents: Mapping[str, Document]  # those searched, by their names
    chosen: tuple[Document, ...]  # what was chosen to be searched: the same, or a large index
    encoder: str  # name of the model that searched them
    time: datetime  # when that was
    share: float = 1.0  # of their chunks that had vectors then

    def changed(self, settings: Settings, documents: Iterable[Document]) -> list[str]:
        """Name what is different from now."""
        before, now = self.settings, settings
        pairs: dict[str, tuple[object, object]] = {
            "the documents": ({each.name for each in self.chosen}, {each.name for each in documents}),
            "the chunks": ((before.cut, before.pooling), (now.cut, now.pooling)),
            "the search": ((before.answer.search, before.index_kind), (now.answer.search, now.index_kind)),
            "the answer": (
                replace(before.answer, search=DEFAULT_SEARCH, write=False),  # a text only adds to an answer
                replace(now.answer, search=DEFAULT_SEARCH, write=False),
            ),
        }
        return [name for name, (old, new) in pairs.items() if old != new]


def session_prefix_cache() -> PrefixCache:
    """Return the keys and values of the session's last prompt, for the next one that begins alike."""
    return st.session_state.setdefault("prefix_cache", PrefixCache())


def keep_newest(used: PrefixCache, room: int) -> None:
    """Note that a cache is used now, and clear others: those used last stay, up to ``room`` bytes in all."""
    with _last_used_lock:
        _last_used[used] = monotonic()
        for cache, _ in sorted(_last_used.items(), key=lambda item: item[1], reverse=True):
            room -= cache.n_bytes
            if room < 0 and cache is not used:
                cache.clear()


def queue_question(question: str, turns: tuple[Turn, ...] | None = None, write: bool = False) -> None:
    """Keep a question until a run of a page starts to answer it, by a text too where ``write`` says so.

    A page may have to index documents first, and any click meanwhile interrupts the run in which the button
    was pressed. With ``turns`` the question is answered as it stands, as one that follows on these; without,
    it is added to the conversation if it follows on it.
    """
    st.session_state.update(queued_question=question, queued_turns=turns, queued_write=write)


def question_form(key: str) -> None:
    """Draw the box for a question, by its key, and the button that has it answered."""
    with st.form(f"{key}-form", border=False):
        box, button = st.columns([5, 1], vertical_alignment="bottom")
        box.text_input("Your question", key=key, placeholder="What do you want to know?")
        button.form_submit_button(
            "Ask", type="primary", width="stretch", on_click=lambda: queue_question(st.session_state[key])
        )


def queued_question() -> str | None:
    """Return the question to be answered, if any; warn about one that is blank or too long."""
    question: str | None = st.session_state.get("queued_question")
    if question is None or (question.strip() and len(question) <= MOST_QUESTION):
        return question
    if question.strip():
        st.warning(
            f"The question has {len(question):,} characters, and {MOST_QUESTION:,} are read: ask something "
            "shorter, and add the text that it is about as a document."
        )
    else:
        st.warning("Type a question first, or pick an example.")
    drop_queued_question()
    return None


def drop_queued_question() -> None:
    """Drop the question that waits to be answered."""
    st.session_state.pop("queued_question", None)
    st.session_state.pop("queued_turns", None)
    st.session_state.pop("queued_write", None)


def has_asked() -> bool:
    """Whether a question was asked in this session, or waits to be answered."""
    return last_asked() is not None or bool((st.session_state.get("queued_question") or "").strip())


def last_asked() -> Asked | None:
    """Return the session's last question, None before the first one."""
    return st.session_state.get("asked")


def conversation() -> tuple[Turn, ...]:
    """Return the turns that the next question may follow on: none after `end_topic`."""
    asked, answer = last_asked(), last_answer()
    if asked is None or answer is None or answer.question != asked.question:
        return ()
    return (*asked.turns, Turn(asked.typed, answer.shown_text))


def end_topic() -> None:
    """Forget the last question and its answer, so that the next one follows on nothing."""
    for key in ("asked", "answer", "answer_job"):
        st.session_state.pop(key, None)
    clear_question()


@contextmanager
def waiting_until_done() -> Iterator[None]:
    """Drop the waiting question when the block ends or fails, but not when Streamlit interrupts it."""
    try:
        yield
    except Exception:  # Streamlit interrupts a run by other kinds of exceptions
        drop_queued_question()
        raise
    drop_queued_question()


def start_answer(
    question: str,
    index: Index,
    null_scores: NullScores,
    settings: Settings,
    model: Model,
    documents: Sequence[Document],
    server: Server | None = None,
    share: float = 1.0,
) -> None:
    """Start to answer from an index where a ``share`` of chunks has vectors; stop another answer."""
    state = st.session_state
    if "answer_job" in state:
        state["answer_job"].stop()
    cache, room = session_prefix_cache(), limits().kept_mb * 1_000_000
    if state.get("queued_write"):
        settings = replace(settings, answer=replace(settings.answer, write=True))
    writer = Writer(load_decoder(), server, cache) if settings.answer.write else None
    reader, _ = load_reader()
    own, turns = question, state.get("queued_turns") or ()
    if state.get("queued_turns") is None and settings.follow_ups:
        own, turns = follow_up(question, conversation(), index, model, null_scores)
    now = datetime.now().astimezone()
    chosen = tuple(documents)
    asked = Asked(question, own, turns, settings, index.documents, chosen, model.name, now, share)

    def work(job: Job[Answer]) -> Answer:
        try:
            return ask(
                asked.question,
                index,
                model,
                writer,
                settings.answer,
                null_scores,
                on_text=job.write,
                on_found=job.show_first,
                stop=lambda: not job.take_turn(),
                turns=asked.turns,
                on_thought=job.write_aside,
                reader=reader,
            )
        finally:
            keep_newest(cache, room)

    cost = (WRITING, writing_seconds()) if writer is not None and server is None else None
    state["asked"], state["answer_job"] = asked, Job(work, urgent=True, cost=cost)
    set_question(asked.question)


def show_writing(
    job: Job[T], label: str, key: str = "stop", draw_first: Callable[[Any], None] | None = None
) -> None:
    """Draw a text while it is written, below what comes first, a thought folded, with a button to stop."""
    above = st.container()
    controls, thought = st.container(horizontal=True, vertical_alignment="center"), st.container()
    thought_place: list[DeltaGenerator] = []  # once there is a thought
    place = st.empty()

    def draw_above(first: Any) -> None:
        if draw_first is not None:
            with above:
                draw_first(first)

    def draw_thought(text: str) -> None:
        if not thought_place:
            thought_place.append(thought.expander(THINKING, icon=THOUGHT_ICON).empty())
        thought_place[0].html(text_html(escape(text.strip())))

    controls.button(
        "Stopping…" if job.stopped else "Stop",
        key=key,
        icon=":material/stop_circle:",
        disabled=job.stopped,
        on_click=job.stop,
        help="Ends the answer and keeps the text so far.",
    )
    with controls, st.spinner(label, show_time=True):
        follow(job, place, draw_above, draw_thought)


def last_answer() -> Answer | None:
    """Return the session's last answer, None before the first one."""
    return st.session_state.get("answer")


def store_answer(job: Job[Answer]) -> Answer:
    """Wait for an answer, keep it as the session's last, with its sentence as the passage of all pages."""
    answer, asked = job.result(), last_asked()
    if answer is not last_answer():
        st.session_state["answer"] = answer
        if asked and (sentence := answering_sentence(answer, asked.documents)):
            set_passage(sentence.document, sentence.start, sentence.end)
    return answer


def answering_sentence(answer: Answer, documents: Mapping[str, Document]) -> CandidateSentence | None:
    """Return the sentence of the words that the reader found, else the first one quoted."""
    if answer.reading:
        return sentence_of(answer.reading, documents[answer.reading.document].text)
    return answer.quotes[0] if answer.quotes else None


def sentence_of(words: AnswerSpan, text: str) -> CandidateSentence:
    """Return the sentence of a document's text that the reader's words begin in, up to their end at least."""
    start, end = words.start, words.end
    around = short_sentences(text, max(0, start - LONGEST_SENTENCE), end + LONGEST_SENTENCE)
    for first, last in around:
        if first <= words.start < last:
            start, end = first, max(last, end)
    return CandidateSentence(words.document, start, end, text[start:end], words.place)


def text_button(asked: Asked, server: Server | None = None) -> None:
    """Draw the button that has a language model write a text for a question, besides what was found."""
    name = server.model if server else model_name(decoder_name())
    model = name.removesuffix("-Instruct").removesuffix("-it")  # the ending that all have would not fit
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            f"Have {escape_markdown(model or 'the server')} write it in sentences",
            key="write-text",
            icon=":material/edit_note:",
            on_click=queue_question,
            args=(asked.question, asked.turns, True),
            help="It reads the best sentences, and each of its own is checked against them. The model is "
            "loaded first, and downloaded if it is not here.",
        )
        if not server and (seconds := writing_seconds()):
            st.caption(f"about {readable_time(foreseen(WRITING, seconds))}", width="content")


def reason_unavailable(written: Written, decoder: Decoder) -> str:
    """Return the reason why an answer cannot be inspected, empty where it can."""
    if written.server:
        return (
            f"Written by {escape_markdown(written.model)} at "
            f"{escape_markdown(urlsplit(written.server).netloc)}. A server returns only text, so its "
            "tokens and attention cannot be inspected."
        )
    if written.model != decoder.name:
        return (
            f"Written by {escape_markdown(model_name(written.model))}, and the built-in model is "
            f"now {escape_markdown(model_name(decoder.name))}: only its own answers can be inspected."
        )
    if written.thought_ids and not written.ids:
        return "The model wrote a thought and no answer, so there is no answer to inspect."
    if not written.ids:
        return "The answer was stopped before its first token, so there is nothing to inspect."
    return ""
