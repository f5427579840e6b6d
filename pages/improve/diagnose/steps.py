"""The steps from the document to the rank of a passage, and what went wrong at each."""

from collections.abc import Sequence
from html import escape

import streamlit as st

from engine.documents.unread_text import read_ends
from engine.inspection.diagnosis.causes import InUse
from engine.inspection.diagnosis.diagnose import Cause, Diagnosis
from engine.inspection.diagnosis.location import Location
from engine.retrieval.retrievers import RETRIEVERS
from pages.improve.diagnose.ask import Asked, Search
from pages.improve.diagnose.rank import Ranking
from ui.chunk_paint import near_to, painted
from ui.look_inside import chunk_table
from ui.text import escape_markdown, show_text

CONTEXT = 400  # characters shown on either side of the passage, at most
TITLES = {
    "not in the corpus": ("It is not in the documents", ":material/folder_off:"),
    "truncated": ("It lies behind the token limit", ":material/content_cut:"),
    "split": ("It is cut across a border", ":material/vertical_split:"),
    "near duplicates": ("Near duplicates take its place", ":material/content_copy:"),
    "pooled away": ("It is lost in a long chunk", ":material/blur_on:"),
    "word mismatch": ("Its words match, its vector does not", ":material/spellcheck:"),
    "other words": ("The question uses other words", ":material/translate:"),
    "retriever": ("The retriever puts others first", ":material/leaderboard:"),
    "outranked": ("Others rank higher", ":material/leaderboard:"),
}


def show_causes(causes: Sequence[Cause], used: InUse | None = None) -> None:
    """Draw the diagnosis in short: the passage was found, or the causes, the easiest to fix first."""
    st.header("In short")
    if used is not None and used.finds:
        st.success(
            f"It was found: it ranks {used.rank:,}, and the first {used.cell.k:,} count.",
            icon=":material/check_circle:",
        )
    elif used is not None and used.cell.retriever != "dense":
        outcome = f"{used.outcome[0].upper()}{used.outcome[1:]}"
        st.caption(f"{escape_markdown(outcome)}. Ranks by cosine, below, are those of its vector alone.")
    for cause in causes:
        title, icon = TITLES[cause.kind]
        st.warning(f"**{title}.** {escape_markdown(cause.sentence)}", icon=icon)


def show_place(asked: Asked) -> None:
    """Draw whether a chosen document contains the passage."""
    st.header("1 · Is the text in a document?")
    place = asked.place
    if place is None:
        st.write("**No.** No chosen document contains it, or most of its words in the same order.")
        show_text(escape(asked.passage))
        return
    where = f"{escape_markdown(place.document)}, characters {place.start:,} to {place.end:,}"
    match place.how:
        case "exact":
            st.write(f"**Yes**, word for word: {where}.")
        case "alike":
            st.write(f"**Yes**, with other white space, quotation marks or dashes: {where}.")
        case "approximate":
            st.write(
                f"**Something like it**, alike to {place.likeness:.0%}: {where}. The rest is about this."
            )


def show_chunks(place: Location, search: Search, found: Diagnosis, ranking: Ranking) -> None:
    """Draw the chunks that contain the passage, painted on its text."""
    st.header("2 · Into which chunks was it cut?")
    n_held, most = len(found.held), found.share
    if n_held == 1:
        st.write(
            "**One chunk** contains all of it." if most == 1 else f"**One chunk** contains {most:.0%} of it."
        )
    elif most == 1:
        st.write(f"**{n_held} chunks** overlap in it, and at least one contains all of it.")
    else:
        st.write(f"**{n_held} chunks** share it: none contains more than {most:.0%}.")
    document, index = search.document(place.document), search.index
    rows = [row for row, chunk in enumerate(index.chunks) if chunk.document == place.document]
    chunks = [index.chunks[row] for row in rows]
    start = max(0, place.start - CONTEXT)
    end = min(len(document.text), place.end + CONTEXT)
    near = near_to(chunks, start, end)
    stops = read_ends([chunks[n] for n in near], search.encoder.tokenizer, index.spec.max_tokens)
    ends = dict(zip(near, stops, strict=True))
    parts = [(start, place.start), (place.start, place.end), (place.end, end)]
    before, passage, after = (
        painted(document, chunks, ends, *part) if part[0] < part[1] else "" for part in parts
    )
    underlined = f'<span style="text-decoration:underline 2px;font-weight:600">{passage}</span>'
    show_text(f"{'…' * (start > 0)}{before}{underlined}{after}{'…' * (end < len(document.text))}", height=420)
    st.caption("The passage is underlined; each chunk has its tint and its number in the document.")
    chunk_table(
        [index.chunks[each.row] for each in found.held],
        [
            {
                "Chunk": rows.index(each.row) + 1,
                "Holds of it": each.share,
                "Reads of it": each.read,
                "Tokens": index.chunks[each.row].n_tokens,
                "Rank": 1 + ranking.order.index(each.row),
                "Cosine": float(found.scores[each.row]),
            }
            for each in found.held
        ],
        "held",
        "The chunks that contain some of the passage",
        {
            "Holds of it": st.column_config.NumberColumn(format="percent"),
            "Reads of it": st.column_config.NumberColumn(format="percent"),
            "Cosine": st.column_config.NumberColumn(format="%.3f"),
        },
    )


def show_lost(place: Location, search: Search, found: Diagnosis) -> None:
    """Draw the part of the passage beyond the token limit."""
    st.header("3 · Was any of it lost to the token limit?")
    document, limit = search.document(place.document), search.index.spec.max_tokens
    if not found.unread:
        st.write(f"**No.** All of it is within the {limit} tokens that are read of a chunk.")
        return
    st.write(
        f"**Yes:** {found.n_unread:,} of its {found.length:,} characters are beyond the {limit} tokens that "
        "are read of a chunk:"
    )
    lost = " … ".join(escape(document.text[start:end]) for start, end in found.unread)
    show_text(f"<del>{lost}</del>", height=160)
    if found.tail_read:
        st.write(
            f"Had its chunk been read to the end, it would rank **{found.tail_read.rank:,}** instead of "
            f"{found.now.rank:,} by cosine."
        )
    if RETRIEVERS[search.retriever].uses_bm25:
        st.caption("The limit is the encoder's: BM25, which is in use, reads the words of whole chunks.")
