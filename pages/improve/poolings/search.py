"""The rankings of a question under several poolings, side by side, and their quality."""

from collections.abc import Sequence
from html import escape

import streamlit as st

from engine.documents.document import Chunk
from engine.inspection.pooling.pooling_search import PoolingRankings, only_found_by, rankings
from engine.layers.pooling import pooling_label
from engine.layers.tracing import Array
from engine.retrieval.maxsim import MAXSIM
from engine.retrieval.rerank import MaxSim
from engine.wording import beginning, readable_time
from pages.improve.poolings.pooled_chunks import DIGESTS, PooledChunks
from pages.improve.poolings.quality import RANKS_AS_MEAN, TRUST, distinct, labelled_quality, show_quality
from pages.improve.poolings.rank_flow import rank_flow
from pages.improve.poolings.sentences import strategy_pills
from ui.current import current_passage, follow, follow_question, nearest, set_question
from ui.documents import bundled_names
from ui.export import show_figure
from ui.models import token_seconds_here
from ui.progress import counting
from ui.questions.sets import labelled_questions
from ui.text import chunk_quote, escape_markdown, show_text
from ui.widgets import MOST_QUESTION, chapters, check_typed, example_choice, kept, more_options, slider

# Labelled questions on which the strategies disagree.
EXAMPLES = (
    "Which country is Putin invading, causing chaos in Europe and beyond?",
    "What are the classes of troops in the game?",
    "What are the significant environmental sustainability goals of Stockholm?",
    "How many entries does the WordPiece vocabulary have?",
)
RANKINGS, WHY = "How the ranking changes", "Why a passage is found"
PARTS = (RANKINGS, TRUST, WHY)
DEFAULT = ("mean", "cls", "max", "idf", "last4")


def show_search(pooled: PooledChunks) -> tuple[str, str] | None:
    """Draw a question's rankings by poolings; return it and the passage to explain, if there is one."""
    st.write(
        "The same chunks, the same question, the same encoder: only the way from tokens to one vector "
        "differs. See how that moves passages, and which poolings find the right ones."
    )
    question = question_box(pooled)
    if not question.strip():
        st.info("Type a question to see how each strategy ranks the passages.")
        return None
    part = chapters(PARTS, "pooling-question-part")
    strategies, k, with_maxsim = choices(pooled, part)
    if not strategies:
        st.info("Pick a strategy; with two or more there is something to compare.")
        return None
    vectors = pooled.encoder.encode_as("query", [question], strategies, max_tokens=pooled.max_tokens)
    scores = {strategy: pooled.vectors[strategy] @ vector for strategy, [vector] in vectors.items()}
    if with_maxsim:
        scores[MAXSIM] = maxsim_of(question, pooled)
    compared = rankings(scores, k)
    if part == RANKINGS:
        st.header(RANKINGS)
        show_figure(rank_flow(compared, pooled.chunks), "rank-flow", "Places of passages under each strategy")
        st.caption(
            f"Each line is a passage; {len(compared.rows)} of {len(pooled.chunks):,} are among the first "
            f"{compared.k} of some strategy. The grey lane holds those that a strategy ranks lower, in "
            "order; hover, or tap, for the exact rank, the score and the text. Scores of different "
            "strategies are on different scales: compare ranks."
        )
        show_only(compared, pooled.chunks)
        return None
    if part == WHY:
        return question, pooled.chunks[explained_row(compared, pooled.chunks)].text
    questions, relevant = labelled_questions(pooled.documents, pooled.chunks)
    show_quality(labelled_quality(pooled, questions, relevant))
    return None


def question_box(pooled: PooledChunks) -> str:
    """Draw the question box, with examples where bundled documents are searched; return the question."""
    bundled = any(chunk.document in bundled_names() for chunk in pooled.chunks)
    if bundled:
        reason = "Questions about the bundled documents on which the strategies disagree."
        example_choice(EXAMPLES, "pooling-example", set_question, help=reason)
    changed = follow_question("pooling-question", EXAMPLES[0] if bundled else "")
    with st.form("pooling-question-form", border=False):
        box, button = st.columns([5, 1], vertical_alignment="bottom")
        question = box.text_input(
            "Your question",
            **kept("pooling-question"),
            placeholder="What do you want to know?",
            help="It is embedded under every strategy and compared with the chunks' vectors.",
        )
        button.form_submit_button("Rank", type="primary", width="stretch", on_click=changed)
    return check_typed(question, MOST_QUESTION)


