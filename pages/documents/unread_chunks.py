"""The text of chunks that the encoder never reads, remedies, and the effect on a question."""

from collections.abc import Mapping, Sequence

import streamlit as st

from engine import Encoder
from engine.documents.document import Chunk, Document
from engine.documents.unread_text import UnreadReport, limit_changes, unread_reports
from engine.generation.prompt import assemble_prompt
from engine.inspection.diagnosis.counterfactual import (
    Counterfactual,
    TailVectors,
    counterfactuals,
    tail_vectors,
)
from engine.retrieval.embedding_spec import Query
from engine.retrieval.index import Index
from engine.retrieval.parents import search_parents
from engine.wording import counted
from ui.chunk_settings import Cut
from ui.corpus import all_chunks, index_documents, query_of
from ui.current import follow_question
from ui.figures import show_prompt_parts
from ui.look_inside import chunk_table
from ui.models import limits_of, load_decoder
from ui.progress import counting
from ui.settings_card import settings_in_use
from ui.tables import show_table
from ui.tokens import AS_DECODER_COUNTS
from ui.widgets import MOST_QUESTION, check_typed

MOST_ROWS = 50
LARGE = 512  # tokens: more than the usual limit
QUESTION = "What does the CarbFix project do with carbon dioxide?"


def show_budget(documents: Sequence[Document], encoder: Encoder, cut: Cut) -> None:
    """Draw the losses under each limit, remedies, the chunks that lose most, and the effect on a question."""
    chunks = all_chunks(documents, cut)
    if not chunks:
        st.info("The chosen documents hold no text.")
        return
    origins = limits_of(encoder)
    origins.setdefault(cut.max_tokens, "the limit in use")
    limits = sorted(origins)
    reports = dict(zip(limits, reports_of(documents, cut, tuple(limits), chunks, encoder), strict=True))
    chosen = reports[cut.max_tokens]
    if chosen.truncated:
        show_share_lost(chosen, cut)
    else:
        show_nothing_lost(chunks, cut)
    st.write("The same chunks under each limit:")
    show_limits(reports, origins, cut.max_tokens)
    if chosen.truncated:
        show_cures(chunks, encoder, cut)
        show_losses(chosen)
    st.header("What a question gets")
    changed = follow_question("budget-question", QUESTION)
    question = st.text_input("Question", key="budget-question", on_change=changed)
    if not check_typed(question, MOST_QUESTION).strip():
        st.info("Type a question to see which passages fit its prompt, and what lost text costs its ranking.")
        return
    show_prompt(question, documents, encoder, cut)
    if chosen.truncated:
        show_counterfactual(question, documents, encoder, cut)


@st.cache_resource(max_entries=8, show_spinner="Counting the tokens that are read…", scope="session")
def reports_of(
    documents: Sequence[Document],
    cut: Cut,
    limits: tuple[int, ...],
    _chunks: Sequence[Chunk],
    _encoder: Encoder,
) -> list[UnreadReport]:
    """Count the tokens of chunks that each limit loses, once for each setting."""
    encoder = cut.encoder(_encoder)
    return unread_reports(_chunks, encoder.tokenizer, [encoder.text_limit(limit) for limit in limits])


def show_limits(reports: Mapping[int, UnreadReport], origins: Mapping[int, str], chosen: int) -> None:
    """Draw the share of the text that no vector represents under each limit."""
    for column, (limit, report) in zip(st.columns(len(reports)), reports.items(), strict=True):
        with column.container(border=True, height="stretch"):
            st.markdown(f"**Limit {limit}**" + (" · in use" if limit == chosen else ""))
            st.caption(origins[limit])
            st.metric(
                "Text never seen",
                f"{report.characters_share:.1%}" if report.truncated else "none",
                help="Share of the characters that no chunk is read up to.",
            )
            st.write(
                f"{len(report.truncated):,} of {counted(report.n_chunks, 'chunk')} cut, "
                f"{report.tokens_lost:,} of {report.n_tokens:,} tokens lost"
            )


def show_share_lost(report: UnreadReport, cut: Cut) -> None:
    """Say how much of the text is not read under the settings in use."""
    st.warning(
        f"Not read to the end: {len(report.truncated):,} of {counted(report.n_chunks, 'chunk')}. They "
        f"have more tokens than the limit of {cut.max_tokens}, and {report.characters_share:.1%} of the text "
        "is in no vector.",
        icon=":material/content_cut:",
    )


def show_nothing_lost(chunks: Sequence[Chunk], cut: Cut) -> None:
    """Say that all text is read, and offer a setting under which it is not."""
    longest = max(chunk.n_tokens for chunk in chunks)
    st.success(
        f"Nothing is lost: the longest of {counted(len(chunks), 'chunk')} has {longest} tokens, within "
        f"the limit of {cut.max_tokens}.",
        icon=":material/check_circle:",
    )
    st.button(
        f"See what chunks of {LARGE} tokens would lose",
        on_click=set_sizes,
        args=(LARGE, None),
        icon=":material/content_cut:",
    )


