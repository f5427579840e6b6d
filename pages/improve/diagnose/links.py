"""The cause in one sentence, the links from the file to the answer, and the passage with its chunks."""

import streamlit as st
from streamlit.column_config import NumberColumn

from engine.documents.truncation import read_ends
from engine.inspection.diagnosis.chain import Chain
from engine.inspection.diagnosis.diagnose import Diagnosis
from engine.inspection.diagnosis.location import Location
from engine.installed import rows_of
from ui.chunk_paint import near_to, painted
from ui.look_inside import chunk_table
from ui.report import Report
from ui.search import Search
from ui.text import Strong

CHAIN = "From the file to the answer"
CHUNKS = "The passage and its chunks"
PAINTED = "The passage is underlined; each chunk has its tint and its number in the document."
CONTEXT = 400  # characters shown on either side of the passage, at most
MARKS = {True: "✓", False: "✗", None: "–"}
CAUSES = {row["cause"]: row for row in rows_of("causes.csv")}  # with title and icon


def show_cause(report: Report, found: Diagnosis) -> None:
    """Draw the cause in one sentence."""
    report.header("In short")
    title, icon = CAUSES[found.cause]["title"], CAUSES[found.cause]["icon"]
    report.note(
        st.success if found.cause == "none" else st.warning, icon, Strong(f"{title}."), f" {found.sentence}"
    )


def show_chain(report: Report, chain: Chain) -> None:
    """Draw the links in order, each with its evidence; the first that broke stands out."""
    report.header(CHAIN)
    for link in chain.links:
        words = (Strong(f"{MARKS[link.holds]} {link.title}."), f" {link.evidence}")
        if link == chain.broken:
            report.note(st.warning, ":material/link_off:", *words)
        else:
            report.sentence(*words)


def show_passage(report: Report, place: Location, chain: Chain, search: Search) -> None:
    """Draw the chunks that hold the passage, painted on its text."""
    report.header(CHUNKS)
    report.text(passage_html(place, search), height=420)
    report.caption(PAINTED)
    numbers, ranking = chunk_numbers(place, search), chain.ranking
    chunk_table(
        [search.index.chunks[each.row] for each in chain.overlaps],
        [
            {
                "Chunk": numbers[each.row],
                "Holds of it": each.share,
                "Reads of it": each.read,
                "Tokens": search.index.chunks[each.row].n_tokens,
                "Rank": 1 + ranking.order.index(each.row) if ranking else None,
            }
            for each in chain.overlaps
        ],
        "held",
        "The chunks that contain some of the passage",
        {"Holds of it": NumberColumn(format="percent"), "Reads of it": NumberColumn(format="percent")},
        report.table,
    )


def chunk_numbers(place: Location, search: Search) -> dict[int, int]:
    """Return the number of each chunk in the passage's document, from 1, by its row in the index."""
    rows = (row for row, chunk in enumerate(search.index.chunks) if chunk.document == place.document)
    return {row: number for number, row in enumerate(rows, 1)}


def passage_html(place: Location, search: Search) -> str:
    """Return the passage, underlined, and the text around it, each chunk in its tint."""
    document, index = search.document(place.document), search.index
    chunks = [index.chunks[row] for row in chunk_numbers(place, search)]
    start = max(0, place.start - CONTEXT)
    end = min(len(document.text), place.end + CONTEXT)
    near = near_to(chunks, start, end)
    stops = read_ends([chunks[n] for n in near], search.model.tokenizer, search.cut.text_limit(search.model))
    ends = dict(zip(near, stops, strict=True))
    parts = [(start, place.start), (place.start, place.end), (place.end, end)]
    before, passage, after = (
        painted(document, chunks, ends, *part) if part[0] < part[1] else "" for part in parts
    )
    underlined = f'<span style="text-decoration:underline 2px;font-weight:600">{passage}</span>'
    return f"{'…' * (start > 0)}{before}{underlined}{after}{'…' * (end < len(document.text))}"
