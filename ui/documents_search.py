"""All chunks at once: where their vectors lie, and what ails the corpus."""

from collections.abc import Sequence

import streamlit as st

from engine import Encoder
from engine.documents.document import Document
from engine.layers.tracing import Array
from ui.chunk_settings import Cut
from ui.corpus import bundled_names, index_documents
from ui.document_map import show_map
from ui.health import show_health
from ui.question_sets import bundled_questions

MAX_QUESTIONS = 200
EXAMPLE_QUESTIONS = 12  # of the bundled ones, spread evenly over the documents


def show_corpus_map(documents: Sequence[Document], encoder: Encoder, cut: Cut) -> None:
    """Draw the map of all chunks, with a question on it where there is one."""
    st.write("Every chunk is a point; near points have similar vectors. Select some to read them.")
    index = index_documents(documents, encoder, cut)
    question = st.text_input(
        "Question (optional)",
        key="map-question",
        max_chars=2000,
        placeholder="Colours the chunks by how near they are to it",
    )
    vector = encoder.encode([question], max_tokens=cut.max_tokens)[0] if question.strip() else None
    show_map(index.chunks, index.vectors, question, vector)


def show_corpus_health(documents: Sequence[Document], encoder: Encoder, cut: Cut) -> None:
    """Draw what ails the corpus, and what the rankings of some questions would be without it."""
    st.write(
        "Duplicates push each other's neighbours out of the ranking, hubs answer every question, empty and "
        "repeated chunks answer none. Nothing is removed here: see first what would change."
    )
    index = index_documents(documents, encoder, cut)
    questions = question_lines(documents)
    vectors = question_vectors(tuple(questions), encoder, cut.max_tokens) if questions else None
    show_health(index.chunks, index.vectors, questions, vectors, cut.max_tokens)


def question_lines(documents: Sequence[Document]) -> list[str]:
    """Draw the questions whose rankings are previewed; return them."""
    names = {document.name for document in documents}
    example = "\n".join(example_questions()) if names & bundled_names() else ""
    with st.expander("Questions for the previews", icon=":material/quiz:"):
        text = st.text_area(
            "One a line",
            example,
            key="health-questions",
            height=180,
            max_chars=50_000,
            help=f"At most {MAX_QUESTIONS} are used. Those given first are some of the bundled ones.",
        )
    return [line.strip() for line in text.splitlines() if line.strip()][:MAX_QUESTIONS]


def example_questions() -> list[str]:
    """Return some of the labelled questions about the bundled documents."""
    questions = [question.text for question in bundled_questions()]
    return questions[:: max(1, len(questions) // EXAMPLE_QUESTIONS)][:EXAMPLE_QUESTIONS]


@st.cache_data(show_spinner="Reading the questions…", max_entries=8, scope="session")
def question_vectors(questions: tuple[str, ...], _encoder: Encoder, max_tokens: int) -> Array:
    """Embed questions once: ``(n_questions, d_model)``."""
    return _encoder.encode(list(questions), max_tokens=max_tokens)
