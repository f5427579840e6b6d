"""Late chunking compared with ordinary chunking: the vectors that change most, and a question's ranking."""

from collections.abc import Sequence
from dataclasses import replace
from html import escape

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from engine import Encoder
from engine.documents.document import Chunk, Document
from engine.errors import InputError
from engine.layers.tracing import Array
from engine.retrieval.late import late_vectors, rank_changes, vector_cosines
from engine.weights.catalog import DEFAULT_ENCODER
from engine.weights.fetch import Progress
from engine.wording import counted
from ui.background import in_background
from ui.chunk_settings import Cut
from ui.colours import BLUE, ORANGE
from ui.corpus import index_documents
from ui.current import document_choice, follow_question
from ui.export import show_figure
from ui.figures import chunk_hover, styled
from ui.look_inside import chunk_table
from ui.models import embedding_seconds
from ui.text import escape_markdown, show_text
from ui.widgets import MOST_QUESTION, check_typed, choice

MAX_ROWS_SHOWN = 20
RANKED = "Both kinds of chunks are ranked by mean vectors, whatever pooling and retriever the app uses."
HOVER_CHARACTERS = 160
CONTEXTS, DEFAULT_CONTEXT = (128, 256, 512, 2048, 8192), 256


def show_late(documents: Sequence[Document], encoder: Encoder, cut: Cut) -> None:
    """Draw one document's chunks under both kinds of vectors."""
    result = st.container()
    left, right = st.columns([2, 1])
    document = document_choice(documents, "late-document", place=left)
    positions = encoder.config.max_positions
    contexts = [context for context in CONTEXTS if context <= positions] or [positions]
    default = DEFAULT_CONTEXT if DEFAULT_CONTEXT in contexts else contexts[-1]
    reason = "Tokens read at once, special tokens included."
    context = choice("Context (tokens)", contexts, "late-context", reason, default, place=right)
    left_out = " The model's prompts are left out." if encoder.prompts.in_search else ""
    st.caption(f"{cost_words(encoder)} {RANKED}{left_out}")
    cut = replace(cut, prompts="none")
    index = index_documents([document], encoder, cut, "mean")
    n_tokens = sum(chunk.n_tokens for chunk in index.chunks)
    # Windows overlap by half, and whole ones take less a token; attention grows with their length.
    seconds = 1.3 * embedding_seconds(encoder, n_tokens) * (1 + context / (6 * encoder.config.d_model))

    def read(on_progress: Progress) -> Array:
        return late_vectors(document, index.chunks, encoder, context, on_progress)

    try:
        key = (document, cut, context)
        late = in_background("late", "Read it in context", key, seconds, "inside/late", read)
    except InputError as error:
        result.warning(escape_markdown(str(error)), icon=":material/content_cut:")
        return
    if late is None:
        return
    cosines = vector_cosines(index.vectors, late)  # (n_chunks,)
    with result:
        st.markdown(f"**{escape_markdown(headline(document.name, cosines, context))}**")
        show_figure(
            moved_figure(index.chunks, cosines),
            "late-cosines",
            f"Cosine of each of {counted(len(cosines), 'chunk')} with its own vector in context",
        )
    st.header("The chunks that move most")
    for row in np.argsort(cosines, kind="stable")[:3].tolist():
        with st.container(border=True):
            st.caption(f"Chunk {row + 1} · cosine {cosines[row]:.3f}")
            show_text(escape(index.chunks[row].text), height=140)
    show_question(index.chunks, index.vectors, late, encoder)


def cost_words(encoder: Encoder) -> str:
    """Say what a long context costs with an encoder."""
    if encoder.name == DEFAULT_ENCODER:
        return (
            "The cost: this model was trained on 128 tokens. Its position table has 512 rows, but longer "
            "contexts are outside what it learnt, and vectors drift towards the topic of the whole stretch. "
            "On the bundled questions, with chunks of 128 tokens, the mean reciprocal rank falls from 0.725 "
            "to 0.720 with a context of 256, and to 0.620 with one of 512."
        )
    if encoder.is_causal:
        return (
            "The cost: vectors drift towards the topic of the whole stretch. This model reads left to right, "
            "so that a chunk takes in the text before it, never the text behind it."
        )
    return (
        "The cost: vectors drift towards the topic of the whole stretch, the more so in contexts longer than "
        "the texts that the model was trained on."
    )


def headline(name: str, cosines: Array, context: int) -> str:
    """Say in a sentence how far the chunks of a document move, from their cosines ``(n_chunks,)``."""
    lowest = cosines.min()
    if len(cosines) == 1:
        return (
            f"Read in a context of {context:,} tokens, the only chunk of {name} has a vector with a cosine "
            f"of {lowest:.3f} to that of the chunk read by itself."
        )
    return (
        f"Read in a context of {context:,} tokens, the {len(cosines):,} chunks of {name} have vectors with a "
        f"median cosine of {np.median(cosines):.3f} to those of chunks read by themselves; chunk "
        f"{cosines.argmin() + 1:,} changes most, to {lowest:.3f}."
    )


def moved_figure(chunks: Sequence[Chunk], cosines: Array) -> go.Figure:
    """Points of the cosines ``(n_chunks,)``, in the order of the chunks; the lowest is marked."""
    lowest = np.arange(len(cosines)) == cosines.argmin()
    figure = go.Figure(
        go.Scatter(
            x=np.arange(1, len(cosines) + 1),
            y=cosines,
            mode="markers",
            marker={"size": np.where(lowest, 12, 8), "color": np.where(lowest, ORANGE, BLUE), "opacity": 1},
            hovertext=[
                chunk_hover(chunk, HOVER_CHARACTERS, cosine)
                for chunk, cosine in zip(chunks, cosines.tolist(), strict=True)
            ],
            hovertemplate="chunk %{x}<br>%{hovertext}<extra></extra>",
        )
    )
    figure.update_xaxes(title="chunk, in the order of the text", dtick=1 if len(chunks) <= 12 else None)
    figure.update_yaxes(title="cosine with the chunk by itself", autorangeoptions_clipmax=1.02)
    figure.update_layout(hoverlabel={"align": "left"})
    return styled(figure, height=260)


def show_question(chunks: Sequence[Chunk], ordinary: Array, late: Array, encoder: Encoder) -> None:
    """Draw a question's ranking of the chunks by both kinds of vectors."""
    st.header("What a question finds")
    changed = follow_question("late-question")
    question = st.text_input(
        "Question", key="late-question", placeholder="What do you want to know?", on_change=changed
    )
    if not check_typed(question, MOST_QUESTION).strip():
        st.info("Type a question to see its ranking by both kinds of vectors, side by side.")
        return
    found = rank_changes(encoder.encode([question], "mean", prompt_name="")[0], ordinary, late)
    best = found[:MAX_ROWS_SHOWN]
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
        "The best chunks by late vectors, with their ordinary ranks",
        {"Text": st.column_config.TextColumn(width="large")},
    )
