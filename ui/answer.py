"""An answer on the page: its text, its passages, and how it came about."""

from collections.abc import Sequence
from html import escape
from urllib.parse import urlsplit

import streamlit as st

from engine.documents.document import Document
from engine.generation.answering import Answer, Timings
from ui.closeness import chance_words, score_words, show_closeness
from ui.figures import readable_seconds, timing_figure, token_figure
from ui.text import in_context, mark_colour, show_text

# Characters shown around a passage, and around the passages of a whole document: a browser is slow
# with more.
PASSAGE_CONTEXT, DOCUMENT_CONTEXT = 240, 100_000

SCORE_HELP = (
    "The cosine between the vectors of question and passage: 1 is the same direction. It is no percentage, "
    "and its scale is the model's own; so beside it stands how many pairs of an unrelated question and a "
    "passage of these documents have a smaller one, and by how much the next passage's is smaller."
)
NO_TEXT = {
    "stop": "(the model ended its answer at once)",
    "length": "(no word within the longest answer allowed)",
    "stopped": "(stopped before the first word)",
}


def show_answer(answer: Answer, documents: Sequence[Document]) -> None:
    """Draw an answer and everything it rests on."""
    if answer.prompt is None:
        show_nothing_found(answer)
        return
    show_text(escape(answer.text) or NO_TEXT[answer.finish_reason or "stop"])
    if answer.finish_reason == "length":
        st.caption("Cut at the longest answer allowed; the limit is under Answer in the sidebar.")
    if answer.finish_reason == "stopped":
        st.caption("You stopped it here.")
    name = escape_markdown(answer.model or "")
    writer = f"{name} at {urlsplit(answer.server).netloc}" if answer.server else f"a small model ({name})"
    st.caption(
        f"Written by {writer} from {len(answer.sources)} passages: "
        "it makes mistakes, so check it against the sources."
    )
    sources, document, timing, prompt = st.tabs(["Sources", "In the documents", "Timing", "Exact prompt"])
    by_name = {document.name: document for document in documents if is_unchanged(document, answer)}
    with sources:
        show_sources(answer, by_name)
    with document:
        show_documents(answer, by_name)
    with timing:
        show_timing(answer)
    with prompt:
        show_prompt(answer)


def is_unchanged(document: Document, answer: Answer) -> bool:
    """Whether the document still says what the answer's sources quote of it."""
    return all(
        document.text[source.start : source.end] == source.text
        for source in answer.sources
        if source.document == document.name
    )


def show_nothing_found(answer: Answer) -> None:
    """Say that no passage is close enough, and how close the nearest come."""
    st.info(answer.text, icon=":material/search_off:")
    relevance = answer.background.relevance(answer.hits[0].score)
    st.caption(
        f"The nearest passage: {score_words(answer, 0)}. But {chance_words(relevance)}, and at most "
        f"{100 - answer.min_relevance:.0f} may. "
        "Ask in other words, add a document, or move the relevance threshold under Search in the sidebar."
    )
    with st.expander("The nearest passages, too far to be used"):
        for rank, hit in enumerate(answer.hits):
            st.caption(f"{escape_markdown(hit.chunk.document)} · {score_words(answer, rank)}")
            show_text(escape(hit.chunk.text))
    show_closeness(answer)


def show_sources(answer: Answer, documents: dict[str, Document]) -> None:
    """List the passages the decoder was given, each marked in its surroundings."""
    for rank, source in enumerate(answer.sources):
        with st.container(border=True):
            number = f'<b style="background:{mark_colour(source.number)};padding:2px 6px;border-radius:3px">'
            cut = " · cut to fit the prompt" if source.cut else ""
            show_text(
                f"{number}[{source.number}]</b> {escape(source.document)} · characters "
                f"{source.start}–{source.end} · {source.n_tokens} tokens{cut}"
            )
            st.caption(score_words(answer, rank), help=SCORE_HELP)
            if source.document in documents:
                show_text(in_context(documents[source.document], [source], PASSAGE_CONTEXT))
            else:
                show_text(escape(source.text))
                st.caption("This document is no longer among those searched.")
    if left_out := answer.prompt.left_out if answer.prompt else ():
        st.caption(f"{len(left_out)} more relevant passages did not fit the prompt's budget.")
    show_closeness(answer)


