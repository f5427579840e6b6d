"""The sentence check: whether sentences find their own chunk, by their depth in the document."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from engine.evaluation.sentence_check import (
    DEPTHS,
    WORDINGS,
    Probe,
    containment,
    own_chunks,
    sentence_questions,
)
from engine.layers.pooling import pooling_label
from engine.layers.tracing import Array
from engine.retrieval.retrievers import RETRIEVERS
from ui.colours import BLUE, ORANGE
from ui.corpus import session_vectors
from ui.export import show_figure
from ui.figures import legend_below, styled
from ui.questions.search import all_scores
from ui.questions.sets import N_SENTENCES, SENTENCE_CHECK_HELP
from ui.search import Search
from ui.widgets import slider

LABELS = {"verbatim": "word by word", "paraphrase": "reworded"}
COLOURS = {"verbatim": BLUE, "paraphrase": ORANGE}
DEFAULT_K = 4
FEW_SENTENCES = 10  # sentences at one depth


@dataclass(frozen=True)
class Tested:
    """The sentence check's questions, their scores and own chunks, both ``(n_questions, n_chunks)``."""

    probes: tuple[Probe, ...]
    scores: Array
    own: Array

    def shares(self, k: int) -> dict[str, list[float]]:
        """Return, by wording, the share found among the first ``k`` at each depth; NaN without sentences."""
        groups = [f"{probe.wording} {probe.depth}" for probe in self.probes]
        found = containment(self.scores, self.own, groups, k)
        return {
            wording: [found.get(f"{wording} {depth}", float("nan")) for depth in DEPTHS]
            for wording in WORDINGS
        }

    def counts(self) -> list[int]:
        """Return the number of sentences at each depth."""
        return [
            sum(probe.depth == depth and probe.wording == WORDINGS[0] for probe in self.probes)
            for depth in DEPTHS
        ]


def show_sentence_check(search: Search) -> None:
    """Draw how often sentences of the documents find their own chunk."""
    result = st.container()
    reason = "The number of chunks among which that of the sentence is expected (containment@k)."
    k = slider("Among the first", range(1, 21), DEFAULT_K, "sentence-check-k", reason)
    st.caption(SENTENCE_CHECK_HELP)
    tested = checked_sentences(search)
    shares, counts = tested.shares(k), tested.counts()
    with result:
        st.markdown(f"**{summary(shares, k)}**")
        show_figure(
            depth_figure(shares, counts, k),
            "sentence-check",
            {"depth": np.array(DEPTHS), "sentences": np.array(counts)}
            | {wording: np.array(values) for wording, values in shares.items()},
            alt=f"Share of sentences whose own chunk is among the first {k}, by depth and wording",
        )
        few = (
            f" Of fewer than {FEW_SENTENCES}, one sentence moves a bar far."
            if min(counts) < FEW_SENTENCES
            else ""
        )
        st.caption(
            f"{sum(counts)} sentences, each word by word and reworded, from thirds of the documents. "
            f"Searched as the app is now: {RETRIEVERS[search.retriever].label}, pooling "
            f"{pooling_label(search.pooling)}. "
            f"Bars that fall towards the tail say that the ends of documents or of chunks are lost.{few}"
        )


@st.cache_data(
    max_entries=4, show_spinner=False, scope="session", hash_funcs={Search: lambda search: search.ranked}
)
def checked_sentences(search: Search) -> Tested:
    """Ask the sentence check's questions."""
    probes = sentence_questions(search.documents, N_SENTENCES)
    questions = [probe.question for probe in probes]
    texts = tuple(question.text for question in questions)
    scores = all_scores(texts, search.index, search.model, search.retriever, session_vectors())
    return Tested(tuple(probes), scores, own_chunks(questions, search.index.chunks))


def summary(shares: dict[str, list[float]], k: int) -> str:
    """Return the range of the shares in a sentence, with the place of the lowest, if there is only one."""
    found = {
        (wording, depth): share
        for wording, values in shares.items()
        for depth, share in zip(DEPTHS, values, strict=True)
        if not np.isnan(share)
    }
    low, high = min(found.values()), max(found.values())
    if low == 1:
        return f"Every sentence finds its own chunk among the first {k}, the least to expect of a search."
    said = f"{low:.0%}" if low == high else f"{low:.0%} to {high:.0%}"
    least = [place for place, share in found.items() if share == low]
    where = f", least from the {least[0][1]}, {LABELS[least[0][0]]}" if len(least) == 1 < len(found) else ""
    return f"{said} of the sentences find their own chunk among the first {k}{where}."


def depth_figure(shares: dict[str, list[float]], counts: Sequence[int], k: int) -> go.Figure:
    """Bars of the shares, grouped by depth."""
    ticks = [f"{depth}<br>({count})" for depth, count in zip(DEPTHS, counts, strict=True)]
    figure = go.Figure(
        [
            go.Bar(
                x=ticks,
                y=[100 * share for share in values],
                name=LABELS[wording],
                marker_color=COLOURS[wording],
                text=["" if np.isnan(share) else f"{share:.0%}" for share in values],
                textposition="outside",
                cliponaxis=False,
                hovertemplate=f"%{{x}}, {LABELS[wording]}: %{{y:.0f}} %<extra></extra>",
            )
            for wording, values in shares.items()
        ]
    )
    figure.update_yaxes(
        title=f"% found among the first {k}", range=[0, 112], tickvals=[0, 25, 50, 75, 100], showgrid=False
    )
    figure.update_layout(barmode="group", legend=legend_below(0.24))
    return styled(figure, height=320)