def label(strategy: str) -> str:
    """Label of a pooling strategy or of MaxSim."""
    return "MaxSim" if strategy == MAXSIM else pooling_label(strategy)


def choices(pooled: PooledChunks, part: str) -> tuple[list[str], int, bool]:
    """Draw the choices; return the strategies in their usual order, k, and whether MaxSim is compared.

    The strategies are in sight in the part that compares them, behind a button in the others.
    """
    strategies, button = st.container(), more_options()
    with strategies if part == RANKINGS else button:
        note = f"“{label(RANKS_AS_MEAN)}” is left out: its direction is that of the mean, so it ranks alike."
        picked = strategy_pills(distinct(pooled), DEFAULT, "pooling-strategies", f"\n\n{note}")
    with button:
        reason = "A strategy finds a passage if it ranks it among the first k."
        k = slider("Passages that count as found (k)", range(3, 21), 5, "pooling-k", reason)
        n_tokens = sum(min(chunk.n_tokens, pooled.max_tokens) for chunk in pooled.chunks)
        seconds = n_tokens * token_seconds_here(pooled.encoder, pooled.chunks)
        with_maxsim = st.toggle(
            "MaxSim too",
            **kept("pooling-maxsim"),
            help="No pooling: each token of the question is matched with the most similar token of a chunk. "
            f"Reads every token of every chunk again: about {readable_time(seconds)} for each new "
            "question.",
        )
    return picked, k, with_maxsim


@st.cache_data(max_entries=8, show_spinner=False, scope="session", hash_funcs=DIGESTS)
def maxsim_of(question: str, pooled: PooledChunks) -> Array:
    """Score the chunks token by token, with a progress bar: ``(n_chunks,)``."""
    texts = [chunk.indexed for chunk in pooled.chunks]
    with counting("Reading every token again", "chunks") as show:
        return MaxSim([question], texts, pooled.encoder, pooled.max_tokens).scores(range(len(texts)), show)[0]


def show_only(compared: PoolingRankings, chunks: Sequence[Chunk]) -> None:
    """List the passages that only one strategy finds."""
    st.header("Found by only one strategy")
    if len(compared.strategies) < 2:
        st.caption("Pick a second strategy to compare with.")
        return
    numbers, found = compared.rows.tolist(), only_found_by(compared)
    for strategy, rows in found.items():
        if len(rows):
            name = escape_markdown(label(strategy))
            with st.expander(f"Only **{name}** finds {len(rows)} of its first {compared.k}"):
                for row in rows.tolist():
                    show_text(passage_html(compared, numbers.index(row), chunks[row]))
    if none := [escape_markdown(label(strategy)) for strategy, rows in found.items() if not len(rows)]:
        st.caption(f"Found nothing that others did not: {' · '.join(none)}")


def passage_html(compared: PoolingRankings, number: int, chunk: Chunk) -> str:
    """Return a passage with its rank under every strategy, escaped; ``number`` counts from 0."""
    ranks = " · ".join(
        f"{label(strategy)} {rank:,}"
        for strategy, rank in zip(compared.strategies, compared.ranks[:, number], strict=True)
    )
    place = f"{chunk.document}, characters {chunk.start:,}–{chunk.end:,}"
    title = f"<b>Passage {number + 1}</b> <small>{escape(place)}</small>"
    return chunk_quote(chunk, 600, title, f"<small>Ranks: {escape(ranks)}</small>")


def explained_row(compared: PoolingRankings, chunks: Sequence[Chunk]) -> int:
    """Draw the choice of a passage to explain; return its row."""
    numbers = {row: number for number, row in enumerate(compared.rows.tolist(), start=1)}
    if (passage := current_passage()) is not None:
        rows = [row for row, chunk in enumerate(chunks) if chunk.document == passage.document]
        number = nearest(passage, [chunks[row] for row in rows])
        if number is not None and rows[number - 1] in numbers:
            follow("pooling-explained", passage, rows[number - 1])
    st.header(WHY)
    return st.selectbox(
        "Explain a passage",
        list(numbers),
        format_func=lambda row: f"{numbers[row]} · {beginning(chunks[row].text, 90)}",
        key="pooling-explained",
        help="The passages drawn above, by number: those among the first k of some strategy.",
    )
