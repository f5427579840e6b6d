"""Labelling in the app: ask, mark the passage that answers, keep."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape
from itertools import islice
from pathlib import PurePath

import streamlit as st

from engine import Encoder
from engine.documents.document import Document
from engine.evaluation.questions import Question, Reference
from engine.retrieval.ranking import best_first, candidates
from engine.retrieval.retrievers import index_scores
from engine.retrieval.vector_kind import embed_query
from ui.answer import escape_markdown
from ui.chunk_settings import Cut
from ui.corpus import index_documents, ready, session_documents
from ui.kept_questions import keep_questions, kept_questions
from ui.passage_picker import go_to, passage_picker, sentences_of
from ui.question_listing import set_to_extend, show_set
from ui.retrievers import LABELS
from ui.text import show_text

SEARCH, WORDS = "By the app's search", "By words"
CANDIDATES = 5
CANDIDATE_HEIGHT = 103  # pixels: four lines
MAX_QUESTION = 2000  # characters


def show_labelling(
    documents: Sequence[Document], encoder: Encoder, cut: Cut, pooling: str, retriever: str
) -> None:
    """Draw how questions are labelled, and those that are.

    Parameters
    ----------
    documents
        Those that are searched; answers are marked in them.
    encoder, cut, pooling, retriever
        How the search for candidates is made. A label is a place in the text, and knows nothing of it.
    """
    st.write(
        "Ask what you would ask, mark the passage that answers it, keep it. A public benchmark knows nothing "
        "of your documents; a few dozen questions of your own do."
    )
    if not documents:
        st.info("No document is chosen. Add one or pick some under “Search in” in the sidebar.")
        return
    name = set_to_extend()
    question = st.text_input(
        "Question",
        key="label-question",
        persist_state="session",
        max_chars=MAX_QUESTION,
        placeholder="In your own words, not in the document's",
        help="Questions in a document's own words are found by any search, and so tell none from another.",
    ).strip()
    if question:
        show_candidates(question, documents, encoder, cut, pooling, retriever)
        st.markdown("**Mark the passage**")
        if found := passage_picker(documents):
            show_keep_button(name, question, *found)
    else:
        st.info("Write a question to begin.", icon=":material/help:")
    show_set(name)


def show_candidates(
    question: str,
    documents: Sequence[Document],
    encoder: Encoder,
    cut: Cut,
    pooling: str,
    retriever: str,
) -> None:
    """Draw passages that may answer a question, each with a button that marks it."""
    st.markdown("**Find it**")
    how = st.segmented_control(
        "Find it",
        [SEARCH, WORDS],
        default=SEARCH,
        required=True,
        key="label-how",
        persist_state="session",
        label_visibility="collapsed",
        help="By the app's search: what its retriever, set in the sidebar, finds for the question. By words: "
        "sentences that hold words of yours.",
    )
    by_name = {document.name: document for document in documents}
    if how == SEARCH:
        st.caption(
            f"The first of {LABELS[retriever]}. Labels taken from one search flatter that search: look by "
            "words, too."
        )
        index = index_documents(documents, encoder, cut, pooling)
        ready(index, retriever)
        query = embed_query(question, index.encoder(encoder), pooling, cut.max_tokens)
        scores = index_scores(retriever, question, query, index, encoder)  # (n_chunks,)
        rows = candidates(best_first(scores[None])[0], scores, CANDIDATES)
        best = [index.chunks[row] for row in rows.tolist()]
        hits = [(by_name[chunk.document], chunk.start, chunk.end) for chunk in best]
        if not hits:
            st.info(f"{LABELS[retriever]} finds nothing for this question in these documents.")
    else:
        words = st.text_input(
            "Words",
            key="label-words",
            persist_state="session",
            max_chars=200,
            placeholder="All of them in one sentence",
            help="Upper and lower case are the same, and parts of words count.",
        )
        hits = list(islice(sentences_with(words.casefold().split(), documents), CANDIDATES))
        if words.strip() and not hits:
            st.info("No sentence of these documents holds all of these words.")
    for number, hit in enumerate(hits):
        show_candidate(number, *hit)


def sentences_with(
    words: Sequence[str], documents: Sequence[Document]
) -> Iterator[tuple[Document, int, int]]:
    """Yield the sentences that hold all of some words, whatever their case; none where there are no words."""
    for document in documents if words else ():
        for start, end in sentences_of(document.text):
            sentence = document.text[start:end].casefold()
            if all(word in sentence for word in words):
                yield document, start, end


def show_candidate(number: int, document: Document, start: int, end: int) -> None:
    """Draw a passage with a button that marks it."""
    with st.container(border=True):
        show_text(escape(" ".join(document.text[start:end].split())), height=CANDIDATE_HEIGHT)
        with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
            st.caption(escape_markdown(document.name), width="content")
            st.button(
                "Mark it",
                key=f"label-hit-{number}",
                on_click=mark,
                args=(document, start, end),
                icon=":material/ink_highlighter:",
                help="Marks these sentences below, where you can take fewer.",
            )


def mark(document: Document, start: int, end: int) -> None:
    """Mark a candidate, which stands further down the page."""
    go_to(document, start, end)
    st.toast("Marked below: take fewer sentences there, and keep it.", icon=":material/ink_highlighter:")


def show_keep_button(name: str, question: str, document: Document, reference: Reference) -> None:
    """Draw the button that keeps a label in a set, or why it cannot be kept."""
    stem = PurePath(document.name).stem
    alike = [other.name for other in session_documents() if PurePath(other.name).stem == stem]
    if len(alike) > 1:
        st.warning(
            f"{len(alike)} documents are called {escape_markdown(stem)}, and a label could not tell them "
            "apart: take all but one out, or rename them.",
            icon=":material/file_copy:",
        )
    st.button(
        "Keep this label",
        key="label-keep",
        type="primary",
        icon=":material/bookmark_add:",
        on_click=keep_label,
        args=(name, question, stem, reference),
        disabled=len(alike) > 1,
    )
    if said := st.session_state.pop("label-said", None):
        st.success(said, icon=":material/check_circle:")


def keep_label(name: str, text: str, corpus_id: str, reference: Reference) -> None:
    """Keep a passage in a set as an answer; a question asked of the document before gets one more."""
    questions, _ = kept_questions(name)
    keep_questions(name, with_label(questions, text, corpus_id, reference))
    st.session_state["label-said"] = "Kept. Mark another passage that answers it, or write the next question."


def with_label(
    questions: Sequence[Question], text: str, corpus_id: str, reference: Reference
) -> list[Question]:
    """Add a passage to the question that it answers, or a new question; one that is there changes nothing."""
    added = list(questions)
    for number, question in enumerate(questions):
        if (question.text, question.corpus_id) == (text, corpus_id):
            references = tuple(dict.fromkeys((*question.references, reference)))
            added[number] = replace(question, references=references)
            return added
    return [*added, Question(text, corpus_id, (reference,))]
