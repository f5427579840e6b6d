"""An answer on the page: its text, its passages, and how it came about."""

from collections.abc import Sequence
from html import escape
from urllib.parse import urlsplit

import streamlit as st

from engine.documents.document import Document
from engine.generation.answering import Answer
from ui.answer_timing import show_timing
from ui.closeness import chance_words, score_words, show_closeness
from ui.figures import token_figure
from ui.retrievers import LABELS
from ui.text import in_context, mark_colour, show_text

# Characters shown around a passage, and around the passages of a whole document: a browser is slow
# with more.
PASSAGE_CONTEXT, DOCUMENT_CONTEXT = 240, 100_000

SCORE_HELP = (
    "The cosine between the vectors of question and passage: 1 is the same direction. It is no percentage, "
    "and its scale is the model's own; so beside it stands how many pairs of an unrelated question and a "
    "passage of these documents have a smaller one, and, where cosines give the order, by how much the next "
    "passage's is smaller."
)
LEFT_OUT_HELP = (
    "The retriever decides the order, the cosine what counts as relevant: a passage that shares words with "
    "the question can be about something else. Where words are all that matters, such as names and codes, "
    "move the relevance threshold down, to 0 for all that is found."
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
    if not answer.hits:
        st.caption(
            f"The retriever {found_by(answer)} finds no passage: none shares a word with the question. "
            "Ask in other words, or choose another retriever under Search in the sidebar."
        )
        return
    nearest = max(range(len(answer.hits)), key=lambda place: answer.hits[place].score)
    relevance = answer.background.relevance(answer.hits[nearest].score)
    whose = "" if answer.retriever == "dense" else f" of those that the retriever {found_by(answer)} finds"
    st.caption(
        f"The nearest passage{whose}: {score_words(answer, nearest)}. But {chance_words(relevance)}, and at "
        f"most {100 - answer.min_relevance:.0f} may. "
        "Ask in other words, add a document, or move the relevance threshold under Search in the sidebar."
    )
    with st.expander("The passages found, too far to be used"):
        for place in range(len(answer.hits)):
            show_hit(answer, place)
    show_searched(answer)
    show_closeness(answer)


def found_by(answer: Answer) -> str:
    """Return the name of the retriever, escaped."""
    return escape_markdown(LABELS[answer.retriever])


def show_hit(answer: Answer, place: int) -> None:
    """Draw a passage that was found and not used: where it is from, and how close it is."""
    chunk = answer.hits[place].chunk
    st.caption(f"{escape_markdown(chunk.document)} · rank {place + 1} · {score_words(answer, place)}")
    show_text(escape(chunk.text))


def show_left_out(answer: Answer) -> None:
    """List the passages that were found and are not close enough."""
    relevant = set(answer.relevant)
    left_out = [place for place in range(len(answer.hits)) if place not in relevant]
    if not left_out:
        return
    with st.expander(f"Left out: {len(left_out)} of {len(answer.hits)} passages found"):
        st.caption(
            f"Not close enough: more than {100 - answer.min_relevance:.0f} of 100 unrelated questions find a "
            "passage as close.",
            help=LEFT_OUT_HELP,
        )
        for place in left_out:
            show_hit(answer, place)


def show_searched(answer: Answer) -> None:
    """Draw what was searched for, where that is not the question itself."""
    if answer.searched_for is None:
        return
    with st.expander("What was searched for", icon=":material/manage_search:"):
        show_text(escape(answer.searched_for))
        st.caption(
            "The question, and a passage that the built-in model made up: true or not, it lends its words to "
            "the search. How close a passage is, and so whether it counts, stays a matter of the question "
            "alone."
        )


def show_sources(answer: Answer, documents: dict[str, Document]) -> None:
    """List the passages the decoder was given, each marked in its surroundings."""
    for place, source in zip(answer.relevant, answer.sources, strict=False):  # the first of the relevant
        with st.container(border=True):
            number = f'<b style="background:{mark_colour(source.number)};padding:2px 6px;border-radius:3px">'
            cut = " · cut to fit the prompt" if source.cut else ""
            show_text(
                f"{number}[{source.number}]</b> {escape(source.document)} · characters "
                f"{source.start}–{source.end} · {source.n_tokens} tokens{cut}"
            )
            st.caption(
                f"rank {place + 1} by {found_by(answer)} · {score_words(answer, place)}", help=SCORE_HELP
            )
            if source.document in documents:
                show_text(in_context(documents[source.document], [source], PASSAGE_CONTEXT))
            else:
                show_text(escape(source.text))
                st.caption("This document is no longer among those searched.")
    if left_out := answer.prompt.left_out if answer.prompt else ():
        st.caption(f"{len(left_out)} more relevant passages did not fit the prompt's budget.")
    show_left_out(answer)
    show_searched(answer)
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
