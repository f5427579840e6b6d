"""Where the app's retriever ranks a passage, what is above it, and what their similarities are made of."""

from dataclasses import dataclass, field

import numpy as np
import streamlit as st

from engine.documents.document import Document
from engine.inspection.diagnosis import Diagnosis
from engine.inspection.diagnosis_place import Location, own_rows
from engine.inspection.health import NEAR
from engine.layers.tracing import Array
from engine.retrieval.index import Index
from engine.retrieval.ranking import best_first
from engine.retrieval.retrievers import OF_WORDS, index_scores
from engine.retrieval.vector_kind import embed_query
from ui.answer import escape_markdown
from ui.chunk_settings import Cut
from ui.diagnose_ask import Search
from ui.health import listed
from ui.pooling_explained import show_explained
from ui.retrievers import LABELS

MOST_ABOVE = 10


@dataclass(frozen=True)
class Ranking:
    """How a retriever orders the chunks for a question, and where the passage is in that.

    Attributes
    ----------
    scores
        Of every chunk, on the retriever's scale ``(n_chunks,)``.
    order
        Rows of all chunks, best first.
    rank, row
        Place of the passage's best chunk in that order, from 1, and its row.
    """

    scores: Array = field(repr=False)
    order: tuple[int, ...] = field(repr=False)
    rank: int
    row: int

    @property
    def is_found(self) -> bool:
        """Whether the passage is found at all, at whatever rank."""
        return bool(self.scores[self.row] > -np.inf)

    @property
    def above(self) -> tuple[int, ...]:
        """Rows of the chunks that are found and rank higher, best first."""
        return tuple(row for row in self.order[: self.rank - 1] if self.scores[row] > -np.inf)

    @property
    def words(self) -> str:
        """What the retriever does with the passage: ``"ranks it 7"``."""
        return f"ranks it {self.rank:,}" if self.is_found else "does not find it"


@st.cache_resource(max_entries=8, show_spinner="Ranking the passage…", scope="session")
def ranking_of(
    question: str,
    place: Location,
    documents: tuple[Document, ...],
    cut: Cut,
    pooling: str,
    retriever: str,
    _search: Search,
) -> Ranking:
    """Rank a passage by a retriever; what that makes of the chunks is kept by the index."""
    index, kind = _search.index, _search.index.kind
    encoder = index.encoder(_search.encoder)
    query = embed_query(question, encoder, kind.pooling, kind.max_tokens)
    scores = index_scores(retriever, question, query, index, encoder)  # (n_chunks,)
    order = best_first(scores[None])[0].tolist()
    own = set(own_rows(place, index.chunks))
    rank = next(rank for rank, row in enumerate(order, 1) if row in own)
    return Ranking(scores, tuple(order), rank, order[rank - 1])


def show_rank(question: str, search: Search, found: Diagnosis, ranking: Ranking) -> None:
    """Draw the passage's rank, what ranks above it, and what the similarity of either is made of."""
    st.subheader("4 · Where does it rank, and what outranks it?")
    index = search.index
    bm25 = f"{found.bm25.rank:,}" if found.bm25.score > 0 else "not found"
    name = LABELS[search.retriever]
    figures = {
        "Rank": (
            f"{ranking.rank:,} of {len(index.chunks):,}" if ranking.is_found else "not found",
            f"Of the best of its chunks, as of now: {name}.",
        )
    }
    if search.retriever in OF_WORDS and ranking.is_found:
        figures["Score"] = (f"{ranking.scores[ranking.row]:.3g}", f"Of that chunk, on the scale of {name}.")
    if search.retriever != "dense":
        figures["By vectors"] = (f"{found.now.rank:,}", "Its rank by cosine alone.")
    figures |= {
        "Cosine": (f"{found.now.score:.3f}", "Of its chunk's vector with the question's."),
        "Alone": (f"{found.alone.rank:,}", "Its rank by cosine, had the passage been a chunk of its own."),
        "By words (BM25)": (bm25, "Its rank by the words in common with the question, the rarer the better."),
        "Without repeats": (
            f"{found.without_repeats:,}",
            f"Its rank by cosine, had all that say the same (a cosine above {NEAR:.2f}) one place together.",
        ),
    }
    with st.container(horizontal=True):
        for label, (value, words) in figures.items():
            st.metric(label, value, help=words, width="content")
    shared = (
        escape_markdown(listed([f"“{word}”" for word in found.shared_words], "and"))
        if found.shared_words
        else ""
    )
    st.write(
        f"The passage has {shared} of the question's words, function words aside."
        if shared
        else "The passage has none of the question's words, function words aside."
    )
    if not ranking.above:
        st.write("Nothing ranks above it." if ranking.is_found else "Nothing is found.")
    else:
        show_above(index, found, ranking)
    show_contributions(question, search, ranking)


def show_above(index: Index, found: Diagnosis, ranking: Ranking) -> None:
    """List the chunks that rank higher, and which of those nearer to the question repeat one another."""
    group_of = {row: number for number, group in enumerate(found.repeats, 1) for row in group}
    st.dataframe(
        [
            {
                "Rank": rank,
                "Cosine": float(found.scores[row]),
                **({"Repeats": repeats(row, group_of, found.row)} if found.repeats else {}),
                "Document": index.chunks[row].document,
                "Text": " ".join(index.chunks[row].text.split()),
            }
            for rank, row in enumerate(ranking.above[:MOST_ABOVE], 1)
        ],
        hide_index=True,
        column_config={
            "Cosine": st.column_config.NumberColumn(format="%.3f"),
            "Repeats": st.column_config.TextColumn(help="Chunks of one group say nearly the same."),
            "Text": st.column_config.TextColumn(width="large"),
        },
        alt="The chunks that rank above the passage, best first",
    )
    if len(ranking.above) > MOST_ABOVE:
        st.caption(f"The first {MOST_ABOVE} of {len(ranking.above):,} that rank above it.")


def repeats(row: int, group_of: dict[int, int], own: int) -> str:
    """Say which group of near duplicates a chunk is of."""
    if row not in group_of:
        return ""
    return "the passage" if group_of[row] == group_of.get(own) else f"group {group_of[row]}"


def show_contributions(question: str, search: Search, ranking: Ranking) -> None:
    """Draw, on demand, what the similarity of the passage's chunk and of one above it is made of."""
    index = search.index
    encoder, limit = index.encoder(search.encoder), index.kind.max_tokens
    pairs = {"passage": ("What its chunk shares with the question", ranking.row)}
    if ranking.above:
        pairs["above"] = ("What the best chunk shares with the question", ranking.above[0])
    for key, (title, row) in pairs.items():
        if index.kind.pooling != "pooler":
            st.session_state.setdefault(f"diagnose-{key}-strategy", index.kind.pooling)
        box = st.expander(
            title, key=f"diagnose-{key}-shares", on_change="rerun", icon=":material/join_inner:"
        )
        if box.open:
            with box:
                show_explained(encoder, limit, question, index.chunks[row].text, f"diagnose-{key}")
