"""The chunks that rank above a passage, and their similarities to the question explained."""

import streamlit as st
from streamlit.column_config import NumberColumn, TextColumn

from engine.inspection.diagnosis.chain import Chain, Ranking
from engine.retrieval.embedding_model import needs_encoder_message
from ui.look_inside import chunk_table
from ui.report import Report
from ui.search import Search
from ui.similarity.explained import CHAPTERS, show_explained
from ui.text import escape_markdown
from ui.widgets import chapters

RANK = "What ranks above it"
MAX_ABOVE_SHOWN = 10
SHARED = "What question and chunk share, word by word,"


def show_rank(report: Report, question: str, search: Search, chain: Chain) -> None:
    """List the chunks that rank above the passage's, and explain their similarities to the question."""
    ranking = chain.ranking
    assert ranking is not None, "a chunk holds some of the passage"
    report.header(RANK)
    if not ranking.above:
        report.sentence("Nothing ranks above it." if ranking.rank else "Nothing is found.")
    shown, cosines = ranking.above[:MAX_ABOVE_SHOWN], chain.by_half["dense"].scores
    chunk_table(
        [search.index.chunks[row] for row in shown],
        [
            {
                "Rank": rank,
                "Cosine": float(cosines[row]),
                "Document": search.index.chunks[row].document,
                "Text": " ".join(search.index.chunks[row].text.split()),
            }
            for rank, row in enumerate(shown, 1)
        ],
        "above",
        "The chunks that rank above the passage, best first",
        {"Cosine": NumberColumn(format="%.3f"), "Text": TextColumn(width="large")},
        report.table,
    )
    if (n_above := len(ranking.above)) > MAX_ABOVE_SHOWN:
        report.caption(f"The first {MAX_ABOVE_SHOWN} of {n_above:,} that rank above it.")
    show_contributions(question, search, ranking)


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
