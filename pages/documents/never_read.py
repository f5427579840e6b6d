"""The tab of the text of chunks that the encoder never reads."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import streamlit as st
from streamlit.column_config import TextColumn

from engine import Encoder
from engine.documents.document import Chunk, Document
from engine.documents.splitters import MIN_CHUNK_TOKENS
from engine.documents.truncation import TruncationReport, over_limit, truncation_reports
from engine.generation.prompt import assemble_prompt
from engine.inspection.diagnosis.counterfactual import TailVectors, counterfactuals, tail_vectors
from engine.retrieval.embedding_model import Model
from engine.retrieval.embedding_spec import Query
from engine.retrieval.index import Index
from engine.retrieval.parents import search_parents
from engine.wording import counted
from ui.chunk_settings import Cut
from ui.corpus import all_chunks, index_documents, query_of
from ui.current import follow_question
from ui.documents import OF_DOCUMENTS, NoDocumentError, are_bundled
from ui.figures import show_prompt_parts
from ui.look_inside import chunk_table
from ui.models import limits_of, load_decoder
from ui.progress import counting
from ui.setting_values import set_values, settings_in_use
from ui.tables import show_table
from ui.tokens import AS_DECODER_COUNTS
from ui.uploaded_vectors import reason_unavailable, uploaded_vectors
from ui.widgets import MOST_QUESTION, check_typed

MAX_ROWS_SHOWN = 50  # of cut chunks
LARGE_CHUNK = 512  # tokens: more than the usual limit
QUESTION = "What does the CarbFix project do with carbon dioxide?"


def show_never_read(documents: Sequence[Document], model: Model, cut: Cut) -> None:
    """Draw what each limit cuts, remedies, the chunks that are cut most, and the effect on a question."""
    if (uploaded := uploaded_vectors(documents)) is not None:
        reason = reason_unavailable(uploaded, "What is never read is found by reading the documents anew")
        raise NoDocumentError(reason)
    encoder = model.as_encoder
    assert encoder is not None, "the model of documents that the app embeds"
    chunks = all_chunks(documents, cut)
    if not chunks:
        st.info("The chosen documents hold no text.")
        return
    chosen = show_limits(documents, encoder, cut, chunks)
    if chosen.truncated:
        show_remedies(chunks, encoder, cut)
        show_truncated(chosen)
    elif st.toggle(f"See what is never read of chunks of {LARGE_CHUNK} tokens; your settings stay"):
        large = replace(cut, chunk_tokens=LARGE_CHUNK)
        show_truncated(show_limits(documents, encoder, large, all_chunks(documents, large)))
        return
    st.header("What a question gets")
    changed = follow_question("budget-question", QUESTION if are_bundled(documents) else "")
    question = st.text_input("Question", key="budget-question", on_change=changed)
    if not check_typed(question, MOST_QUESTION).strip():
        st.info("Type a question to see which passages fit its prompt, and what its search misses.")
        return
    index = index_documents(documents, encoder, cut, settings_in_use(encoder)["pooling"])
    query = query_of(question, index, encoder)
    show_prompt(question, query, index, settings_in_use(encoder))
    if chosen.truncated:
        show_ranks(query, index, encoder)


def show_limits(
    documents: Sequence[Document], encoder: Encoder, cut: Cut, chunks: Sequence[Chunk]
) -> TruncationReport:
    """Draw what each limit cuts of chunks; return the report of the limit in use."""
    origins = limits_of(encoder)
    origins.setdefault(cut.max_tokens, "the limit in use")
    limits = sorted(origins)
    reports = dict(zip(limits, reports_of(documents, cut, tuple(limits), chunks, encoder), strict=True))
    chosen = reports[cut.max_tokens]
    show_headline(chosen, chunks, cut)
    st.write("The same chunks under each limit:")
    for column, (limit, report) in zip(st.columns(len(reports)), reports.items(), strict=True):
        with column.container(border=True, height="stretch"):
            st.markdown(f"**Limit {limit}**" + (" · in use" if limit == cut.max_tokens else ""))
            st.caption(origins[limit])
            st.metric(
                "Text never read",
                f"{report.share_unread:.1%}" if report.truncated else "none",
                help="Share of the characters that are in no vector.",
            )
            st.write(f"{len(report.truncated):,} of {counted(report.n_chunks, 'chunk')} cut")
    return chosen


@st.cache_resource(max_entries=8, show_spinner="Counting the tokens that are read…", **OF_DOCUMENTS)
def reports_of(
    documents: Sequence[Document],
    cut: Cut,
    limits: tuple[int, ...],
    _chunks: Sequence[Chunk],
    _encoder: Encoder,
) -> list[TruncationReport]:
    """Count what each limit truncates of chunks, once for each setting."""
    encoder = cut.encoder(_encoder)
    return truncation_reports(_chunks, encoder.tokenizer, [encoder.text_limit(limit) for limit in limits])


def show_headline(report: TruncationReport, chunks: Sequence[Chunk], cut: Cut) -> None:
    """Say how much of the chunks is never read under a limit."""
    if report.truncated:
        st.warning(
            f"Not read to the end: {len(report.truncated):,} of {counted(report.n_chunks, 'chunk')}, with "
            f"more tokens than the limit of {cut.max_tokens}: {report.share_unread:.1%} of the text is in no "
            "vector.",
            icon=":material/content_cut:",
        )
        return
    longest = max(chunk.n_tokens for chunk in chunks)
    st.success(
        f"Every chunk is read whole: the longest of {counted(len(chunks), 'chunk')} has {longest} tokens, "
        f"within the limit of {cut.max_tokens}.",
        icon=":material/check_circle:",
    )


def show_remedies(chunks: Sequence[Chunk], encoder: Encoder, cut: Cut) -> None:
    """Draw a button for each setting under which every chunk is read whole."""
    st.header("Remedies")
    limit, positions = cut.max_tokens, encoder.config.max_positions
    longest = max(chunk.n_tokens for chunk in over_limit(chunks, cut.text_limit(encoder)))
    remedies: list[tuple[str, str, dict[str, int]]] = []
    if limit >= MIN_CHUNK_TOKENS:
        size = limit // 8 * 8
        reason = f"a chunk of {limit} tokens is just what is read of one"
        remedies.append((f"Cut chunks of {size} tokens", reason, {"chunk_tokens": size}))
    if longest <= positions:
        raised = min(-(-longest // 8) * 8, positions)
        reason = f"the longest chunk has {longest} tokens, and the model has {positions} positions"
        remedies.append((f"Read {raised} tokens", reason, {"max_tokens": raised}))
    for number, (name, reason, settings) in enumerate(remedies):
        words, button = st.columns([3, 1], vertical_alignment="center")
        words.write(f"**{name}**: {reason}.")
        button.button("Apply", key=f"remedy-{number}", on_click=set_values, args=(settings,), width="stretch")
    st.caption(
        "Smaller chunks keep one subject in each vector; a higher limit keeps the chunks, but reads further "
        "beyond the length that the model was trained on."
    )


def show_truncated(report: TruncationReport) -> None:
    """Draw the chunks that are cut most, with their text that is never read."""
    st.header("What is never read")
    shown = report.truncated[:MAX_ROWS_SHOWN]
    chunk_table(
        [each.chunk for each in shown],
        [
            {
                "Document": each.chunk.document,
                "Characters": f"{each.start:,}–{each.chunk.end:,}",
                "Tokens": each.chunk.n_tokens,
                "Never read": each.tokens_truncated,
                "Text never read": each.text.strip(),
            }
            for each in shown
        ],
        "truncated",
        "The chunks with most tokens never read",
        {"Text never read": TextColumn(width="large")},
    )
    if len(report.truncated) > MAX_ROWS_SHOWN:
        st.caption(f"The {MAX_ROWS_SHOWN} with most tokens never read, of {len(report.truncated):,}.")


def show_prompt(question: str, query: Query, index: Index, settings: Mapping[str, int]) -> None:
    """Draw how many of the nearest passages fit the prompt."""
    budget = settings["max_prompt_tokens"]
    hits = search_parents(index, query, settings["k"])
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


def show_ranks(query: Query, index: Index, encoder: Encoder) -> None:
    """Draw the ranks of cut chunks for a question, and the ranks with their ends read."""
    st.write(
        "The rank of each cut chunk, and its rank if its end were read: in one pass, or as separate "
        "windows that fit the limit."
    )
    found = counterfactuals(query.vector, tails_of(index, encoder))
    best = found[0]
    if best.ranks_won <= 0:
        st.info("No cut chunk would rank higher for this question with its end read.")
    else:
        st.metric(
            "The chunk that would rise most",
            f"{best.now.rank:,} → {min(best.whole.rank, best.windows.rank):,}",
            help="Its rank now, and with its end read. All other chunks keep their scores.",
        )
    show_table(
        [
            {
                "Document": one.chunk.document,
                "From": one.chunk.start,
                "Tokens never read": one.tokens_truncated,
                "Rank now": one.now.rank,
                "Read in one go": one.whole.rank,
                "Read in windows": one.windows.rank,
                "Ranks won": one.ranks_won,
                "Its text": one.chunk.text[:300],
            }
            for one in found[:MAX_ROWS_SHOWN]
        ],
        "Ranks of cut chunks now, and with their ends read",
        {"Its text": TextColumn(width="large")},
    )


@st.cache_resource(max_entries=4, show_spinner=False, scope="session", hash_funcs={Index: id})
def tails_of(index: Index, _encoder: Encoder) -> TailVectors:
    """Embed the ends of an index's cut chunks, once for all questions."""
    with counting("Reading the ends of chunks", "texts") as show:
        return tail_vectors(index, _encoder, on_progress=show)
