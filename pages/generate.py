"""Inside the answer: its tokens, what they rest on, and how they came about."""

from collections.abc import Sequence
from html import escape
from urllib.parse import urlsplit

import streamlit as st

from engine import Decoder
from engine.documents.document import Document
from engine.errors import ContextLengthError, GlassboxError
from engine.generation.answering import Answer
from engine.generation.replay import replay
from engine.generation.sampling import Sampling
from engine.generation.step import Step
from ui.answer import NO_TEXT, escape_markdown, show_nothing_found
from ui.asking import (
    session_prefix_cache,
    show_writing,
    start_answer,
    waiting_until_done,
    want_answer,
    want_typed,
    wanted_question,
)
from ui.attribution import show_attribution
from ui.corpus import background_of_documents, chosen_documents, index_documents, ready
from ui.frame import require_frame
from ui.generate_cache import show_cache
from ui.generate_compare import show_without
from ui.generate_positions import show_positions
from ui.generate_tokens import show_tokens
from ui.jobs import Job
from ui.models import load_decoder, load_encoder
from ui.settings import Settings, settings_sidebar
from ui.text import show_text

EXAMPLES = (
    "What does the CarbFix project do with carbon dioxide?",
    "What is the price of insulin for seniors on Medicare?",
    "What happens to text beyond the token limit?",
)
TABS = ("Tokens", "What it rests on", "Passages off", "KV cache", "Positions")
N_CANDIDATES = 8
STEP = 64  # of the prompt's budget in the sidebar


def question_box(documents: Sequence[Document], has_answer: bool) -> str | None:
    """Draw the examples and the box; return a question that is to be answered."""
    with st.expander("Ask another question", expanded=False) if has_answer else st.container():
        st.pills("Try one", EXAMPLES, key="inside-answer-example", on_change=take_example)
        with st.form("inside-answer-form", border=False):
            box, button = st.columns([5, 1], vertical_alignment="bottom")
            box.text_input(
                "Your question",
                key="inside-answer-question",
                placeholder="What do you want to know?",
                max_chars=2000,
            )
            button.form_submit_button(
                "Ask", type="primary", width="stretch", on_click=want_typed, args=("inside-answer-question",)
            )
        st.caption(
            f"{len(documents)} documents are searched; they are chosen on the page “Ask your documents”."
        )
        return wanted_question()


def take_example() -> None:
    """Have a picked example answered."""
    if example := st.session_state["inside-answer-example"]:
        st.session_state["inside-answer-example"] = None
        want_answer(example)


def show_job(job: Job[Answer], question: str, settings: Settings) -> None:
    """Draw the session's last answer: what is written of it so far, then the views into it."""
    is_running = not job.done
    writing, area = st.empty(), st.empty() if is_running else st.container()  # an empty one clears at once
    if is_running:
        with writing.container():
            st.subheader(escape_markdown(question))
            show_writing(job, "Searching, reading the passages, writing…")
        writing.empty()
    with area.container() if is_running else area:
        try:
            st.session_state["answer"] = answer = job.result()
            show_answer(answer, settings)
        except ContextLengthError as error:
            st.error(escape_markdown(str(error)), icon=":material/error:")
            offer_less(question, settings)


@st.cache_resource(
    max_entries=4, show_spinner="Reading the answer again, with what else might follow…", scope="session"
)
def steps_of(
    model: str, prompt_ids: tuple[int, ...], ids: tuple[int, ...], sampling: Sampling
) -> tuple[Step, ...]:
    """Return every token of an answer with its candidates and entropy."""
    return replay(load_decoder(), prompt_ids, ids, N_CANDIDATES, sampling, session_prefix_cache())


