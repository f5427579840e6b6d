"""Late chunking beside ordinary chunking: the vectors that change most, and a question's ranking."""

from collections.abc import Sequence
from html import escape

import numpy as np
import streamlit as st

from engine import Encoder
from engine.documents.document import Chunk, Document
from engine.errors import InputError
from engine.layers.tracing import Array
from engine.retrieval.late import late_vectors, moved, moves
from ui.chunk_settings import Cut
from ui.corpus import index_documents
from ui.current import follow_document, follow_question
from ui.jobs import counting
from ui.look_inside import chunk_table
from ui.text import escape_markdown, show_text
from ui.widgets import choice

MOST_ROWS = 20
CONTEXTS, DEFAULT_CONTEXT = (128, 256, 512), 256


def show_late(documents: Sequence[Document], encoder: Encoder, cut: Cut) -> None:
    """Draw one document's chunks under both kinds of vectors."""
    st.caption(
        "The cost: this model was trained on 128 tokens. Its position table has 512 rows, but longer "
        "contexts are outside what it learnt, and vectors drift towards the topic of the whole stretch. On "
        "the bundled questions, with chunks of 128 tokens, the mean reciprocal rank falls from 0.725 to "
        "0.720 with a context of 256, and to 0.620 with one of 512. Both kinds of chunks are ranked by mean "
        "vectors, whatever pooling and retriever the app uses."
    )
    by_name = {document.name: document for document in documents}
    key = "late-document"
    changed = follow_document(key, list(by_name))
    name = st.selectbox("Document", list(by_name), key=key, persist_state="session", on_change=changed)
    positions = encoder.config.max_positions
    contexts = [context for context in CONTEXTS if context <= positions] or [positions]
    default = DEFAULT_CONTEXT if DEFAULT_CONTEXT in contexts else contexts[-1]
    reason = "Tokens read at once, special tokens included."
    context = choice("Context (tokens)", contexts, "late-context", reason, default)
    document = by_name[name]
    index = index_documents([document], encoder, cut)
    try:
        late = late_of(document, encoder, cut, context)
    except InputError as error:
        st.warning(escape_markdown(str(error)), icon=":material/content_cut:")
        return
    cosines = moved(index.vectors, late)  # (n_chunks,)
    with st.container(horizontal=True):
        st.metric("Chunks", f"{len(cosines):,}", width="content")
        for label, cosine, whose in (
            ("Median cosine", np.median(cosines), "Of a chunk's two vectors."),
            ("Lowest cosine", cosines.min(), "Of the chunk that changes most."),
        ):
            st.metric(label, f"{cosine:.3f}", help=whose, width="content")
    show_moved(index.chunks, cosines)
    show_question(index.chunks, index.vectors, late, encoder)


@st.cache_resource(max_entries=8, show_spinner=False, scope="session")
def late_of(document: Document, _encoder: Encoder, cut: Cut, context: int) -> Array:
    """Embed a document's chunks in their context; cached for the session."""
    chunks = index_documents([document], _encoder, cut).chunks
    with counting("Reading in context", "windows") as show:
        return late_vectors(document, chunks, _encoder, context, show)


def show_moved(chunks: Sequence[Chunk], cosines: Array) -> None:
    """Draw the chunks whose vectors change most."""
    st.header("The chunks that move most")
    for row in np.argsort(cosines, kind="stable")[:3].tolist():
        chunk = chunks[row]
        with st.container(border=True):
            st.caption(f"Chunk {row + 1} · cosine {cosines[row]:.3f}")
            show_text(escape(chunk.text), height=140)


def show_question(chunks: Sequence[Chunk], ordinary: Array, late: Array, encoder: Encoder) -> None:
    """Draw a question's ranking of the chunks by both kinds of vectors."""
    st.header("What a question finds")
    changed = follow_question("late-question")
    question = st.text_input(
        "Question",
        key="late-question",
        max_chars=2000,
        placeholder="What do you want to know?",
        on_change=changed,
    )
    if not question.strip():
        st.info("Type a question to see its ranking by both kinds of vectors, side by side.")
        return
    found = moves(encoder.encode([question])[0], ordinary, late)
    best = found[:MOST_ROWS]
    chunk_table(
        [chunks[move.row] for move in best],
        [
            {
                "Late rank": move.late_rank,
                "Ordinary rank": move.rank,
                "Late cosine": round(move.late_score, 3),
                "Ordinary cosine": round(move.score, 3),
                "Chunk": move.row + 1,
                "Text": chunks[move.row].text[:300],
            }
            for move in best
        ],
        "late",
        f"The {len(best)} best chunks by late vectors, with their ordinary ranks",
        {"Text": st.column_config.TextColumn(width="large")},
    )
