"""The tab of indexes: the kind in use and why, and what each kind finds, costs and loses of the chunks."""

from collections.abc import Sequence

import streamlit as st
from streamlit.column_config import NumberColumn, TextColumn

from engine.documents.document import Chunk, Document
from engine.retrieval.embedding_model import Model
from engine.retrieval.index import Index
from engine.retrieval.index_choice import (
    FEWEST_CHUNKS,
    NEAREST,
    SAMPLE,
    Measured,
    by_size,
    choose_index,
    compare_kinds,
    lost_passages,
    share,
)
from engine.retrieval.index_kinds import AUTO, FLAT, INDEX_KINDS, AnnIndex
from engine.settings import SETTINGS
from engine.wording import beginning, counted
from ui.background import in_background
from ui.chunk_settings import Cut
from ui.corpus import CHUNK_S, INDEX, index_documents, query_of
from ui.models import load_encoder
from ui.setting_values import settings_in_use
from ui.tables import show_table
from ui.widgets import MOST_QUESTION, check_typed, choice, fragment

COMPARE_S = 3e-4  # to put a chunk into an index of each kind, and to search it
MAX_LOST = 20  # passages listed
SHOWN_CHARACTERS = 160


def show_index(documents: Sequence[Document], model: Model, cut: Cut) -> None:
    """Draw the kind of index that is used for these documents, and a comparison of all kinds."""
    settings = settings_in_use(load_encoder())
    pooling, kind = settings["pooling"], settings["index_kind"]
    index = index_documents(documents, model, cut, pooling)
    is_exact = by_size(index.vectors)[0] == FLAT and kind in (FLAT, AUTO)
    built = in_background(
        INDEX,
        "Build the index",
        (tuple(documents), cut, pooling, kind),
        0.0 if is_exact else CHUNK_S * len(index.chunks),
        "documents",
        lambda report: choose_index(index.vectors, kind, on_progress=report),
    )
    if built is None:
        return
    chosen, _ = built
    label = SETTINGS["index_kind"].words(kind)
    st.write(
        "The nearest vectors are found by an index. The setting “Index”, under “Search” in the sidebar of "
        f"“Ask your documents”, is **{label}**."
    )
    st.info(f"{chosen.reason[0].upper()}{chosen.reason[1:]}.", icon=":material/account_tree:")
    if len(index.chunks) < FEWEST_CHUNKS:
        st.caption(
            f"Other kinds are compared from {FEWEST_CHUNKS} chunks on. Add documents, or make chunks smaller."
        )
        show_measured(chosen.measured[:1])
        return
    compared = in_background(
        "kinds",
        "Compare all kinds",
        (tuple(documents), cut, pooling),
        COMPARE_S * len(index.chunks),
        "documents",
        lambda report: compare_kinds(index.vectors, report),
    )
    if compared is None:
        show_measured(chosen.measured)
        return
    show_measured([measured for measured, _ in compared])
    show_lost(compared, index, model)


def show_measured(measured: Sequence[Measured]) -> None:
    """Draw a table with a row for each kind."""
    rows = [
        {
            "Kind": INDEX_KINDS[each.kind].label,
            "Effort": f"{INDEX_KINDS[each.kind].effort} {each.effort}" if each.effort else "",
            f"Recall@{NEAREST}": share(each.recall),
            "Median ms": each.median_ms,
            "p99 ms": each.p99_ms,
            "MB": each.n_bytes / 1e6,
            "Built in s": each.build_s,
            "Lost": len(each.lost),
        }
        for each in measured
    ]
    show_table(
        rows,
        f"Recall, time and memory of {counted(len(rows), 'kind')} of index",
        {
            "Effort": TextColumn(help="How thoroughly it searches: raised until the recall is enough."),
            f"Recall@{NEAREST}": TextColumn(
                help=f"Share of the {NEAREST} nearest by exact search that it finds, for up to {SAMPLE} of "
                "your chunks, each searched for by its own vector and left out itself."
            ),
            "Median ms": NumberColumn(format="%.3f", help="Milliseconds of one search."),
            "p99 ms": NumberColumn(format="%.3f", help="99 of 100 searches take less."),
            "Built in s": NumberColumn(format="%.2f"),
            "MB": NumberColumn(
                format="%.1f", help="Of the index. Compressed kinds also read some of the exact vectors."
            ),
            "Lost": NumberColumn(help="Passages that it did not find, in the whole sample."),
        },
    )
    lines = [f"**{INDEX_KINDS[each.kind].label}**: {INDEX_KINDS[each.kind].help}" for each in measured]
    st.caption("  \n".join(lines))


@fragment
def show_lost(compared: Sequence[tuple[Measured, AnnIndex | None]], index: Index, model: Model) -> None:
    """Draw the passages that a kind lost of the sample, and of a question."""
    st.subheader("What was lost")
    known = {measured.kind: (measured, ann) for measured, ann in compared if ann is not None}
    kind = choice("Kind", list(known), "lost-kind", format_func=lambda name: INDEX_KINDS[name].label)
    (measured, ann), label = known[kind], INDEX_KINDS[kind].label
    assert ann is not None, "exact search loses nothing"
    of_sample = [
        {"Searched for": beginning(index.chunks[one.query].text, SHOWN_CHARACTERS)}
        | lost_row(index.chunks[one.row], one.rank, one.score)
        for one in measured.lost
    ]
    show_lost_passages(of_sample, f"{label} lost nothing of the sample.", f"lost-{kind}")
    question = st.text_input(
        "A question", key="lost-question", placeholder="What this kind loses of its passages"
    )
    if check_typed(question, MOST_QUESTION).strip():
        lost = lost_passages(index.vectors, ann, query_of(question, index, model).vector)
        of_question = [lost_row(index.chunks[row], rank, score) for rank, row, score in lost]
        nothing = f"{label} finds the {NEAREST} nearest passages of this question."
        show_lost_passages(of_question, nothing, "lost-of-question")


def lost_row(chunk: Chunk, rank: int, score: float) -> dict[str, object]:
    """Return a passage that was not found as a row of a table."""
    text = beginning(chunk.text, SHOWN_CHARACTERS)
    return {"Lost": text, "In": chunk.document, "Rank": rank, "Cosine": round(score, 3)}


def show_lost_passages(rows: Sequence[dict[str, object]], nothing: str, key: str) -> None:
    """Draw a table of the passages that were not found, or that there are none."""
    if not rows:
        st.success(nothing, icon=":material/check_circle:")
        return
    if len(rows) > MAX_LOST:
        st.caption(f"The first {MAX_LOST} of {len(rows):,}.")
    shown = rows[:MAX_LOST]
    show_table(shown, f"{counted(len(shown), 'passage')} that were not found", key=key)
