"""The cosines of passages in words, and compared with the scores of unrelated questions."""

from collections.abc import Sequence
from math import isfinite

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from engine.generation.answer import Retrieval
from engine.layers.tracing import Array
from engine.retrieval.relevance import closer_than
from ui.colours import BLUE, GREY, ORANGE, VERMILION
from ui.export import show_figure
from ui.figures import legend_below, styled

N_BINS = 48


def score_words(found: Retrieval, rank: int) -> str:
    """Return the cosine, percentile and margin of hit number ``rank``, counted from 0, in words."""
    score, margin = found.hits[rank].score, found.margins[rank]
    words = f"cosine {score:.3f} · {closer_than(found.null_scores, score)}"
    return words if margin is None else f"{words} · {margin:.3f} ahead of the next"


def show_closeness(found: Retrieval) -> None:
    """Draw the hits among the scores of unrelated questions, with an explanation."""
    with st.expander("How close is close?", icon=":material/straighten:"):
        st.write(
            "A cosine is neither a percentage nor a probability: a high one depends on the model, on the "
            "pooling and on the size of the chunks. So "
            f"{len(found.null_scores.bests)} questions "
            "of everyday life, unrelated to these documents, are asked of the same index."
        )
        show_figure(
            closeness_figure(found),
            "closeness",
            alt="Cosines of random pairs, of the best passages of unrelated questions, and of the hits",
        )
        st.caption(
            f"Random pairs: {len(found.null_scores.pairs):,} pairs of such a question and a passage. Best "
            "passages: the nearest passage that each of these questions finds. A passage counts as relevant "
            f"right of the dashed line, where at most {100 - found.min_relevance:.0f} of 100 unrelated "
            "questions find one as close (under Search in the sidebar). The margin is the difference of the "
            "cosines of a passage and the next: where it is small, the order of the two says little."
        )


def closeness_figure(found: Retrieval) -> go.Figure:
    """Histograms of the cosines of random pairs and of best passages, with hits and limit as lines."""
    null_scores = found.null_scores
    scores = [hit.score for hit in found.hits]
    limit = null_scores.score_of(found.min_relevance)
    marks = [*scores, limit] if isfinite(limit) else scores
    low = min(float(null_scores.pairs[0]), *marks)
    high = max(float(null_scores.pairs[-1]), float(null_scores.bests[-1]), *marks)
    edges = np.linspace(low, high + 1e-6, N_BINS + 1)  # (n_bins + 1,)
    figure = go.Figure(
        [
            shares(null_scores.pairs, edges, "random pairs", GREY),
            shares(null_scores.bests, edges, "best passages of unrelated questions", ORANGE),
            lines(scores, "your passages", {"color": BLUE, "width": 2.5}),
            lines(
                marks[len(scores) :], "relevant from here", {"color": VERMILION, "width": 2, "dash": "dash"}
            ),
        ]
    )
    figure.update_layout(
        barmode="overlay",
        bargap=0,
        yaxis2={"overlaying": "y", "range": [0, 1], "visible": False},
        legend=legend_below(0.32),
    )
    figure.update_xaxes(
        title="cosine", tickformat=".1f", range=[low - 0.02 * (high - low), high + 0.02 * (high - low)]
    )
    figure.update_yaxes(visible=False)
    return styled(figure, height=300)


def lines(scores: Sequence[float], name: str, look: dict[str, str | float]) -> go.Scatter:
    """Vertical lines at cosines, over the whole height."""
    return go.Scatter(
        x=[x for score in scores for x in (score, score, None)],
        y=[0, 1, None] * len(scores),
        yaxis="y2",
        mode="lines",
        line=look,
        name=name,
        hovertemplate=f"{name}: cosine %{{x:.3f}}<extra></extra>",
    )


def shares(scores: Array, edges: Array, name: str, colour: str) -> go.Bar:
    """Bars of a histogram relative to its highest bar, as the two distributions differ in size."""
    counts, _ = np.histogram(scores, edges)
    return go.Bar(
        x=(edges[:-1] + edges[1:]) / 2,
        y=counts / max(counts.max(), 1),
        customdata=counts,
        marker={"color": colour, "line": {"width": 0}},
        opacity=0.65,
        name=name,
        hovertemplate=f"%{{customdata:,}} {name}<br>around cosine %{{x:.2f}}<extra></extra>",
    )
