"""Inside the answer: how the reader found it; a text's tokens, and what they rest on."""

from collections.abc import Callable, Sequence
from functools import partial
from html import escape

import streamlit as st

from engine.documents.document import Document
from engine.errors import ContextLengthError
from engine.generation.answer import Answer, Written
from engine.generation.generated_token import GeneratedToken
from engine.generation.replay import replay
from engine.generation.sampling import Sampling
from engine.wording import counted
from pages.inside.answer.attribution import show_attribution
from pages.inside.answer.reading import show_reading
from pages.inside.answer.tokens import show_tokens
from ui.asking import (
    question_form,
    queue_question,
    queued_question,
    reason_unavailable,
    session_prefix_cache,
    show_writing,
    start_answer,
    store_answer,
    text_button,
    waiting_until_done,
)
from ui.corpus import index_to_ask
from ui.documents import are_bundled, chosen_documents
from ui.jobs import Job
from ui.models import load_decoder, load_encoder
from ui.nothing_found import no_text_words, show_nothing_found
from ui.report import Report
from ui.setting_values import set_values
from ui.settings import Settings, settings_sidebar
from ui.settings_card import show_settings_card
from ui.text import escape_markdown, show_error, show_text
from ui.uploaded_vectors import search_model
from ui.widgets import example_choice, show_tabs

EXAMPLES = (
    "What does the CarbFix project do with carbon dioxide?",
    "What is the price of insulin for seniors on Medicare?",
    "What happens to text beyond the token limit?",
)
N_CANDIDATES = 8
STEP = 64  # step of the prompt's budget in the sidebar


def question_box(documents: Sequence[Document], has_answer: bool) -> str | None:
    """Draw examples about the samples, and the box; return the question to answer, if any."""
    with st.expander("Ask another question", expanded=False) if has_answer else st.container():
        if are_bundled(documents):
            example_choice(EXAMPLES, "inside-answer-example", queue_question)
        question_form("inside-answer-question")
        st.caption(
            f"Searches {counted(len(documents), 'document')}, chosen on the page “Ask your documents”."
        )
        return queued_question()


def show_job(job: Job[Answer], question: str, settings: Settings) -> None:
    """Draw the session's last answer: its text while it is written, then the views into it."""
    is_running = not job.done
    writing, area = st.empty(), st.empty() if is_running else st.container()  # an empty one clears at once
    if is_running:
        with writing.container():
            st.header(escape_markdown(question))
            show_writing(job, "Searching, reading the passages, writing…")
        writing.empty()
    with area.container() if is_running else area:
        try:
            show_answer(store_answer(job), settings)
        except ContextLengthError as error:
            show_error(error)
            offer_less(question, settings)


@st.cache_resource(
    max_entries=4,
    show_spinner="Reading the answer again, with the candidates for each token…",
    scope="session",
)
def steps_of(
    model: str, prompt_ids: tuple[int, ...], ids: tuple[int, ...], sampling: Sampling
) -> tuple[GeneratedToken, ...]:
    """Return every token of an answer with its candidates and entropy."""
    return replay(load_decoder(), prompt_ids, ids, N_CANDIDATES, sampling, session_prefix_cache())


def show_answer(answer: Answer, settings: Settings) -> None:
    """Draw an answer, and the views into it."""
    st.header(escape_markdown(answer.question))
    if not answer.retrieved.relevant:
        show_nothing_found(Report(), answer.retrieved)
        return
    written = answer.written
    views = {"Reader": lambda: show_reading(answer)}
    if written:
        views |= views_of_text(written, settings, answer.question)
    show_tabs(views, "inside-answer-tab")
    if written is None:
        st.caption("No language model wrote a text for this answer: the views of its tokens come with one.")
        text_button(st.session_state["asked"])


def views_of_text(written: Written, settings: Settings, question: str) -> dict[str, Callable[[], None]]:
    """Draw a text that a language model wrote; return the views into it, if it can be inspected."""
    decoder = load_decoder()
    show_text(escape(written.text) or no_text_words(written))
    if reason := reason_unavailable(written, decoder):
        st.info(reason, icon=":material/lock:")
        st.button(
            "Have the built-in model answer it",
            on_click=queue_question,
            args=(question, None, True),
            icon=":material/replay:",
        )
        return {}
    st.caption(
        f"{counted(len(written.ids), 'token')} by {escape_markdown(decoder.name)}, from "
        f"{counted(len(written.prompt.sources), 'passage')} in a prompt of {len(written.prompt.ids):,} tokens"
        + (f", behind a thought of {len(written.thought_ids):,}." if written.thought_ids else ".")
    )
    steps = partial(steps_of, decoder.name, written.read_ids, written.ids)
    return {
        "Tokens": lambda: show_tokens(written, steps(settings.answer.sampling), settings),
        "What it rests on": lambda: show_attribution(written),
    }


def begin(question: str, documents: Sequence[Document], settings: Settings) -> bool:
    """Start answering a question; return whether it could start, else draw the reason."""
    if not documents:
        st.info("No document is chosen. Add or pick some on the page “Ask your documents”.")
        return False
    if (settings.answer.write or st.session_state.get("queued_write")) and not has_room(question, settings):
        return False
    model = search_model(documents)
    retriever = settings.answer.search.retriever
    index, null_scores = index_to_ask(documents, model, settings.cut, settings.pooling, retriever)
    start_answer(question, index, null_scores, settings, model, documents)
    return True


def has_room(question: str, settings: Settings) -> bool:
    """Return whether prompt and text fit into the language model, else draw an error and a way out."""
    decoder = load_decoder()
    excess = settings.answer.max_prompt_tokens + settings.answer.most_tokens - decoder.max_tokens
    if excess <= 0:
        return True
    st.error(
        f"A prompt of {settings.answer.max_prompt_tokens:,} tokens and an answer of "
        f"{settings.answer.most_tokens:,} exceed the {decoder.max_tokens:,} positions of "
        f"{escape_markdown(decoder.name)} by {excess:,}: give it fewer passages or a shorter answer.",
        icon=":material/error:",
    )
    offer_less(question, settings)
    return False


def offer_less(question: str, settings: Settings) -> None:
    """Draw a button that asks again with fewer passages in a smaller prompt."""
    room = load_decoder().max_tokens - settings.answer.most_tokens
    budget = max(2 * STEP, min(settings.answer.max_prompt_tokens - STEP, room) // STEP * STEP)
    fewer = max(1, settings.answer.search.k * budget // settings.answer.max_prompt_tokens)

    def ask_with_less() -> None:
        set_values({"k": fewer, "max_prompt_tokens": budget})
        queue_question(question, write=True)

    st.button(
        f"Ask again with {counted(fewer, 'passage')} in {budget:,} tokens",
        key="fewer-passages",
        icon=":material/content_cut:",
        on_click=ask_with_less,
    )


def main() -> None:
    """Draw the page."""
    state = st.session_state
    encoder = load_encoder()
    documents = chosen_documents()
    with st.sidebar:
        show_settings_card(documents, encoder)
        settings = settings_sidebar(encoder, on_server=False, documents=documents)
    question = question_box(documents, has_answer="answer_job" in state)
    with st.container(), waiting_until_done():  # keeps the position of all that follows
        if question and not begin(question, documents, settings):
            return
    if "answer_job" in state:
        show_job(state["answer_job"], state["asked"].question, settings)
    else:
        st.info("Ask a question above, or on the page “Ask your documents”.")


main()
