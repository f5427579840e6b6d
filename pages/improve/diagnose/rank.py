"""The rank of a passage under the app's retriever, the chunks above it, and their similarities explained."""

from dataclasses import dataclass, field

import numpy as np
import streamlit as st
from streamlit.column_config import NumberColumn, TextColumn

from engine.inspection.diagnosis.diagnose import Diagnosis
from engine.inspection.diagnosis.location import Location, matching_rows
from engine.inspection.health.report import NEAR_DUPLICATE
from engine.layers.tracing import Array
from engine.retrieval.embedding_model import needs_encoder_message
from engine.retrieval.index import Index
from engine.retrieval.ranking import best_first
from engine.retrieval.retrievers import RETRIEVERS, index_scores
from ui.corpus import query_of
from ui.look_inside import chunk_table
from ui.report import Report
from ui.search import Search
from ui.similarity.explained import CHAPTERS, show_explained
from ui.text import escape_markdown, joined
from ui.widgets import chapters

RANK = "4 · Where does it rank, and what outranks it?"
MAX_ABOVE_SHOWN = 10
ASIDE = ", in this or another form; function words aside"
SHARED = "What question and chunk share, word by word,"


@dataclass(frozen=True)
class Ranking:
    """The rows of all chunks by a retriever, best first, with their scores ``(n_chunks,)`` on its scale.

    ``rank`` is that of the passage's best chunk, from 1, and ``row`` its row.
    """

    scores: Array = field(repr=False)
    order: tuple[int, ...] = field(repr=False)
    rank: int
    row: int

    @property
    def is_found(self) -> bool:
        """Whether the retriever finds the passage, at any rank."""
        return bool(self.scores[self.row] > -np.inf)

    @property
    def above(self) -> tuple[int, ...]:
        """Rows of the found chunks that rank higher, best first."""
        return tuple(row for row in self.order[: self.rank - 1] if self.scores[row] > -np.inf)


@st.cache_resource(
    max_entries=8,
    show_spinner="Ranking the passage…",
    scope="session",
    hash_funcs={Search: lambda search: search.ranked},
)
def ranking_of(question: str, place: Location, search: Search) -> Ranking:
    """Rank a passage by the retriever in use."""
    index, model = search.index, search.model
    query, inside = query_of(question, index, model), index.encoder(model).as_encoder
    scores = index_scores(search.retriever, question, query, index, inside)  # (n_chunks,)
    order = best_first(scores[None])[0].tolist()
    own = set(matching_rows(place, index.chunks))
    rank = next(rank for rank, row in enumerate(order, 1) if row in own)
    return Ranking(scores, tuple(order), rank, order[rank - 1])


def show_rank(report: Report, question: str, search: Search, found: Diagnosis, ranking: Ranking) -> None:
    """Draw the passage's rank, the chunks above it, and their similarities to the question explained."""
    report.header(RANK)
    name, n_chunks = RETRIEVERS[search.retriever].label, len(search.index.chunks)
    figures = {
        "Rank": (
            f"{ranking.rank:,} of {n_chunks:,}" if ranking.is_found else "not found",
            f"Rank of its best chunk under the present settings: {name}.",
        )
    }
    if RETRIEVERS[search.retriever].uses_bm25 and ranking.is_found:
        score = f"{ranking.scores[ranking.row]:.3g}"
        figures["Score"] = (score, f"Score of that chunk, on the scale of {name}.")
    if search.retriever != "dense":
        figures["By vectors"] = (f"{found.now.rank:,}", "Its rank by cosine.")
    figures |= {
        "Cosine": (f"{found.now.score:.3f}", "Cosine of its chunk's vector with the question's."),
        "By itself": (
            f"{found.by_itself.rank:,}",
            "Its rank by cosine if the passage were a chunk of its own.",
        ),
        "By words (BM25)": (
            f"{found.bm25.rank:,}" if found.bm25.score > 0 else "not found",
            "Its rank by the words it shares with the question; rare words count more.",
        ),
        "Without repeats": (
            f"{found.without_repeats:,}",
            f"Its rank by cosine if near duplicates (a cosine above {NEAR_DUPLICATE:.2f}) shared one place.",
        ),
    }
    metrics = {label: (value, None, meaning) for label, (value, meaning) in figures.items()}
    report.metrics(metrics, "The ranks and scores of the passage")
    if found.shared_words:
        shared = joined([f"“{word}”" for word in found.shared_words], "and")
        report.sentence(f"Of the question's words, the passage contains {shared}{ASIDE}.")
    else:
        report.sentence("The passage contains none of the question's words, function words aside.")
    if not ranking.above:
        report.sentence("Nothing ranks above it." if ranking.is_found else "Nothing is found.")
    else:
        show_above(report, search.index, found, ranking)
    show_contributions(question, search, ranking)


def show_above(report: Report, index: Index, found: Diagnosis, ranking: Ranking) -> None:
    """List the chunks that rank higher, with the groups of near duplicates among them."""
    group_of = {row: number for number, group in enumerate(found.repeats, 1) for row in group}

    def repeats(row: int) -> str:
        if row not in group_of:
            return ""
        return "the passage" if group_of[row] == group_of.get(found.row) else f"group {group_of[row]}"

    shown = ranking.above[:MAX_ABOVE_SHOWN]
    chunk_table(
        [index.chunks[row] for row in shown],
        [
            {
                "Rank": rank,
                "Cosine": float(found.scores[row]),
                **({"Repeats": repeats(row)} if found.repeats else {}),
                "Document": index.chunks[row].document,
                "Text": " ".join(index.chunks[row].text.split()),
            }
            for rank, row in enumerate(shown, 1)
        ],
        "above",
        "The chunks that rank above the passage, best first",
        {
            "Cosine": NumberColumn(format="%.3f"),
            "Repeats": TextColumn(help="Chunks of one group are near duplicates."),
            "Text": TextColumn(width="large"),
        },
        report.table,
    )
    if (n_above := len(ranking.above)) > MAX_ABOVE_SHOWN:
        report.caption(f"The first {MAX_ABOVE_SHOWN} of {n_above:,} that rank above it.")


def show_contributions(question: str, search: Search, ranking: Ranking) -> None:
    """Draw, on demand, the similarity to the question explained, for the passage's chunk and the best one."""
    index = search.index
    model, limit = index.encoder(search.model), index.spec.max_tokens
    if (encoder := model.as_encoder) is None:
        st.caption(escape_markdown(needs_encoder_message(SHARED, model)))
        return
    rows = {"passage": ("What its chunk shares with the question", ranking.row)}
    if ranking.above:
        rows["above"] = ("What the best chunk shares with the question", ranking.above[0])
    for key, (title, row) in rows.items():
        if index.spec.pooling != "pooler":
            st.session_state.setdefault(f"diagnose-{key}-strategy", index.spec.pooling)
        box = st.expander(
            title, key=f"diagnose-{key}-shares", on_change="rerun", icon=":material/join_inner:"
        )
        if box.open:
            with box:
                chapter = chapters(CHAPTERS, f"diagnose-{key}-chapter")
                texts = question, index.chunks[row].text
                show_explained(encoder, limit, *texts, f"diagnose-{key}", chapter)
