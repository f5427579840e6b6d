"""A map of all chunks, coloured by document, group or nearness to a question; selected ones are listed."""

from collections.abc import Sequence
from html import escape

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from engine.documents.document import Chunk, Document
from engine.inspection.vectors.chunk_map import (
    MAX_CLUSTERS,
    MIN_CHUNKS,
    Projection,
    cluster,
    cluster_words,
    default_clusters,
    pca_projection,
    question_cosines,
    umap_projection,
)
from engine.layers.tracing import Array
from engine.retrieval.embedding_model import Model
from pages.documents.chunk_map_figure import (
    MAP_CONFIG,
    document_groups,
    finish,
    group_figure,
    question_trace,
    rows_of,
    similarity_trace,
)
from ui.chunk_settings import Cut
from ui.corpus import content_hash, index_documents, query_of
from ui.current import follow_question
from ui.export import show_save
from ui.look_inside import show_look_inside
from ui.models import load_encoder
from ui.setting_values import settings_in_use
from ui.text import escape_html, show_text
from ui.widgets import MOST_QUESTION, check_typed, choice, fragment

MAX_POINTS = 10_000
MAX_LISTED = 10  # of the selected chunks
SEED = 0
PCA, UMAP = "PCA", "UMAP"
BY_DOCUMENT, BY_CLUSTER, BY_SIMILARITY = "Document", "Group", "Nearness to the question"


def show_corpus_map(documents: Sequence[Document], model: Model, cut: Cut) -> None:
    """Draw the map of all chunks, with a question if one is typed."""
    st.write("Every chunk is a point; near points have similar vectors. Select some to read them.")
    index = index_documents(documents, model, cut, settings_in_use(load_encoder())["pooling"])
    changed = follow_question("map-question")
    question = st.text_input(
        "Question (optional)",
        key="map-question",
        on_change=changed,
        placeholder="Colours the chunks by their cosine with it",
    )
    vector = None
    if check_typed(question, MOST_QUESTION).strip():
        vector = query_of(question, index, model).vector
    show_map(index.chunks, index.vectors, question, vector)


@fragment
def show_map(
    chunks: Sequence[Chunk], vectors: Array, question: str = "", question_vector: Array | None = None
) -> None:
    """Draw all chunks as points by their vectors ``(n_chunks, d_model)``, and list the selected ones below.

    The chunks can be coloured by a question's vector ``(d_model,)``.
    """
    if len(chunks) < MIN_CHUNKS:
        st.info(
            f"A map needs {MIN_CHUNKS} chunks or more: add a document, or make the chunks smaller.",
            icon=":material/scatter_plot:",
        )
        return
    rows = np.linspace(0, len(chunks) - 1, min(len(chunks), MAX_POINTS)).round().astype(int)
    shown = [chunks[row] for row in rows]
    vectors = vectors[rows]
    method, colour_by, n_clusters = map_controls(len(shown), question_vector is not None)
    content = content_hash(shown, vectors)
    plane = plane_of(content, method, vectors)
    cosines = None if question_vector is None else question_cosines(vectors, question_vector)
    if colour_by == BY_SIMILARITY and cosines is not None:
        figure = go.Figure(similarity_trace(plane.points, shown, cosines))
        groups = None
    elif colour_by == BY_CLUSTER:
        groups = clusters_of(content, n_clusters, vectors)
        words = cluster_words([chunk.text for chunk in shown], groups)
        names = [", ".join(of_group) or f"group {number}" for number, of_group in enumerate(words, start=1)]
        figure = group_figure(plane.points, shown, groups, names)
    else:
        groups, names = document_groups(shown)
        figure = group_figure(plane.points, shown, groups, names)
    if question_vector is not None and (star := plane.project(question_vector)) is not None:
        figure.add_trace(question_trace(star, question))
    finish(figure, plane)
    key = f"map-figure-{content[:16]}-{method}-{colour_by}-{n_clusters}"
    picked = st.plotly_chart(
        figure,
        on_select="rerun",
        selection_mode=("points", "box", "lasso"),
        config=MAP_CONFIG,
        key=key,
        alt=f"Map of {len(shown):,} chunks by {method}, coloured by {colour_by.lower()}.",
    )
    show_save(figure, "map-of-chunks")
    show_notes(plane, len(shown), len(chunks), question_vector is not None)
    show_selected(shown, rows_of(figure, picked.selection.points), cosines)