def show_answer(answer: Answer, settings: Settings) -> None:
    """Draw an answer, and the views into it."""
    st.subheader(escape_markdown(answer.question))
    if answer.prompt is None:
        show_nothing_found(answer)
        return
    decoder = load_decoder()
    show_text(escape(answer.text) or NO_TEXT[answer.finish_reason or "stop"])
    if reason := closed(answer, decoder):
        st.info(reason, icon=":material/lock:")
        st.button(
            "Have the built-in model answer it",
            on_click=want_answer,
            args=(answer.question,),
            icon=":material/replay:",
        )
        return
    st.caption(
        f"{len(answer.ids)} tokens by {escape_markdown(decoder.name)}, from {len(answer.sources)} passages "
        f"in a prompt of {len(answer.prompt.ids):,} tokens."
    )
    tabs = st.tabs(TABS, on_change="rerun", key="inside-answer-tab")
    tokens, rests, without, cache, positions = tabs
    if tokens.open:
        with tokens:
            steps = steps_of(decoder.name, answer.prompt.ids, answer.ids, settings.sampling)
            show_tokens(answer, steps, settings)
    if rests.open:
        with rests:
            show_attribution(answer)
    if without.open:
        with without:
            show_without(answer, settings)
    if cache.open:
        with cache:
            show_cache(answer)
    if positions.open:
        with positions:
            show_positions()


def closed(answer: Answer, decoder: Decoder) -> str:
    """Say why an answer cannot be looked into, or return an empty text where it can."""
    if answer.server:
        return (
            f"Written by {escape_markdown(answer.model or 'a model')} at "
            f"{escape_markdown(urlsplit(answer.server).netloc)}. A server gives its text alone: neither "
            "tokens nor attention can be looked into."
        )
    if answer.model != decoder.name:
        return (
            f"Written by {escape_markdown(answer.model or 'another model')}, and the built-in model is "
            f"{escape_markdown(decoder.name)} by now: only that one can be looked into."
        )
    if not answer.ids:
        return "The answer was stopped before its first token, so there is nothing to look into."
    return ""


def begin(question: str, documents: Sequence[Document], settings: Settings) -> bool:
    """Begin to answer a question; where there are no documents or there is no room, say so instead."""
    decoder = load_decoder()
    excess = settings.max_prompt_tokens + settings.max_new_tokens - decoder.max_tokens
    if not documents:
        st.info("No document is chosen. Add or pick some on the page “Ask your documents”.")
    elif excess > 0:
        st.error(
            f"A prompt of {settings.max_prompt_tokens:,} tokens and an answer of {settings.max_new_tokens:,} "
            f"exceed the {decoder.max_tokens:,} positions of {escape_markdown(decoder.name)} by {excess:,}: "
            "give it fewer passages or a shorter answer.",
            icon=":material/error:",
        )
        offer_less(question, settings)
    else:
        chosen = documents, load_encoder(), settings.cut, settings.pooling
        index, background = index_documents(*chosen), background_of_documents(*chosen)
        ready(index, settings.retriever)
        start_answer(question, index, background, settings)
        return True
    return False


def offer_less(question: str, settings: Settings) -> None:
    """Draw a button that asks again with fewer passages in a smaller prompt."""
    room = load_decoder().max_tokens - settings.max_new_tokens
    budget = max(2 * STEP, min(settings.max_prompt_tokens - STEP, room) // STEP * STEP)
    fewer = max(1, settings.k * budget // settings.max_prompt_tokens)
    st.button(
        f"Ask again with {fewer} passage{'s' * (fewer > 1)} in {budget:,} tokens",
        key="fewer-passages",
        icon=":material/content_cut:",
        on_click=take_less,
        args=(question, fewer, budget),
    )


def take_less(question: str, k: int, max_prompt_tokens: int) -> None:
    """Move the sidebar's settings to fewer passages and a smaller prompt, and have a question asked."""
    st.session_state["k"], st.session_state["max_prompt_tokens"] = k, max_prompt_tokens
    want_answer(question)


def main() -> None:
    """Draw the page."""
    require_frame("pages/generate.py")
    st.title("Inside the answer")
    st.write(
        "Take an answer apart: every token and what might have come instead, what each sentence really "
        "rests on, and what the model would have said without a passage."
    )
    state = st.session_state
    try:
        encoder = load_encoder()
        with st.sidebar:
            settings = settings_sidebar(encoder, on_server=False)
        documents = chosen_documents()
        question = question_box(documents, has_answer="answer_job" in state)
        with st.container(), waiting_until_done():  # whatever is drawn, what follows keeps its place
            if question and not begin(question, documents, settings):
                return
        if "answer_job" in state:
            show_job(state["answer_job"], state["asked"], settings)
        else:
            st.info("Pick a question above, type your own, or ask on the page “Ask your documents”.")
    except GlassboxError as error:
        st.error(escape_markdown(str(error)), icon=":material/error:")


main()