def show_documents(answer: Answer, documents: dict[str, Document]) -> None:
    """Show a whole document with its sources marked."""
    names = [name for name in documents if any(source.document == name for source in answer.sources)]
    if not names:
        st.caption("The documents of this answer are no longer among those searched.")
        return
    name = st.selectbox("Document", names, key="shown_document") or names[0]
    own = [source for source in answer.sources if source.document == name]
    st.caption(f"{len(own)} passages marked, of {len(documents[name].text):,} characters.")
    show_text(in_context(documents[name], own, DOCUMENT_CONTEXT), height=480)


def show_timing(answer: Answer) -> None:
    """Show how long each stage took."""
    if answer.server:
        server_metrics(answer.timings)
    else:
        decoder_metrics(answer.timings)
    st.plotly_chart(
        timing_figure(answer.timings), config={"displayModeBar": False}, alt="Seconds of each stage"
    )
    if answer.server:
        st.caption(
            "A server cannot be looked into: how fast it reads the prompt, and what it need not read again, "
            "is not known here. “Read prompt” is all the time until its first word."
        )
    elif cache := st.session_state.get("prefix_cache"):
        st.caption(
            f"Kept for the next question: keys and values of {len(cache):,} tokens, "
            f"{cache.n_bytes / 1e6:.1f} MB."
        )


def decoder_metrics(timings: Timings) -> None:
    """Show the rates of the built-in decoder, and what it had read before."""
    reading, reused, writing = st.columns(3)
    reading.metric(
        "Prompt tokens per second",
        rate(timings.prompt_tokens_per_s),
        help="The prompt is read in blocks, many tokens at once.",
    )
    reused.metric(
        "Prompt tokens not read again",
        f"{timings.reused_tokens:,} of {timings.prompt_tokens:,}",
        help="A prompt that begins like the one before, with the same passages, is read from where they "
        "differ: the keys and values of all tokens before that are kept.",
    )
    writing.metric(
        "Answer tokens per second",
        rate(timings.answer_tokens_per_s),
        help="Answer tokens come one by one: each needs every weight of the model once.",
    )


def server_metrics(timings: Timings) -> None:
    """Show what can be seen of a server from outside."""
    waiting, writing = st.columns(2)
    waiting.metric(
        "Time to the first word",
        readable_seconds(timings.prompt_s),
        help="Includes the way there and back, and loading the model where the server has to.",
    )
    writing.metric(
        "Answer tokens per second",
        f"about {rate(timings.answer_tokens_per_s)}",
        help="Tokens of the built-in model's tokenizer: the server's own are others.",
    )


def rate(per_s: float | None) -> str:
    """Return a rate in words, a dash where it is not known."""
    return f"{per_s:,.0f}" if per_s else "–"


def show_prompt(answer: Answer) -> None:
    """Show the prompt to the letter, and where its tokens went."""
    prompt = answer.prompt
    if prompt is None:
        return
    parts = {
        "sources": prompt.source_tokens,
        "question": prompt.question_tokens,
        "instructions and template": len(prompt.ids) - prompt.source_tokens - prompt.question_tokens,
    }
    st.plotly_chart(
        token_figure(parts, prompt.max_tokens), config={"displayModeBar": False}, alt="Tokens of the prompt"
    )
    if answer.server:
        st.caption(
            f"About {len(prompt.ids)} tokens in, about {answer.timings.answer_tokens} tokens out, counted as "
            "the built-in model would: what the server makes of these messages cannot be looked into."
        )
        for message in prompt.messages:
            st.caption(message["role"])
            st.code(message["content"], language=None, wrap_lines=True)
        return
    st.caption(
        f"{len(prompt.ids)} tokens in, {answer.timings.answer_tokens} tokens out. "
        "This is all the decoder sees: it knows the documents from here alone."
    )
    st.code(prompt.text, language=None, wrap_lines=True)


def escape_markdown(text: str) -> str:
    """Return text that Markdown shows as it is."""
    return "".join(
        f"\\{character}" if character in r"\`*_{}[]()#+-.!|<>$~:&" else character for character in text
    )
