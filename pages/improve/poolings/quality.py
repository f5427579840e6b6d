"""The quality of each pooling on labelled questions, with question and index pooled alike or not."""

import numpy as np
import streamlit as st
from streamlit.column_config import NumberColumn, ProgressColumn, TextColumn
from streamlit.delta_generator import DeltaGenerator

from engine.errors import InputError
from engine.evaluation.metrics import METRICS, at_depth
from engine.evaluation.questions import Question
from engine.inspection.pooling.pooling_search import PoolingQuality, pooling_quality
from engine.layers.pooling import pooling_label
from engine.layers.tracing import Array
from engine.retrieval.embedding_model import embed_query
from pages.improve.poolings.pooled_chunks import DIGESTS, PooledChunks
from pages.improve.poolings.rank_flow import matrix_figure
from ui.export import show_figure
from ui.questions.sets import LABEL_SOME
from ui.tables import show_table
from ui.text import chunk_quote, escape_markdown, show_text
from ui.widgets import choice

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
    mrr, hits = quality.matched.mean(axis=1), quality.hits.mean(axis=1)
    behind = quality.matched[mrr.argmax()] - quality.matched  # (n_strategies, n_questions)
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
                width="small",
                format="%.3f",
                min_value=0.0,
                max_value=1.0,
                help=METRICS["mrr"].help,
            ),
            HIT: NumberColumn(format="%.3f", help=METRICS["hit_rate@k"].help),
            "Behind the best": TextColumn(
                help="In MRR, with the 95 % interval of the difference over the questions."
            ),
        },
    )
    st.caption(
        f"Over {quality.matched.shape[1]} labelled questions about the chosen documents. "
        "Where ± reaches past 0, chance may have put a strategy behind."
    )


def show_mixed(question: str, pooled: PooledChunks, quality: PoolingQuality | None) -> None:
    """Draw the effect of pooling the question in another way than the index."""
    st.header("If question and index are pooled in different ways")
    options, (left, right) = distinct(pooled), st.columns(2)

    def choose(name: str, key: str, default: str, help: str, place: DeltaGenerator) -> str:
        return choice(name, options, key, help, default, pooling_label, place=place, as_list=True)

    stored = choose("Index", "pooling-stored", "mean", "How the chunks in the index are pooled.", left)
    other = "pooler" if "pooler" in options else "max"
    asked = choose("Question", "pooling-asked", other, "How the question is pooled.", right)
    query = embed_query(question, pooled.encoder, asked, pooled.max_tokens)
    try:
        hit = pooled.index(stored).search(query, 1)[0]
        st.success(f"Both are pooled alike, so the search runs: the first passage scores {hit.score:.3f}.")
    except InputError as error:
        st.warning(f"The engine refuses: {escape_markdown(str(error))}.", icon=":material/block:")
        scores = pooled.vectors[stored] @ query.vector  # (n_chunks,)
        first = int(scores.argmax())
        st.write(
            f"The shapes agree: the question is a vector of {len(query.vector)} numbers, and so is every "
            "chunk. A search without the check would have run, and found this first, with a score of "
            f"{scores[first]:.3f}:"
        )
        show_text(chunk_quote(pooled.chunks[first], 400))
    if quality is not None:
        show_mixed_map(quality)


def show_mixed_map(quality: PoolingQuality) -> None:
    """Draw the mean reciprocal rank of every index pooling with every question pooling."""
    mixed = quality.mixed
    names = [escape_markdown(pooling_label(strategy)) for strategy in quality.strategies]
    figure = matrix_figure(
        mixed,
        quality.strategies,
        "index: %{y}<br>question: %{x}<br>MRR %{z:.3f}",
        rows="index",
        columns="question",
    )
    show_figure(figure, "mixed-index", "MRR of every index pooling and question pooling")
    loss = mixed.diagonal()[:, None] - mixed  # against the question pooled as the index is
    stored, asked = np.unravel_index(loss.argmax(), loss.shape)
    apart = ~np.eye(len(mixed), dtype=bool)
    st.caption(
        f"MRR in hundredths over the labelled questions; on the diagonal both are pooled alike. Of "
        f"{apart.sum()} mixtures {(loss > 0.05).sum()} lose more than 5 hundredths against the same index "
        f"asked in its own way, and none raises an error. The worst: an index by {names[stored]} asked by "
        f"{names[asked]} falls from {mixed[stored, stored]:.2f} to {mixed[stored, asked]:.2f}. "
        f"{(loss[apart] <= 0).sum()} lose nothing: vectors pooled from the same tokens can lie close. "
        "Shapes do not tell poolings apart, so the engine stamps every vector with how it was made, and "
        "refuses to compare vectors made in different ways."
    )
