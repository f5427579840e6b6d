"""A question asked in this session: its answer is written in a thread of its own, and every page sees it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TypeVar

import streamlit as st

from engine.generation.answering import Answer, ask
from engine.generation.prefix_cache import PrefixCache
from engine.generation.server import Server
from engine.retrieval.background import Background
from engine.retrieval.index import Index
from ui.jobs import Job, follow
from ui.models import load_decoder, load_encoder
from ui.settings import Settings

T = TypeVar("T")


def session_prefix_cache() -> PrefixCache:
    """Return what this session's last prompt left to reuse."""
    cache: PrefixCache = st.session_state.setdefault("prefix_cache", PrefixCache())
    return cache


def want_answer(question: str) -> None:
    """Have a question answered, by the first run of a page that gets as far as beginning to.

    Whatever is touched while a page gets ready for that interrupts the run in which a button was pressed.
    """
    st.session_state["wanted_question"] = question


def want_typed(box: str) -> None:
    """Have the question in a text box answered, which is named by its key."""
    want_answer(st.session_state[box])


def wanted_question() -> str | None:
    """Return the question that waits to be answered; ask for one where only blanks were typed."""
    question: str | None = st.session_state.get("wanted_question")
    if question is None or question.strip():
        return question
    st.warning("Type a question first, or pick one above.")
    forget_question()
    return None


def forget_question() -> None:
    """Let the question that waits wait no longer."""
    st.session_state.pop("wanted_question", None)


@contextmanager
def waiting_until_done() -> Iterator[None]:
    """Let the question wait until what is done for it ends, well or badly; an interruption is no end."""
    try:
        yield
    except Exception:  # which Streamlit's own ways to end a run are not
        forget_question()
        raise
    forget_question()


def start_answer(
    question: str, index: Index, background: Background, settings: Settings, server: Server | None = None
) -> None:
    """Begin to answer a question; the answer that is being written, if any, ends."""
    state = st.session_state
    if "answer_job" in state:
        state["answer_job"].stop()
    encoder, decoder, reuse = load_encoder(), load_decoder(), session_prefix_cache()

    def work(job: Job[Answer]) -> Answer:
        return ask(
            question,
            index,
            encoder,
            decoder,
            k=settings.k,
            min_relevance=settings.min_relevance,
            max_prompt_tokens=settings.max_prompt_tokens,
            max_new_tokens=settings.max_new_tokens,
            **asdict(settings.sampling),
            seed=settings.seed,
            reuse=reuse,
            server=server,
            background=background,
            retriever=settings.retriever,
            expand=settings.expand,
            on_text=job.write,
            stop=lambda: job.stopped,
        )

    state["asked"], state["answer_job"] = question, Job(work)


def show_writing(job: Job[T], label: str, key: str = "stop") -> None:
    """Draw a text as it is written, and the button that ends it."""
    controls, place = st.container(horizontal=True, vertical_alignment="center"), st.empty()
    controls.button(
        "Stopping…" if job.stopped else "Stop",
        key=key,
        icon=":material/stop_circle:",
        disabled=job.stopped,
        on_click=job.stop,
        help="Ends the answer and keeps what is written of it.",
    )
    with controls, st.spinner(label, show_time=True):
        follow(job, place)
