"""The geometry of a pooling: lengths of its vectors, anisotropy, and the effect of transforming them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from engine.documents.document import Chunk
from engine.documents.sentences import sentence_spans
from engine.evaluation.questions import Question
from engine.inspection.vectors.geometry import GeometryRow, anisotropy, geometry_rows
from engine.layers.pooling import POOLINGS, pooling_label
from engine.layers.tracing import Array
from engine.wording import counted
from pages.improve.poolings.changes import show_changes, show_smaller
from pages.improve.poolings.pooled_chunks import PooledChunks
from ui.colours import BLUE, GREY
from ui.export import show_figure
from ui.figures import numbered_bars, styled
from ui.progress import counting
from ui.questions.sets import labelled_questions
from ui.widgets import chapters, fragment

STAND_INS = 100  # sentences that stand in for questions
MIN_WORDS = 4  # in such a sentence
CHAPTERS = ("Length", "Anisotropy", "Changed vectors", "Smaller vectors")
LENGTHS, CONE, CHANGES, SMALLER = CHAPTERS


@dataclass(frozen=True)
class Geometry:
    """The measurements of one pooling.

    ``lengths`` are those of the chunks' vectors before normalisation, ``(n_chunks,)``. The chunks are kept
    alive because the cache is keyed by their identity.
    """

    pooled: PooledChunks
    lengths: Array
    rows: tuple[GeometryRow, ...]


@fragment
def show_geometry(pooled: PooledChunks) -> None:
    """Draw lengths, anisotropy, or the effect of each transform of the vectors on a search."""
    if len(pooled.chunks) < 2:
        st.info(
            "There is no geometry of fewer than two chunks. Choose a longer document, or smaller chunks.",
            icon=":material/straighten:",
        )
        return
    strategy = st.selectbox(
        "Pooling",
        list(pooled.vectors),
        format_func=pooling_label,
        key="geometry-pooling",
        persist_state="session",
        help="The pooling whose vectors are found. The chunks are read again for it, since an index keeps "
        "only vectors of length 1.",
    )
    st.caption(POOLINGS[strategy].help)
    found = geometry_of(pooled, strategy, *labelled_questions(pooled.documents, pooled.chunks))
    chapter = chapters(CHAPTERS, "geometry-chapter")
    if chapter == LENGTHS:
        show_lengths(found.lengths)
    elif chapter == CONE:
        show_anisotropy(anisotropies(pooled), strategy)
    elif chapter == CHANGES:
        show_changes(found.rows, len(pooled.chunks))
    else:
        show_smaller(found.rows, len(pooled.chunks))


@st.cache_resource(max_entries=6, show_spinner=False, scope="session", hash_funcs={PooledChunks: id})
def geometry_of(
    pooled: PooledChunks, strategy: str, questions: tuple[Question, ...], _relevant: Array
) -> Geometry:
    """Measure one pooling, with a progress bar; sentences stand in where no question is labelled."""
    limit = pooled.max_tokens
    texts = [question.text for question in questions] or stand_ins(pooled.chunks)
    held = [chunk.text for chunk in pooled.chunks]
    raw = {"pooling": strategy, "normalize": False, "max_tokens": limit}
    with counting("Reading again, keeping lengths", "texts") as show:
        chunks = pooled.encoder.encode_document(held, **raw, on_progress=show)
    asked = pooled.encoder.encode_query(texts, **raw)
    with counting("Searching transformed vectors", "transforms") as show:
        rows = geometry_rows(chunks, asked, _relevant if questions else None, show)
    return Geometry(pooled, np.linalg.norm(chunks, axis=1), tuple(rows))


def stand_ins(chunks: Sequence[Chunk]) -> list[str]:
    """Return evenly spaced sentences of the chunks, or the chunks themselves where there are none."""
    sentences = [
        chunk.text[start:end].strip() for chunk in chunks for start, end in sentence_spans(chunk.text)
    ]
    distinct = list(dict.fromkeys(sentence for sentence in sentences if len(sentence.split()) >= MIN_WORDS))
    texts = distinct or [chunk.text for chunk in chunks]
    places = np.linspace(0, len(texts) - 1, min(STAND_INS, len(texts))).astype(int)
    return [texts[place] for place in places]


@st.cache_resource(max_entries=2, show_spinner=False, scope="session", hash_funcs={PooledChunks: id})
def anisotropy_of(pooled: PooledChunks) -> tuple[PooledChunks, dict[str, float]]:
    """Measure the mean cosine of two chunks under every pooling; returns the chunks to keep them alive."""
    return pooled, {strategy: anisotropy(vectors) for strategy, vectors in pooled.vectors.items()}


def anisotropies(pooled: PooledChunks) -> dict[str, float]:
    """Return the mean cosine of two chunks under every pooling."""
    return anisotropy_of(pooled)[1]


def show_lengths(lengths: Array) -> None:
    """Draw the lengths of the vectors before normalisation."""
    least, median, most = (float(value) for value in np.quantile(lengths, [0, 0.5, 1]))
    st.header("How long the vectors are")
    times = f", {most / least:.1f} times the shortest" if least > 0 else ""
    st.write(
        f"Before normalisation, the lengths of {counted(len(lengths), 'chunk')} lie from {least:.2f} to "
        f"{most:.2f}{times}; half are below {median:.2f}. A cosine does not see length. An inner product "
        "multiplies by it, so of two chunks in the same direction from the question, the longer one wins."
    )
    figure = go.Figure(
        go.Histogram(
            x=lengths.astype(np.float64),
            nbinsx=40,
            marker={"color": BLUE, "line": {"width": 0.5, "color": GREY}},
            hovertemplate="length %{x}, chunks: %{y}<extra></extra>",
        )
    )
    figure.update_xaxes(title="length before normalisation (no unit)")
    figure.update_yaxes(title="chunks")
    words = f"Histogram of vector lengths: {least:.2f} to {most:.2f}, median {median:.2f}."
    show_figure(styled(figure, height=240), "geometry-lengths", {"lengths": lengths}, words)


def show_anisotropy(means: dict[str, float], strategy: str) -> None:
    """Draw the mean cosine of two chunks under every pooling, the chosen one in colour."""
    st.header("How narrow the cone is")
    order = sorted(means, key=lambda name: round(means[name], 4))  # poolings that differ by rounding tie
    st.write(
        f"Two different chunks have a cosine of **{means[strategy]:.2f}** on average. Vectors spread "
        "evenly over all directions would have 0; the nearer to 1, the narrower the cone that contains all "
        "of them, and the less a cosine says about the texts. So cosines of two poolings, or a threshold on "
        f"them, cannot be compared: here the average goes from {means[order[0]]:.2f} "
        f"({pooling_label(order[0])}) to {means[order[-1]]:.2f} ({pooling_label(order[-1])})."
    )
    figure = numbered_bars(
        [means[name] for name in order],
        [pooling_label(name) for name in order],
        [f"{means[name]:.2f}" for name in order],
        [BLUE if name == strategy else GREY for name in order],
        "%{y}: %{x:.3f}",
    )
    ends = [1.2 * min(0.0, *means.values()), 1.2 * max(0.0, *means.values())]  # room for the numbers
    figure.update_xaxes(title="mean cosine of two chunks", range=ends)
    figure.update_yaxes(automargin=True)
    words = "; ".join(f"{pooling_label(name)}: {means[name]:.2f}" for name in order)
    arrays = {"pooling": np.array(order), "mean_cosine": np.array([means[name] for name in order])}
    show_figure(styled(figure, height=60 + 26 * len(order)), "geometry-anisotropy", arrays, words)
