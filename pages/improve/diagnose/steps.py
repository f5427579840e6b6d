"""The steps from the document to the rank of a passage, and what went wrong at each."""

from collections.abc import Sequence
from html import escape

import streamlit as st
from streamlit.column_config import NumberColumn

from engine.documents.truncation import read_ends
from engine.inspection.diagnosis.causes import InUse
from engine.inspection.diagnosis.diagnose import Cause, Diagnosis
from engine.inspection.diagnosis.location import Location
from engine.retrieval.embedding_spec import NO_LIMIT
from engine.retrieval.retrievers import RETRIEVERS
from pages.improve.diagnose.ask import Asked
from pages.improve.diagnose.rank import Ranking
from ui.chunk_paint import near_to, painted
from ui.look_inside import chunk_table
from ui.report import Report
from ui.search import Search
from ui.text import Strong

IN_SHORT = "In short"
IN_A_DOCUMENT = "1 · Is the text in a document?"
CHUNKS = "2 · Into which chunks was it cut?"
UNREAD = "3 · Is any of it never read?"
PAINTED = "The passage is underlined; each chunk has its tint and its number in the document."
READS_ALL = "The limit is the encoder's: BM25, which is in use, reads the words of whole chunks."
MEASURED = "Measured below:"
CONTEXT = 400  # characters shown on either side of the passage, at most
TITLES = {
    "not in the corpus": ("It is not in the documents", ":material/folder_off:"),
    "prompts left out": ("The model's prompts are missing", ":material/speaker_notes_off:"),
    "truncated": ("It lies behind the token limit", ":material/content_cut:"),
    "split": ("It is cut across a border", ":material/vertical_split:"),
    "near duplicates": ("Near duplicates take its place", ":material/content_copy:"),
    "pooled away": ("It is lost in a long chunk", ":material/blur_on:"),
    "word mismatch": ("Its words match, its vector does not", ":material/spellcheck:"),
    "other words": ("The question uses other words", ":material/translate:"),
    "retriever": ("The retriever puts others first", ":material/leaderboard:"),
    "not relevant": ("It is found, but too far from the question", ":material/straighten:"),
    "outranked": ("Others rank higher", ":material/leaderboard:"),
}


def show_causes(
    report: Report, causes: Sequence[Cause], used: InUse | None = None, fix: Sequence[str] = ()
) -> None:
    """Draw the diagnosis in short: the passage was found, or the causes, the easiest to fix first.

    ``fix`` says what was measured to help; it stands in place of advice.
    """
    report.header(IN_SHORT)
    if used is not None and used.finds:
        found = f"It was found: it ranks {used.rank:,}, and the first {used.configuration.k:,} count."
        report.note(st.success, ":material/check_circle:", found)
    elif used is not None and used.configuration.retriever != "dense":
        outcome = f"{used.outcome[0].upper()}{used.outcome[1:]}"
        report.caption(f"{outcome}. Ranks by cosine, below, are those of its vector.")
    for cause in causes:
        title, icon = TITLES[cause.kind]
        words = cause.headline if fix else cause.sentence
        report.note(st.warning, icon, Strong(f"{title}."), f" {words}")
    if fix and causes:
        report.note(st.info, ":material/tune:", f"{MEASURED} ", *fix)


def show_place(report: Report, asked: Asked) -> None:
    """Draw whether a chosen document contains the passage."""
    report.header(IN_A_DOCUMENT)
    place = asked.place
    if place is None:
        nowhere = " No chosen document contains it, or most of its words in the same order."
        report.sentence(Strong("No."), nowhere)
        report.text(escape(asked.passage))
        return
    where = f"{place.document}, characters {place.start:,} to {place.end:,}"
    match place.how:
        case "exact":
            report.sentence(Strong("Yes"), f", word for word: {where}.")
        case "alike":
            spelled = f", with other white space, quotation marks or dashes: {where}."
            report.sentence(Strong("Yes"), spelled)
        case "approximate":
            rest = f", alike to {place.likeness:.0%}: {where}. The rest is about this."
            report.sentence(Strong("Something like it"), rest)


def show_chunks(report: Report, place: Location, search: Search, found: Diagnosis, ranking: Ranking) -> None:
    """Draw the chunks that contain the passage, painted on its text."""
    report.header(CHUNKS)
    n_held, most, numbers = len(found.overlaps), found.share, chunk_numbers(place, search)
    if n_held == 1:
        report.sentence(Strong("One chunk"), f" contains {'all' if most == 1 else f'{most:.0%}'} of it.")
    elif most == 1:
        report.sentence(Strong(f"{n_held} chunks"), " overlap in it, and at least one contains all of it.")
    else:
        report.sentence(Strong(f"{n_held} chunks"), f" share it: none contains more than {most:.0%}.")
    report.text(passage_html(place, search), height=420)
    report.caption(PAINTED)
    chunk_table(
        [search.index.chunks[each.row] for each in found.overlaps],
        [
            {
                "Chunk": numbers[each.row],
                "Holds of it": each.share,
                "Reads of it": each.read,
                "Tokens": search.index.chunks[each.row].n_tokens,
                "Rank": 1 + ranking.order.index(each.row),
                "Cosine": float(found.scores[each.row]),
            }
            for each in found.overlaps
        ],
        "held",
        "The chunks that contain some of the passage",
        {
            "Holds of it": NumberColumn(format="percent"),
            "Reads of it": NumberColumn(format="percent"),
            "Cosine": NumberColumn(format="%.3f"),
        },
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


def show_lost(report: Report, place: Location, search: Search, found: Diagnosis) -> None:
    """Draw the part of the passage beyond the token limit."""
    report.header(UNREAD)
    limit, text = search.cut.text_limit(search.model), search.document(place.document).text
    if limit == NO_LIMIT:
        report.sentence(Strong("Not known:"), f" {search.model.name} does not state its token limit.")
        return
    if not found.unread:
        report.sentence(Strong("No."), f" All of it is within the {limit} tokens that are read of a chunk.")
        return
    report.sentence(
        Strong("Yes:"),
        f" {found.n_unread:,} of its {found.length:,} characters are beyond the {limit} tokens that are read "
        "of a chunk:",
    )
    struck = " … ".join(escape(text[start:end]) for start, end in found.unread)
    report.text(f"<del>{struck}</del>", height=160)
    if found.tail_read:
        report.sentence(
            "Had its chunk been read to the end, it would rank ",
            Strong(f"{found.tail_read.rank:,}"),
            f" instead of {found.now.rank:,} by cosine.",
        )
    if RETRIEVERS[search.retriever].uses_bm25:
        report.caption(READS_ALL)
