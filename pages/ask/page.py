"""Ask the documents: retrieval and generation, with every step shown."""

from collections.abc import Sequence
from html import escape

import streamlit as st

from engine.documents.document import Document
from engine.documents.truncation import limit_warning
from engine.errors import GlassboxError
from engine.generation.answer import Answer
from engine.generation.server import Server
from engine.retrieval.retrievers import RETRIEVERS
from engine.wording import counted
from pages.ask.answer import show_answer
from pages.ask.evidence import show_found
from pages.ask.examples import show_examples
from pages.ask.model_choice import model_picker
from ui.asking import (
    Asked,
    end_topic,
    has_asked,
    last_asked,
    question_form,
    queue_question,
    queued_question,
    show_writing,
    start_answer,
    store_answer,
    waiting_until_done,
)
from ui.corpus import index_documents, index_so_far, null_scores_of_documents, warm
from ui.current import current_question, follow_question
from ui.documents import NoDocumentError, document_picker, format_names, has_own_files
from ui.embedding import AT_ONCE, NotEmbeddedError, show_embedding
from ui.jobs import Job, current_job
from ui.models import load_encoder, load_reader
from ui.report import Report
from ui.settings import Settings, settings_sidebar
from ui.settings_card import show_settings_card
from ui.text import escape_markdown, show_error, show_text
from ui.uploaded_vectors import search_model

AT_ONCE_S = 0.6  # an answer that stands within this is drawn without a sign that it is sought
READ_AS_HELP = (
    "By itself your question is much further from the documents than with the words of the conversation's "
    "topic, so these were added. Change the question if it was read wrongly."
)
TOPIC_HELP = (
    "A question that needs the topic of the conversation, such as “And in 2016?”, is read with it. One that "
    "is complete is read as it is."
)


def question_box() -> str | None:
    """Draw a box for a question; return the question to answer, if any."""
    asked = last_asked()
    if asked is None or asked.question != current_question():  # the box keeps a follow-up as it was typed
        follow_question("question")
    question_form("question")
    return queued_question()


def show_job(
    job: Job[Answer], asked: Asked, documents: Sequence[Document], settings: Settings, server: Server | None
) -> None:
    """Draw a question and its answer: while it is written without sources, then with them."""
    writing, finished = st.empty(), st.empty()  # so that the previous answer disappears at once
    write = asked.settings.answer.write
    if not write:
        job.wait(seconds=AT_ONCE_S)
    if not job.done:
        with writing.container(key="writing"):
            st.header(escape_markdown(asked.typed))
            show_writing(
                job,
                f"Searching, reading the passages{', writing' if write else ''}…",
                draw_first=lambda found: show_found(Report(), found, asked.documents),
            )
        writing.empty()
    with finished.container(key="answer"):
        st.header(escape_markdown(asked.typed))
        show_follow_up(asked)
        show_changed(asked, settings, documents)
        try:
            answer = store_answer(job)
        except GlassboxError as error:
            if isinstance(job.first, Answer):
                show_found(Report(), job.first, asked.documents)
            show_text(escape(job.text))
            show_error(error)
            return
        show_answer(answer, asked, server)
        if settings.follow_ups:
            if asked.turns:
                with st.expander(
                    f"Earlier in this conversation: {len(asked.turns)}", icon=":material/forum:"
                ):
                    for turn in asked.turns:
                        st.markdown(f"**{escape_markdown(turn.question)}**")
                        st.caption(escape_markdown(turn.answer) or "Refused.")
            with st.container(horizontal=True, vertical_alignment="center"):
                st.caption("The next question may follow on this one.", help=TOPIC_HELP)
                st.button("New topic", type="tertiary", icon=":material/restart_alt:", on_click=end_topic)


def show_follow_up(asked: Asked) -> None:
    """Show the question that a follow-up was read as, to be changed, and offer to answer it as typed."""
    if asked.question == asked.typed:
        return
    with st.form("follow-up-form", border=True):
        box, change, as_typed = st.columns([4, 1, 1], vertical_alignment="bottom")
        read_as = box.text_input(
            "Read as a follow-up:", asked.question, key=f"read-as-{asked.question}", help=READ_AS_HELP
        )
        if change.form_submit_button("Ask this", width="stretch") and read_as.strip():
            queue_question(read_as, asked.turns)
            st.rerun()
        if as_typed.form_submit_button("As typed", width="stretch"):
            queue_question(asked.typed, ())
            st.rerun()


