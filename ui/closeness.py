"""How close passages are: cosines in words, and beside what unrelated questions score."""

from collections.abc import Sequence
from math import ceil, isfinite

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from engine.generation.answering import Answer
from engine.layers.tracing import Array
from engine.retrieval.background import closer_than
from ui.export import show_figure
from ui.figures import BLUE, GREY, ORANGE, styled

N_BINS = 48
VERMILION = "#D55E00"  # Okabe and Ito's


def score_words(answer: Answer, rank: int) -> str:
    """Return how close hit number ``rank`` (from 0) is: its cosine, percentile and margin."""
    score, margin = answer.hits[rank].score, answer.margins[rank]
    words = f"cosine {score:.3f} · {closer_than(answer.background.percentile(score))}"
    return words if margin is None else f"{words} · {margin:.3f} ahead of the next"


def chance_words(relevance: float) -> str:
    """Say how many unrelated questions find as much; never fewer of them than it is."""
    return f"of 100 unrelated questions, {ceil(100 - relevance)} find a passage as close"


def show_closeness(answer: Answer) -> None:
    """Draw where the hits lie among what unrelated questions score, and how to read it."""
    with st.expander("How close is close?", icon=":material/straighten:"):
        st.write(
            "A cosine is neither a percentage nor a probability: what counts as a high one differs "
            "from model to model, from pooling to pooling, and with the size of the chunks. So "
            f"{len(answer.background.bests)} questions "
            "of everyday life, unrelated to these documents, are asked of the same index."
        )
        show_figure(
            closeness_figure(answer),
            "closeness",
            {
                "pairs": answer.background.pairs,
                "bests": answer.background.bests,
                "hits": np.array([hit.score for hit in answer.hits]),
            },
            alt="Cosines of random pairs, of the best passages of unrelated questions, and of the hits",
        )
        st.caption(
            f"Random pairs: {len(answer.background.pairs):,} pairs of such a question and a passage. Best "
            "passages: the nearest passage that each of these questions finds. A passage counts as relevant "
            f"right of the dashed line, where at most {100 - answer.min_relevance:.0f} of 100 unrelated "
            "questions find one as close (under Search in the sidebar). The margin is the difference of the "
            "cosines of a passage and the next: where it is small, the order of the two says little."
        )


def closeness_figure(answer: Answer) -> go.Figure:
    """Shares of cosines of random pairs and of best passages, the hits as lines, and the limit dashed."""
    background = answer.background
    scores = [hit.score for hit in answer.hits]
    limit = background.score_of(answer.min_relevance)
    marks = [*scores, limit] if isfinite(limit) else scores
    low = min(float(background.pairs[0]), *marks)
    high = max(float(background.pairs[-1]), float(background.bests[-1]), *marks)
    edges = np.linspace(low, high + 1e-6, N_BINS + 1)  # (n_bins + 1,)
    figure = go.Figure(
        [
            shares(background.pairs, edges, "random pairs", GREY),
            shares(background.bests, edges, "best passages of unrelated questions", ORANGE),
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
        legend={"orientation": "h", "y": -0.32, "yanchor": "top", "x": 0},
    )
    figure.update_xaxes(
        title="cosine", tickformat=".1f", range=[low - 0.02 * (high - low), high + 0.02 * (high - low)]
    )
    figure.update_yaxes(visible=False)
    return styled(figure, height=300)


def lines(scores: Sequence[float], name: str, look: dict[str, str | float]) -> go.Scatter:
    """Upright lines at some cosines, from the bottom to the top."""
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
    """Bars of a distribution, each as high as its share of the highest: the two have different counts."""
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
