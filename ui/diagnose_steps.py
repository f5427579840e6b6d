"""The way of a passage from the file to its rank, step by step, with what went wrong at each."""

from collections.abc import Sequence
from html import escape

import streamlit as st

from engine.documents.budget import read_ends
from engine.inspection.diagnosis import Cause, Diagnosis
from engine.inspection.diagnosis_place import Location
from engine.inspection.health import NEAR
from engine.retrieval.index import Index
from ui.answer import escape_markdown
from ui.chunk_paint import near_to, painted
from ui.diagnose_ask import Asked, Search
from ui.health import listed
from ui.pooling_explained import show_explained
from ui.text import show_text

CONTEXT = 400  # characters on either side of the passage that are shown at most
MOST_ABOVE = 10
TITLES = {
    "not in the corpus": ("It is not in the documents", ":material/folder_off:"),
    "truncated": ("It lies behind the token limit", ":material/content_cut:"),
    "split": ("It is cut across a border", ":material/vertical_split:"),
    "near duplicates": ("Near duplicates take its place", ":material/content_copy:"),
    "pooled away": ("It is lost in a long chunk", ":material/blur_on:"),
    "word mismatch": ("Its words match, its vector does not", ":material/spellcheck:"),
    "other words": ("The question uses other words", ":material/translate:"),
    "outranked": ("Others are nearer", ":material/leaderboard:"),
}


def show_verdict(diagnosis: Diagnosis | None, causes: Sequence[Cause]) -> None:
    """Draw the answer in short: the causes, the one that is mended most directly first."""
    st.subheader("In short")
    if diagnosis is not None and diagnosis.found:
        st.success(
            f"It was found: it ranks {diagnosis.now.rank:,}, and the first {diagnosis.k:,} count.",
            icon=":material/check_circle:",
        )
    for cause in causes:
        title, icon = TITLES[cause.kind]
        st.warning(f"**{title}.** {escape_markdown(cause.sentence)}", icon=icon)


def show_place(asked: Asked) -> None:
    """Draw whether the text is in a loaded document."""
    st.subheader("1 · Is the text in a document?")
    place = asked.place
    if place is None:
        st.write("**No.** No chosen document has it, or a place with most of its words in the same order.")
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


def show_chunks(place: Location, search: Search, found: Diagnosis) -> None:
    """Draw the chunks that hold the passage, painted on its text."""
    st.subheader("2 · Into which chunks was it cut?")
    n_held, most = len(found.held), found.share
    if n_held == 1:
        st.write("**One chunk** holds all of it." if most == 1 else f"**One chunk** holds {most:.0%} of it.")
    elif most == 1:
        st.write(f"**{n_held} chunks** overlap in it, and one or more hold all of it.")
    else:
        st.write(f"**{n_held} chunks** share it: none holds more than {most:.0%}.")
    document, index = search.document(place.document), search.index
    rows = [row for row, chunk in enumerate(index.chunks) if chunk.document == place.document]
    chunks = [index.chunks[row] for row in rows]
    start = max(0, place.start - CONTEXT)
    end = min(len(document.text), place.end + CONTEXT)
    near = near_to(chunks, start, end)
    stops = read_ends([chunks[n] for n in near], search.encoder.tokenizer, index.kind.max_tokens)
    ends = dict(zip(near, stops, strict=True))
    parts = [(start, place.start), (place.start, place.end), (place.end, end)]
    before, passage, after = (
        painted(document, chunks, ends, *part) if part[0] < part[1] else "" for part in parts
    )
    underlined = f'<span style="text-decoration:underline 2px;font-weight:600">{passage}</span>'
    show_text(f"{'…' * (start > 0)}{before}{underlined}{after}{'…' * (end < len(document.text))}", height=420)
    st.caption("The passage is underlined; each chunk has its tint and its number in the document.")
    st.dataframe(
        [
            {
                "Chunk": rows.index(each.row) + 1,
                "Holds of it": each.share,
                "Reads of it": each.read,
                "Tokens": index.chunks[each.row].n_tokens,
                "Rank": 1 + int((found.scores > found.scores[each.row]).sum()),
                "Cosine": float(found.scores[each.row]),
            }
            for each in found.held
        ],
        hide_index=True,
        column_config={
            "Holds of it": st.column_config.NumberColumn(format="percent"),
            "Reads of it": st.column_config.NumberColumn(format="percent"),
            "Cosine": st.column_config.NumberColumn(format="%.3f"),
        },
        alt="The chunks that hold some of the passage",
    )