def show_changed(asked: Asked, settings: Settings, documents: Sequence[Document]) -> None:
    """Say that an answer is from before a change of settings or documents, and offer to ask again."""
    if changed := asked.changed(settings, documents):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.warning(
                f"This is the answer from before your change of {' and '.join(changed)}.",
                icon=":material/history:",
            )
            st.button("Ask again", on_click=queue_question, args=(asked.question, asked.turns))
    elif asked.share < 1:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(
                f"Searched by words, and by meaning where chunks had vectors: {asked.share:.0%} of them, and "
                "the best by words."
            )
            st.button(
                "Ask again", type="tertiary", on_click=queue_question, args=(asked.question, asked.turns)
            )


def show_last_job(documents: Sequence[Document], settings: Settings, server: Server | None) -> None:
    """Draw the session's last question and answer, if there is one."""
    if asked := last_asked():
        show_job(st.session_state["answer_job"], asked, documents, settings, server)


def ask_area(
    question: str | None, documents: Sequence[Document], settings: Settings, server: Server | None
) -> None:
    """Index the documents, say how many there are, and start to answer a question."""
    if not documents:
        raise NoDocumentError
    model = search_model(documents)
    wanted = None
    try:
        index = index_documents(documents, model, settings.cut, settings.pooling, settings.index_kind)
    except NotEmbeddedError as error:
        if error.partial is None:
            raise
        index, wanted = error.partial, error.wanted
    searched = [counted(len(index.documents), "document"), counted(len(index.chunks), "chunk")]
    if not index.is_mapped:
        searched.append(counted(sum(chunk.n_tokens for chunk in index.chunks), "token"))
        if warning := limit_warning(index.chunks, settings.cut.text_limit(model)):
            st.warning(escape_markdown(warning), icon=":material/content_cut:")
    searched.append(f"model {escape_markdown(model.name)}")
    searched.append(f"retriever {RETRIEVERS[settings.answer.search.retriever].label}")
    st.caption(" · ".join(searched))
    if reason := load_reader()[1]:  # loaded before the first question
        st.warning(f"No reader: {escape_markdown(reason)}; quotes only.", icon=":material/visibility_off:")
    if wanted is None:
        st.session_state.pop(AT_ONCE, None)
    else:
        st.caption("Questions are answered already: by words, and by meaning as far as chunks have vectors.")
        show_embedding(wanted, "ask")
    if question:
        with waiting_until_done():
            if wanted is not None:
                index, null_scores = index_so_far(question, documents, index, wanted, settings.cut, model)
            else:
                null_scores = null_scores_of_documents(documents, model, settings.cut, settings.pooling)
            warm(index, settings.answer.search.retriever, model)
            share = 1.0 if wanted is None else float(wanted.known.mean())
            start_answer(question, index, null_scores, settings, model, documents, server, share)


def main() -> None:
    """Draw the page."""
    encoder = load_encoder()
    asking, begin = st.container(), st.container()
    if not has_asked() and not has_own_files():
        with begin:
            own, samples = (column.container(border=True) for column in st.columns(2))
        own.markdown("**Drop your documents**")
        own.caption(format_names())
        samples.markdown("**Or ask the samples**")
    else:
        # A key of its own, so that what was open before the first question closes with it.
        asked = has_asked()
        own, samples = None, begin.expander("Examples", expanded=not asked, key=f"examples-{asked}")
    with st.sidebar:
        documents = document_picker(own)
    with asking:  # in sight before all that takes time
        question = question_box() if documents else None
    with st.sidebar:
        show_settings_card(documents, encoder)
        with st.expander("Model", icon=":material/smart_toy:", expanded=current_job("download") is not None):
            server = model_picker()
        settings = settings_sidebar(encoder, on_server=server is not None, documents=documents)
    try:
        with asking:
            ask_area(question, documents, settings, server)
    except (GlassboxError, NoDocumentError):  # the last answer stays in sight when the search fails
        show_last_job(documents, settings, server)
        raise
    finally:
        with samples:
            show_examples(documents)
    show_last_job(documents, settings, server)


main()