def show_cures(chunks: Sequence[Chunk], encoder: Encoder, cut: Cut) -> None:
    """Draw a button for each setting under which nothing is lost."""
    st.header("Remedies")
    for number, cure in enumerate(limit_changes(chunks, cut.max_tokens, encoder.config.max_positions)):
        sizes: tuple[int | None, int | None]
        words, button = st.columns([3, 1], vertical_alignment="center")
        if cure.chunk_tokens is not None:
            sizes = (cure.chunk_tokens // 8 * 8, None)
            name = f"Cut chunks of {sizes[0]} tokens"
        else:
            sizes = (None, min(-(-cure.max_tokens // 8) * 8, encoder.config.max_positions))
            name = f"Read {sizes[1]} tokens"
        words.write(f"**{name}**: {cure.reason}.")
        button.button("Apply", key=f"cure-{number}", on_click=set_sizes, args=sizes, width="stretch")
    st.caption(
        "Smaller chunks keep one subject in each vector; a higher limit keeps the chunks, but reads further "
        "beyond the length that the model was trained on."
    )


def set_sizes(chunk_tokens: int | None, max_tokens: int | None) -> None:
    """Set the sidebar's chunk size or token limit, where given."""
    state = st.session_state
    if chunk_tokens is not None:
        state["chunk_tokens"] = chunk_tokens
    if max_tokens is not None:
        state["max_tokens"] = max_tokens


def show_losses(report: UnreadReport) -> None:
    """Draw the chunks that lose most, with their lost text."""
    st.header("What is lost")
    lost = report.truncated[:MOST_ROWS]
    chunk_table(
        [loss.chunk for loss in lost],
        [
            {
                "Document": loss.chunk.document,
                "Characters": f"{loss.start:,}–{loss.chunk.end:,}",
                "Tokens": loss.chunk.n_tokens,
                "Lost": loss.tokens_lost,
                "Text never read": loss.text.strip(),
            }
            for loss in lost
        ],
        "lost",
        f"The {len(lost)} chunks that lose most tokens",
        {"Text never read": st.column_config.TextColumn(width="large")},
    )
    if len(report.truncated) > MOST_ROWS:
        st.caption(f"The {MOST_ROWS} that lose most, of {len(report.truncated):,}.")


def search_of(
    question: str, documents: Sequence[Document], encoder: Encoder, cut: Cut
) -> tuple[Index, Query]:
    """Return the index of documents and the vector of a question, both by the app's pooling."""
    index = index_documents(documents, encoder, cut, settings_in_use(encoder)["pooling"])
    return index, query_of(question, index, encoder)


def show_prompt(question: str, documents: Sequence[Document], encoder: Encoder, cut: Cut) -> None:
    """Draw how many of the nearest passages fit the prompt."""
    now = settings_in_use(encoder)
    k, budget = now["k"], now["max_prompt_tokens"]
    index, query = search_of(question, documents, encoder, cut)
    hits = search_parents(index, query, k)
    prompt = assemble_prompt(question, hits, load_decoder(), budget)
    whole = sum(not source.cut for source in prompt.sources)
    st.write(
        f"**Of {counted(len(hits), 'nearest passage')}, the prompt holds {whole} whole**, "
        f"{len(prompt.sources) - whole} in part, {len(prompt.left_out)} not at all: {len(prompt.ids):,} of "
        f"{budget:,} tokens {AS_DECODER_COUNTS}."
    )
    show_prompt_parts(prompt)
    if prompt.left_out or whole < len(prompt.sources):
        st.caption("Smaller chunks, fewer passages or a larger prompt budget make them fit.")


def show_counterfactual(question: str, documents: Sequence[Document], encoder: Encoder, cut: Cut) -> None:
    """Draw the ranks of cut chunks for a question, and the ranks with their lost tails read."""
    st.write(
        "The rank of each cut chunk, and its rank if its lost tail were read: in one pass, or as separate "
        "windows that fit the limit."
    )
    index, query = search_of(question, documents, encoder, cut)
    found = counterfactuals(query.vector, tails_of(index, encoder))
    moved = [one for one in found if one.ranks_won > 0]
    if not moved:
        st.info("No cut chunk would rank higher for this question with its tail read.")
    else:
        best = moved[0]
        st.metric(
            "The chunk that loses most",
            f"{best.now.rank:,} → {min(best.whole.rank, best.windows.rank):,}",
            help="Its rank now, and with its tail read. All other chunks keep their scores.",
        )
    show_table(
        [row_of(one) for one in found[:MOST_ROWS]],
        "Ranks of cut chunks now, and with their tails read",
        {"Its text": st.column_config.TextColumn(width="large")},
    )


@st.cache_resource(max_entries=4, show_spinner=False, scope="session", hash_funcs={Index: id})
def tails_of(index: Index, _encoder: Encoder) -> TailVectors:
    """Embed the lost tails of an index, once for all questions."""
    with counting("Reading what was lost", "texts") as show:
        return tail_vectors(index, _encoder, on_progress=show)


def row_of(one: Counterfactual) -> dict[str, object]:
    """Return a chunk's ranks as a row of a table."""
    return {
        "Document": one.chunk.document,
        "From": one.chunk.start,
        "Lost tokens": one.tokens_lost,
        "Rank now": one.now.rank,
        "Read in one go": one.whole.rank,
        "Read in windows": one.windows.rank,
        "Ranks won": one.ranks_won,
        "Its text": one.chunk.text[:300],
    }