def show_lost(place: Location, search: Search, found: Diagnosis) -> None:
    """Draw what of the passage lies behind the token limit."""
    st.subheader("3 · Was any of it lost to the token limit?")
    document, limit = search.document(place.document), search.index.kind.max_tokens
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
            f"{found.now.rank:,}."
        )


def show_rank(question: str, search: Search, found: Diagnosis) -> None:
    """Draw the passage's rank, what ranks above it, and what the similarity of either is made of."""
    st.subheader("4 · Where does it rank, and what outranks it?")
    index = search.index
    bm25 = f"{found.bm25.rank:,}" if found.bm25.score > 0 else "not found"
    figures = {
        "Rank": (f"{found.now.rank:,} of {len(index.chunks):,}", "Of the best of its chunks, as of now."),
        "Cosine": (f"{found.now.score:.3f}", "Of its chunk's vector with the question's."),
        "Alone": (f"{found.alone.rank:,}", "Its rank, had the passage been a chunk of its own."),
        "By words (BM25)": (bm25, "Its rank by the words in common with the question, the rarer the better."),
        "Without repeats": (
            f"{found.without_repeats:,}",
            f"Its rank, had all that say the same (a cosine above {NEAR:.2f}) one place together.",
        ),
    }
    with st.container(horizontal=True):
        for name, (value, words) in figures.items():
            st.metric(name, value, help=words, width="content")
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
    if not found.above:
        st.write("Nothing ranks above it.")
    else:
        show_above(index, found)
    show_contributions(question, search, found)


def show_above(index: Index, found: Diagnosis) -> None:
    """List the chunks that rank higher, and which of them repeat one another."""
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
            for rank, row in enumerate(found.above[:MOST_ABOVE], 1)
        ],
        hide_index=True,
        column_config={
            "Cosine": st.column_config.NumberColumn(format="%.3f"),
            "Repeats": st.column_config.TextColumn(help="Chunks of one group say nearly the same."),
            "Text": st.column_config.TextColumn(width="large"),
        },
        alt="The chunks that rank above the passage, best first",
    )
    if len(found.above) > MOST_ABOVE:
        st.caption(f"The first {MOST_ABOVE} of {len(found.above):,} that rank above it.")


def repeats(row: int, group_of: dict[int, int], own: int) -> str:
    """Say which group of near duplicates a chunk is of."""
    if row not in group_of:
        return ""
    return "the passage" if group_of[row] == group_of.get(own) else f"group {group_of[row]}"


def show_contributions(question: str, search: Search, found: Diagnosis) -> None:
    """Draw, on demand, what the similarity of the passage's chunk and of one above it is made of."""
    index = search.index
    encoder, limit = index.encoder(search.encoder), index.kind.max_tokens
    pairs = {"passage": ("What its chunk shares with the question", found.row)}
    if found.above:
        pairs["above"] = ("What the best chunk shares with the question", found.above[0])
    for key, (title, row) in pairs.items():
        if index.kind.pooling != "pooler":
            st.session_state.setdefault(f"diagnose-{key}-strategy", index.kind.pooling)
        box = st.expander(title, key=f"diagnose-{key}", on_change="rerun", icon=":material/join_inner:")
        if box.open:
            with box:
                show_explained(encoder, limit, question, index.chunks[row].text, f"diagnose-{key}")
