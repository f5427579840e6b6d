"""The rank of a passage under other settings, measured on demand."""

from collections.abc import Sequence
from time import monotonic
from typing import cast

import numpy as np
import streamlit as st

from engine import Encoder
from engine.documents.document import Document
from engine.evaluation.grid import Cell
from engine.evaluation.questions import Question
from engine.evaluation.sweep import sweep
from engine.evaluation.sweep_row import SweepRow
from engine.inspection.diagnosis_place import Location
from engine.inspection.diagnosis_settings import (
    OVERLAPS,
    POOLINGS,
    RETRIEVERS,
    SIZES,
    SPLITTERS,
    as_question,
    cells_near,
    others_of,
    passage_rank,
)
from engine.retrieval.retrievers import RETRIEVERS as ALL_RETRIEVERS
from ui import retrievers
from ui.chunk_settings import METHODS
from ui.diagnose_ask import Asked, Search
from ui.diagnose_fix import changed_names, show_fixes
from ui.diagnose_labels import kept_vectors
from ui.health import listed
from ui.pooling_search import TOKENS_PER_S
from ui.poolings import LABELS

ROWS = "diagnose-rows"  # of the session's state: what they are of, and the rows of the sweep


def show_settings(asked: Asked, place: Location, search: Search, questions: Sequence[Question]) -> None:
    """Draw the table of other settings, made on demand, and what follows from it.

    Parameters
    ----------
    asked, place
        The question, and where its passage stands.
    search
        What is searched, and how.
    questions
        The labelled ones about these documents, to which a change must do no harm.
    """
    st.subheader("5 · Where would it rank under other settings?")
    target = as_question(asked.question, place, search.document(place.document))
    others = others_of(target, questions, search.documents)
    current = current_cell(search)
    cells = wanted_cells(current, search.encoder)
    rows = kept_rows((target, *others), (place.document, search.documents, search.encoder.name))
    missing = [cell for cell in cells if cell not in {row.cell for row in rows}]
    show_cost(missing, cells, search)
    if st.button(
        "Try other settings",
        type="primary",
        disabled=not missing,
        icon=":material/tune:",
        help="Cuts and embeds the chosen documents anew for each way to cut; nothing is embedded twice.",
    ):
        measure([target, *others], cells, rows, search)
        st.rerun()  # what is said above the button is about what was missing
    measured = [row for row in rows if row.cell in set(cells)]
    now = next((row for row in measured if row.cell == current), None)
    if now is None:
        st.info("Nothing is measured yet for these settings.", icon=":material/tune:")
        return
    show_table(measured, now)
    show_fixes(measured, now, others)


def current_cell(search: Search) -> Cell:
    """Return the present settings."""
    splitting, kind = search.cut.splitting, search.index.kind
    cut = (splitting.method, splitting.chunk_tokens, splitting.overlap)
    return Cell(*cut, search.encoder.name, kind.max_tokens, kind.pooling, search.retriever, search.k)


def measure(
    questions: Sequence[Question], cells: Sequence[Cell], rows: list[SweepRow], search: Search
) -> None:
    """Measure what ``rows`` lack, and add each when it is there, so that a stop loses none."""
    since = monotonic()
    bar, stop = st.progress(0.0, "Measuring…"), st.empty()
    stop.button("Stop", icon=":material/stop_circle:", help="What is measured until then stays.")

    def show(done: float, total: int) -> None:
        seconds = monotonic() - since  # of a slow combination they alone go on
        bar.progress(
            min(done / total, 1.0),
            f"Measured {int(done):,} of {total:,} combinations, each by {len(questions):,} questions, in "
            f"{seconds:.0f} s",
        )

    cache = kept_vectors(questions, search.documents)
    models = {search.encoder.name: search.encoder}
    try:
        for row in sweep(search.documents, questions, cells, models, cache, show, done=tuple(rows)):
            rows.append(row)
    finally:
        bar.empty()
        stop.empty()


def kept_rows(questions: tuple[Question, ...], of: tuple[str, tuple[Document, ...], str]) -> list[SweepRow]:
    """Return the session's rows of some questions, the passage's first; those of others are dropped."""
    if ROWS not in st.session_state or st.session_state[ROWS][0] != (questions, of):
        st.session_state[ROWS] = ((questions, of), [])
    return cast(list[SweepRow], st.session_state[ROWS][1])


