"""The geometry of a pooling: how long its vectors are, how they lie, and what changing them is worth."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from engine.documents.document import Chunk
from engine.documents.sentences import sentence_spans
from engine.inspection.geometry import GeometryRow, anisotropy, geometry_rows, norms
from engine.layers.tracing import Array
from ui.export import show_figure
from ui.figures import BLUE, GREY, styled
from ui.pooled_chunks import PooledChunks
from ui.pooling_changes import show_changes
from ui.poolings import LABELS, WHAT
from ui.question_sets import labelled_questions

STAND_INS = 100  # sentences that stand in for questions
MIN_WORDS = 4  # of such a sentence


@dataclass(frozen=True)
class Geometry:
    """What was measured of one pooling.

    ``lengths`` are those of the chunks' vectors before normalisation, ``(n_chunks,)``. The chunks are held,
    since it is they by which it is found again.
    """

    pooled: PooledChunks
    lengths: Array
    rows: tuple[GeometryRow, ...]


@st.fragment
def show_geometry(pooled: PooledChunks) -> None:
    """Draw lengths, anisotropy, and what every change of the vectors does to a search."""
    if len(pooled.chunks) < 2:
        st.info(
            "There is no geometry of fewer than two chunks. Choose a longer document, or smaller chunks.",
            icon=":material/straighten:",
        )
        return
    strategy = st.selectbox(
        "Pooling",
        list(pooled.vectors),
        format_func=LABELS.__getitem__,
        key="geometry-pooling",
        persist_state="session",
        help="Whose vectors are measured. The chunks are read once more for it, since an index keeps vectors "
        "of length 1 alone.",
    )
    st.caption(WHAT[strategy])
    measured = measure(pooled, strategy)
    show_lengths(measured.lengths)
    show_anisotropy(anisotropies(pooled), strategy)
    show_changes(measured.rows, len(pooled.chunks))


@st.cache_resource(max_entries=6, show_spinner=False, scope="session", hash_funcs={PooledChunks: id})
def measure(pooled: PooledChunks, strategy: str) -> Geometry:
    """Measure one pooling, with progress."""
    bar, limit = st.progress(0.0, "Reading the chunks…"), pooled.max_tokens
    questions, relevant = labelled_questions(pooled.chunks)
    texts = [question.text for question in questions] or stand_ins(pooled.chunks)

    def show_read(done: int, total: int) -> None:
        bar.progress(0.9 * done / total, f"Reading again, lengths kept: {done:,} of {total:,} texts")

    def show_search(done: int, total: int) -> None:
        bar.progress(0.9 + 0.1 * done / total, f"Searching changed vectors: {done} of {total} changes")

    try:
        every = [*(chunk.text for chunk in pooled.chunks), *texts]
        raw = pooled.encoder.encode(every, strategy, normalize=False, max_tokens=limit, on_progress=show_read)
        chunks, asked = raw[: len(pooled.chunks)], raw[len(pooled.chunks) :]
        rows = geometry_rows(chunks, asked, relevant if questions else None, show_search)
        return Geometry(pooled, norms(chunks), tuple(rows))
    finally:
        bar.empty()


def stand_ins(chunks: Sequence[Chunk]) -> list[str]:
    """Return sentences of chunks, spread evenly; the chunks themselves where they hold none."""
    sentences = [
        chunk.text[start:end].strip() for chunk in chunks for start, end in sentence_spans(chunk.text)
    ]
    distinct = list(dict.fromkeys(sentence for sentence in sentences if len(sentence.split()) >= MIN_WORDS))
    texts = distinct or [chunk.text for chunk in chunks]
    places = np.linspace(0, len(texts) - 1, min(STAND_INS, len(texts))).astype(int)
    return [texts[place] for place in places]


@st.cache_resource(max_entries=2, show_spinner=False, scope="session", hash_funcs={PooledChunks: id})
def anisotropy_of(pooled: PooledChunks) -> tuple[PooledChunks, dict[str, float]]:
    """Measure the mean cosine of two chunks under every pooling; the chunks are held with it."""
    return pooled, {strategy: anisotropy(vectors) for strategy, vectors in pooled.vectors.items()}


def anisotropies(pooled: PooledChunks) -> dict[str, float]:
    """Return the mean cosine of two chunks under every pooling."""
    return anisotropy_of(pooled)[1]


def show_lengths(lengths: Array) -> None:
    """Draw how long the vectors are before they are made alike."""
    least, median, most = (float(value) for value in np.quantile(lengths, [0, 0.5, 1]))
    st.subheader("How long the vectors are")
    times = f", {most / least:.1f} times the shortest" if least > 0 else ""
    st.write(
        f"Before normalisation, the {len(lengths):,} chunks have lengths from {least:.2f} to {most:.2f}"
        f"{times}; half are below {median:.2f}. A cosine does not see length. An inner product multiplies by "
        "it, so of two chunks that point alike towards the question, the longer one wins."
    )
    figure = go.Figure(
        go.Histogram(
            x=lengths.astype(np.float64),
            nbinsx=40,
            marker={"color": BLUE, "line": {"width": 0.5, "color": GREY}},
            hovertemplate="length %{x}: %{y} chunks<extra></extra>",
        )
    )
    figure.update_xaxes(title="length before normalisation (no unit)")
    figure.update_yaxes(title="chunks")
    words = f"Histogram of vector lengths: {least:.2f} to {most:.2f}, median {median:.2f}."
    show_figure(styled(figure, height=240), "geometry-lengths", {"lengths": lengths}, words)


def show_anisotropy(means: dict[str, float], strategy: str) -> None:
    """Draw the mean cosine of two chunks, of every pooling, the chosen one in colour."""
    st.subheader("How narrow the cone is")
    order = sorted(means, key=lambda name: round(means[name], 4))  # poolings that differ by rounding tie
    st.write(
        f"Two different chunks have a cosine of **{means[strategy]:.2f}** on average. Vectors in all "
        "directions alike would have 0; the nearer to 1, the narrower the cone that all of them lie in, and "
        "the less of a cosine says anything about the texts. So cosines of two poolings, or a threshold on "
        f"them, cannot be compared: here the average goes from {means[order[0]]:.2f} ({LABELS[order[0]]}) to "
        f"{means[order[-1]]:.2f} ({LABELS[order[-1]]})."
    )
    figure = go.Figure(
        go.Bar(
            x=[means[name] for name in order],
            y=[LABELS[name] for name in order],
            orientation="h",
            marker_color=[BLUE if name == strategy else GREY for name in order],
            text=[f"{means[name]:.2f}" for name in order],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{y}: %{x:.3f}<extra></extra>",
        )
    )
    ends = [1.2 * min(0.0, *means.values()), 1.2 * max(0.0, *means.values())]  # room for the numbers
    figure.update_xaxes(title="mean cosine of two chunks", range=ends)
    figure.update_yaxes(automargin=True)
    words = "; ".join(f"{LABELS[name]}: {means[name]:.2f}" for name in order)
    arrays = {"pooling": np.array(order), "mean_cosine": np.array([means[name] for name in order])}
    show_figure(styled(figure, height=60 + 26 * len(order)), "geometry-anisotropy", arrays, words)
