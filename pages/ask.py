"""Ask the documents: retrieval and generation end to end, each step shown."""

from collections.abc import Sequence
from html import escape

import streamlit as st

from engine import Encoder
from engine.documents.budget import limit_warning
from engine.documents.document import Document
from engine.errors import GlassboxError
from engine.generation.answering import Answer
from engine.generation.server import Server
from ui.answer import escape_markdown, show_answer
from ui.asking import (
    show_writing,
    start_answer,
    waiting_until_done,
    want_answer,
    want_typed,
    wanted_question,
)
from ui.corpus import background_of_documents, document_picker, index_documents, ready
from ui.frame import require_frame
from ui.jobs import Job
from ui.model_choice import model_picker
from ui.models import load_decoder, load_encoder
from ui.retrievers import LABELS
from ui.settings import Settings, settings_sidebar
from ui.text import show_text

EXAMPLES = (
    "What does the CarbFix project do with carbon dioxide?",
    "What is the price of insulin for seniors on Medicare?",
    "What happens to text beyond the token limit?",
    "How do I bake sourdough bread?",
)


def question_box() -> str | None:
    """Draw the example questions and the box; return a question that is to be answered."""
    st.pills(
        "Try one",
        EXAMPLES,
        key="example",
        on_change=take_example,
        help="The last one is not answered by the bundled documents: the app should say so.",
    )
    with st.form("question-form", border=False):
        box, button = st.columns([5, 1], vertical_alignment="bottom")
        box.text_input(
            "Your question", key="question", placeholder="What do you want to know?", max_chars=2000
        )
        button.form_submit_button(
            "Ask", type="primary", width="stretch", on_click=want_typed, args=("question",)
        )
    return wanted_question()


def take_example() -> None:
    """Copy a picked example into the box and have it answered."""
    if example := st.session_state["example"]:
        st.session_state["question"] = example
        st.session_state["example"] = None
        want_answer(example)


def show_job(job: Job[Answer], question: str, documents: Sequence[Document]) -> None:
    """Draw a question and its answer: what is written of it so far, then everything it rests on."""
    writing, finished = st.empty(), st.empty()  # what the second showed before goes at once
    if not job.done:
        with writing.container(key="writing"):
            st.subheader(escape_markdown(question))
            show_writing(job, "Searching, reading the passages, writing…")
        writing.empty()
    with finished.container(key="answer"):
        st.subheader(escape_markdown(question))
        try:
            answer = job.result()
        except GlassboxError as error:
            show_text(escape(job.text))
            st.error(escape_markdown(str(error)), icon=":material/error:")
            return
        st.session_state["answer"] = answer
        show_answer(answer, documents)


def ask_area(
    encoder: Encoder, documents: Sequence[Document], settings: Settings, server: Server | None
) -> None:
    """Index the documents, draw the question box, and begin to answer what is asked."""
    if not documents:
        st.info("No document is chosen. Add one or pick some under “Search in” in the sidebar.")
        return
    index = index_documents(documents, encoder, settings.cut, settings.pooling)
    n_tokens = sum(chunk.n_tokens for chunk in index.chunks)
    st.caption(
        f"{len(documents)} documents · {len(index.chunks)} chunks · {n_tokens:,} tokens · "
        f"encoder {encoder.name} · retriever {LABELS[settings.retriever]}"
    )
    if warning := limit_warning(index.chunks, index.kind.max_tokens):
        st.warning(warning, icon=":material/content_cut:")
    if question := question_box():
        with waiting_until_done():
            background = background_of_documents(documents, encoder, settings.cut, settings.pooling)
            ready(index, settings.retriever)
            start_answer(question, index, background, settings, server)


def main() -> None:
    """Draw the page."""
    require_frame("pages/ask.py")
    st.title("Ask your documents")
    st.write(
        "A question finds the best passages, and a small language model answers from them. "
        "Everything on that way is open below: passages, scores, the exact prompt and the time of each step."
    )
    documents: list[Document] = []
    try:
        encoder = load_encoder()
        with st.sidebar:
            documents = document_picker()
            with st.expander("Model", icon=":material/smart_toy:"):
                server = model_picker()
            settings = settings_sidebar(encoder, on_server=server is not None)
        ask_area(encoder, documents, settings, server)
        load_decoder()  # ready before the first question
    except GlassboxError as error:
        st.error(escape_markdown(str(error)), icon=":material/error:")
    if "answer_job" in st.session_state:
        show_job(st.session_state["answer_job"], st.session_state["asked"], documents)


main()