def wanted_cells(current: Cell, encoder: Encoder) -> list[Cell]:
    """Draw which settings are tried; return the combinations, the nearest to the current one first."""
    most_changes = st.segmented_control(
        "Settings that change at once",
        [1, 2, 3, 5],
        format_func={1: "one", 2: "up to two", 3: "up to three", 5: "any"}.__getitem__,
        default=1,
        required=True,
        key="diagnose-changes",
        persist_state="session",
        help="A small change is one of few settings. More at once are more combinations, and take longer.",
    )
    longer = min(-(-current.chunk_tokens // 8) * 8, encoder.config.max_positions)
    limits = [longer] if current.max_tokens is not None and longer > current.max_tokens else []
    with st.expander("Which settings", icon=":material/checklist:"):
        splitters = st.multiselect(
            "Splitters",
            list(METHODS),
            SPLITTERS,
            format_func=METHODS.__getitem__,
            key="diagnose-splitters",
            persist_state="session",
            help="How documents are cut. The present one is always among them.",
        )
        sizes = st.multiselect(
            "Chunk sizes (tokens)",
            (32, 64, 96, 128, 192, 256, 384, 512),
            SIZES,
            key="diagnose-sizes",
            persist_state="session",
            help="Most tokens of a chunk.",
        )
        overlaps = st.multiselect(
            "Overlaps (tokens)",
            (0, 16, 32, 64),
            OVERLAPS,
            key="diagnose-overlaps",
            persist_state="session",
            help="How much of a chunk the next one repeats. Sizes without room for it are left out.",
        )
        poolings = st.multiselect(
            "Poolings",
            list(LABELS),
            POOLINGS,
            format_func=LABELS.__getitem__,
            key="diagnose-poolings",
            persist_state="session",
            help="How the vectors of a chunk's tokens become one.",
        )
        found_by = st.multiselect(
            "Retrievers",
            ALL_RETRIEVERS,
            RETRIEVERS,
            format_func=retrievers.LABELS.__getitem__,
            key="diagnose-retrievers",
            persist_state="session",
            help="How chunks are scored. MaxSim reads every token of the best 50 chunks of every question "
            "anew, which takes minutes where there are labelled questions.",
        )
    return cells_near(
        current, splitters, sizes, overlaps, limits, poolings, found_by, most_changes=most_changes
    )


def show_cost(missing: Sequence[Cell], cells: Sequence[Cell], search: Search) -> None:
    """Say how much there is to measure, and how long that takes at most."""
    if not missing:
        st.caption(f"All {len(cells):,} combinations are measured.")
        return
    n_tokens = (
        sum(len(document.text) for document in search.documents) / 4
    )  # a token has some four characters
    cuts = {(cell.splitting, cell.max_tokens, cell.pooling == "idf") for cell in missing}
    seconds = n_tokens * len(cuts) / TOKENS_PER_S + 0.1 * len(missing)
    duration = f"{seconds:.0f} seconds" if seconds < 90 else f"{seconds / 60:.0f} minutes"
    st.caption(
        f"{len(missing):,} of {len(cells):,} combinations are to be measured: about {duration}, less where "
        "texts were embedded before."
    )
    if search.cut.parent_tokens:
        st.caption("Small to big is left out here: all are cut into small chunks directly.")


def show_table(rows: Sequence[SweepRow], now: SweepRow) -> None:
    """Draw the rank under every setting that was measured."""
    k, n_others = now.cell.k, now.n_questions - 1
    found = sum((passage_rank(row) or k + 1) <= k for row in rows)
    st.write(f"Under **{found:,} of {len(rows):,}** settings it is among the first {k}.")
    table = []
    for row in sorted(rows, key=lambda row: passage_rank(row) or row.n_chunks + 1):  # of equals the nearest
        cell = row.cell
        entry: dict[str, object] = {
            "Rank": passage_rank(row),
            "Changed": "nothing (now)" if row is now else listed(changed_names(now.cell, cell), "and"),
            "Splitter": METHODS[cell.splitter],
            "Size": cell.chunk_tokens,
            "Overlap": cell.overlap,
            "Limit": cell.max_tokens,
            "Pooling": LABELS[cell.pooling],
            "Retriever": retrievers.LABELS[cell.retriever],
            "Chunks": row.n_chunks,
        }
        if n_others:
            entry["Others' hit@k"] = 100 * float(np.mean(row.values["hit_rate@k"][1:]))
        table.append(entry)
    st.dataframe(
        table,
        hide_index=True,
        column_config={
            "Rank": st.column_config.NumberColumn(help="Of the passage; chunks differ in size and number."),
            "Others' hit@k": st.column_config.NumberColumn(
                format="%.1f%%",
                help=f"Share of the {n_others:,} other labelled questions that find an answer in {k}.",
            ),
        },
        alt="The passage's rank under every setting that was measured, the best first",
    )
