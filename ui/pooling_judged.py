"""Which pooling to trust: labelled questions searched in every way, matched and mixed."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from engine.documents.document import Chunk
from engine.errors import InputError
from engine.inspection.strategies import Judged, judge
from engine.layers.tracing import Array
from engine.retrieval.vector_kind import embed_query
from ui.answer import escape_markdown
from ui.export import show_figure
from ui.health import BOX, beginning
from ui.pooled_chunks import PooledChunks
from ui.poolings import LABELS
from ui.question_sets import labelled_questions
from ui.rank_flow import matrix_figure
from ui.text import show_text

# Its direction, and so every cosine, is that of the mean: a line of its own would show nothing.
RANKS_AS_MEAN = "mean_sqrt_len_tokens"
HIT_K = 5


def distinct(pooled: PooledChunks) -> list[str]:
    """Return the strategies whose rankings can differ."""
    return [strategy for strategy in pooled.vectors if strategy != RANKS_AS_MEAN]


@st.cache_resource(
    max_entries=2, show_spinner="Searching the labelled questions in every way…", scope="session"
)
def judge_bundled(content: str, max_tokens: int, _pooled: PooledChunks) -> Judged | None:
    """Search the labelled questions about the chosen bundled documents; None where none is chosen."""
    questions, relevant = labelled_questions(_pooled.chunks)
    if not questions:
        return None
    texts = [question.text for question in questions]
    vectors = _pooled.encoder.encode(texts, distinct(_pooled), max_tokens=max_tokens)
    return judge(vectors, _pooled.vectors, relevant, HIT_K)


def show_judged(judged: Judged | None) -> None:
    """Draw how often each strategy finds a right passage."""
    st.subheader("Which ranking to trust")
    if judged is None:
        st.info(
            "Nobody has said which passages of your documents answer which questions, so no ranking can be "
            "called the better one here. Choose a bundled document, too, to judge by its labelled questions."
        )
        return
    mrr, hits = judged.matched.mean(axis=1), judged.hits.mean(axis=1)
    behind = judged.matched[mrr.argmax()] - judged.matched  # (n_strategies, n_questions)
    margins = 1.96 * behind.std(axis=1) / np.sqrt(behind.shape[1])
    st.dataframe(
        [
            {
                "Strategy": LABELS[judged.strategies[row]],
                "MRR": mrr[row],
                f"Hit@{HIT_K}": hits[row],
                "Behind the best": f"{behind[row].mean():.3f} ± {margins[row]:.3f}"
                if row != mrr.argmax()
                else "",
            }
            for row in np.argsort(-mrr, kind="stable").tolist()
        ],
        hide_index=True,
        column_config={
            "MRR": st.column_config.ProgressColumn(
                width="small",
                format="%.3f",
                min_value=0.0,
                max_value=1.0,
                help="Mean reciprocal rank: 1 where the first passage is right, 1/2 where the second is, …",
            ),
            f"Hit@{HIT_K}": st.column_config.NumberColumn(
                format="%.3f", help=f"Share of questions with a right passage among the first {HIT_K}."
            ),
            "Behind the best": st.column_config.TextColumn(
                help="In MRR, with the 95 % interval of the difference over the questions."
            ),
        },
        alt="Mean reciprocal rank and hit rate of each strategy",
    )
    st.caption(
        f"Over {judged.matched.shape[1]} labelled questions about the bundled documents among those chosen. "
        "Where ± reaches past 0, chance may have put a strategy behind."
    )


def show_mixed(question: str, pooled: PooledChunks, judged: Judged | None) -> None:
    """Draw what happens to a question that is pooled in another way than the index."""
    st.subheader("If question and index are pooled in different ways")
    options, (left, right) = distinct(pooled), st.columns(2)
    stored = left.selectbox(
        "Index",
        options,
        options.index("mean"),
        format_func=LABELS.__getitem__,
        key="pooling-stored",
        persist_state="session",
        help="How the chunks in the index are pooled.",
    )
    asked = right.selectbox(
        "Question",
        options,
        options.index("pooler" if "pooler" in options else "max"),
        format_func=LABELS.__getitem__,
        key="pooling-asked",
        persist_state="session",
        help="How the question is pooled.",
    )
    query = embed_query(question, pooled.encoder, asked, pooled.max_tokens)
    try:
        hit = pooled.index(stored).search(query, 1)[0]
        st.success(f"Both are pooled alike, so the search runs: the first passage scores {hit.score:.3f}.")
    except InputError as error:
        st.error(f"The engine refuses: {escape_markdown(str(error))}.", icon=":material/block:")
        show_unchecked(query.vector, pooled.chunks, pooled.vectors[stored])
    if judged is not None:
        show_mixed_map(judged)


def show_unchecked(vector: Array, chunks: Sequence[Chunk], chunk_vectors: Array) -> None:
    """Say what a search without the check would have found first."""
    scores = chunk_vectors @ vector  # (n_chunks,)
    first = int(scores.argmax())
    st.write(
        f"By shape nothing is wrong: the question is a vector of {len(vector)} numbers, and so is every "
        "chunk. A search without the check would have run, and found this first, with a score of "
        f"{scores[first]:.3f}:"
    )
    show_text(f'<div style="{BOX}">{beginning(chunks[first], 400)}</div>')


def show_mixed_map(judged: Judged) -> None:
    """Draw the mean reciprocal rank of every index with every question."""
    mixed, names = judged.mixed, [escape_markdown(LABELS[strategy]) for strategy in judged.strategies]
    figure = matrix_figure(
        mixed,
        judged.strategies,
        "index: %{y}<br>question: %{x}<br>MRR %{z:.3f}",
        rows="index",
        columns="question",
    )
    show_figure(figure, "mixed-index", {"mrr": mixed}, "MRR of every index pooling and question pooling")
    loss = mixed.diagonal()[:, None] - mixed  # against the question pooled as the index is
    stored, asked = np.unravel_index(loss.argmax(), loss.shape)
    apart = ~np.eye(len(mixed), dtype=bool)
    st.caption(
        f"MRR in hundredths over the labelled questions; on the diagonal both are pooled alike. Of "
        f"{apart.sum()} mixtures {(loss > 0.05).sum()} lose more than 5 hundredths against the same index "
        f"asked in its own way, and none raises an error. The worst: an index by {names[stored]} asked by "
        f"{names[asked]} falls from {mixed[stored, stored]:.2f} to {mixed[stored, asked]:.2f}. "
        f"{(loss[apart] <= 0).sum()} lose nothing: vectors pooled from the same tokens can lie close. No "
        "shape tells the one kind from the other, so the engine stamps every vector with how it was made, "
        "and refuses whatever was made in another way."
    )