def map_controls(n_chunks: int, has_question: bool) -> tuple[str, str, int]:
    """Draw the settings; return the projection, the meaning of colours, and the number of groups."""
    layout, colours, groups = st.columns(3)
    method = choice(
        "Layout",
        (PCA, UMAP),
        "map-method",
        "PCA is a linear projection: it keeps the two directions in which the chunks differ most, and "
        "says how much that is. UMAP bends the space so that neighbours stay neighbours; it takes some "
        "seconds, and distances between far groups mean little.",
        place=layout,
    )
    ways = (BY_DOCUMENT, BY_CLUSTER, BY_SIMILARITY) if has_question else (BY_DOCUMENT, BY_CLUSTER)
    colour_by = colours.selectbox(
        "Colour by",
        ways,
        key=f"map-colour-{has_question}",
        help="Groups are found by k-means on the vectors, not on the map. With a question, colours can show "
        "the cosine of each chunk with it.",
    )
    n_clusters = default_clusters(n_chunks)
    if colour_by == BY_CLUSTER:
        n_clusters = groups.slider(
            "Groups",
            2,
            min(MAX_CLUSTERS, n_chunks),
            n_clusters,
            key=f"map-clusters-{n_chunks}",
            help="The default, the square root of half the number of chunks and at most "
            f"{MAX_CLUSTERS}, is a rule of thumb, not a property of the documents.",
        )
    return method, colour_by, n_clusters


@st.cache_data(show_spinner=False, max_entries=8, scope="session")
def plane_of(content: str, method: str, _vectors: Array) -> Projection:
    """Lay vectors out once; ``content`` is their hash."""
    if method == PCA:
        return pca_projection(_vectors)
    with st.spinner("Laying out by UMAP; the first time also compiles it…", show_time=True):
        return umap_projection(_vectors, SEED)


@st.cache_data(show_spinner="Finding groups…", max_entries=16, scope="session")
def clusters_of(content: str, n_clusters: int, _vectors: Array) -> Array:
    """Group vectors once; ``content`` is their hash."""
    return cluster(_vectors, n_clusters, SEED)


def show_notes(plane: Projection, n_shown: int, n_chunks: int, has_question: bool) -> None:
    """Draw the limits of the map in words."""
    if plane.explained is None:
        note = "Near neighbours stay together; the distance between far groups, and their size, mean little."
        if has_question:
            note += " UMAP cannot place a vector outside the corpus: only PCA shows the question as a star."
    else:
        note = (
            f"Together the axes explain {plane.explained.sum():.0%} of the variance: points far apart are "
            "different, points close together need not be alike."
        )
    if n_shown < n_chunks:
        note += f" {n_shown:,} of {n_chunks:,} chunks are shown, spread evenly."
    st.caption(note)


def show_selected(chunks: Sequence[Chunk], rows: Sequence[int], cosines: Array | None) -> None:
    """List the selected chunks, those nearest to the question first if there is one."""
    if not rows:
        st.caption("Click a point, or draw a box or a lasso around several, to read their text here.")
        return
    rows = list(rows) if cosines is None else sorted(rows, key=lambda row: -cosines[row])
    more = f", the first {MAX_LISTED} shown" if len(rows) > MAX_LISTED else ""
    st.markdown(f"**{len(rows):,} selected**{more}")
    for row in rows[:MAX_LISTED]:
        chunk = chunks[row]
        page = "" if chunk.page is None else f" · page {chunk.page}"
        near = "" if cosines is None else f" · cosine {cosines[row]:.3f}"
        headings = "".join(f" › {escape(heading)}" for heading in chunk.headings)
        with st.container(border=True):
            place = f"{chunk.start:,}–{chunk.end:,}{page} · {chunk.n_tokens:,} tokens{near}"
            show_text(f"<b>{escape_html(chunk.document)}</b>{headings}\n<small>{place}</small>")
            show_text(escape(chunk.text.strip()), height=180)
            show_look_inside(chunk, f"map-{row}")
