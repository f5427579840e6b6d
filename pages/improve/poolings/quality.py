"""The quality of each pooling on labelled questions."""

import numpy as np
import streamlit as st
from streamlit.column_config import NumberColumn, ProgressColumn, TextColumn

from engine.evaluation.metrics import METRICS, at_depth
from engine.evaluation.questions import Question
from engine.inspection.pooling.pooling_search import PoolingQuality, pooling_quality
from engine.layers.pooling import pooling_label
from engine.layers.tracing import Array
from pages.improve.poolings.pooled_chunks import DIGESTS, PooledChunks
from ui.questions.sets import LABEL_SOME
from ui.tables import show_table

# It has the direction of the mean, and so the same cosines.
RANKS_AS_MEAN = "mean_sqrt_len_tokens"
HIT_K = 5
TRUST = "Which ranking to trust"
MRR, HIT = METRICS["mrr"].label, at_depth(METRICS["hit_rate@k"].label, HIT_K)


def distinct(pooled: PooledChunks) -> list[str]:
    """Return the strategies whose rankings can differ."""
    return [strategy for strategy in pooled.vectors if strategy != RANKS_AS_MEAN]


@st.cache_resource(
    max_entries=2,
    show_spinner="Searching the labelled questions in every way…",
    scope="session",
    hash_funcs=DIGESTS,
)
def labelled_quality(
    pooled: PooledChunks, questions: tuple[Question, ...], _relevant: Array
) -> PoolingQuality | None:
    """Search labelled questions; None if there are none."""
    if not questions:
        return None
    texts = [question.text for question in questions]
    vectors = pooled.encoder.encode_as("query", texts, distinct(pooled), max_tokens=pooled.max_tokens)
    return pooling_quality(vectors, pooled.vectors, _relevant, HIT_K)


def show_quality(quality: PoolingQuality | None) -> None:
    """Draw how often each strategy finds a right passage."""
    st.header(TRUST)
    if quality is None:
        st.info(
            "There are no labelled questions about these documents, so no ranking can be called better here. "
            f"To compare: {LABEL_SOME}."
        )
        return
    mrr, hits = quality.reciprocal_ranks.mean(axis=1), quality.hits.mean(axis=1)
    behind = quality.reciprocal_ranks[mrr.argmax()] - quality.reciprocal_ranks  # (n_strategies, n_questions)
    margins = 1.96 * behind.std(axis=1) / np.sqrt(behind.shape[1])
    show_table(
        [
            {
                "Strategy": pooling_label(quality.strategies[row]),
                MRR: mrr[row],
                HIT: hits[row],
                "Behind the best": f"{behind[row].mean():.3f} ± {margins[row]:.3f}"
                if row != mrr.argmax()
                else "",
            }
            for row in np.argsort(-mrr, kind="stable").tolist()
        ],
        "Mean reciprocal rank and hit rate of each strategy",
        {
            MRR: ProgressColumn(
                width="small", format="%.3f", min_value=0.0, max_value=1.0, help=METRICS["mrr"].help
            ),
            HIT: NumberColumn(format="%.3f", help=METRICS["hit_rate@k"].help),
            "Behind the best": TextColumn(
                help="In MRR, with the 95 % interval of the difference over the questions."
            ),
        },
    )
    st.caption(
        f"Labelled questions about the chosen documents: {quality.reciprocal_ranks.shape[1]}. "
        "Where ± reaches past 0, chance may have put a strategy behind."
    )
