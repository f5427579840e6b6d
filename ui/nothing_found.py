"""The refusal to answer where no passage is close enough, with the nearest passages."""

from html import escape

import streamlit as st

from engine.generation.answer import NOTHING_FOUND, Retrieval, Written
from engine.retrieval.relevance import chance_words
from engine.retrieval.retrievers import RETRIEVERS
from ui.closeness import score_words, show_closeness
from ui.look_inside import show_look_inside
from ui.report import Report

NO_TEXT = {
    "stop": "(the model ended its answer at once)",
    "length": "(no word within the longest answer allowed)",
    "stopped": "(stopped before the first word)",
    "content_filter": "(the server's content filter let no word through)",
    "unfinished": "(the server ended its answer before the first word)",
}

THOUGHT_ONLY = {
    "stop": "(the model ended with its thought, without an answer)",
    "length": "(the model was still thinking at the longest thought allowed, and wrote no answer)",
    "stopped": "(stopped while the model was thinking)",
    "content_filter": "(the server's content filter ended the model's thought)",
    "unfinished": "(the server ended its answer within the model's thought)",
}


def no_text_words(written: Written | None) -> str:
    """Say why an answer has no text."""
    if written is None:
        return NO_TEXT["stop"]
    return (THOUGHT_ONLY if written.thought else NO_TEXT)[written.finish_reason]


def show_nothing_found(report: Report, found: Retrieval) -> None:
    """Say that no passage is close enough, and how close the nearest come."""
    report.note(st.info, ":material/search_off:", NOTHING_FOUND)
    if not found.hits:
        report.caption(
            f"The retriever {retriever_name(found)} finds no passage: none shares a word with the question. "
            "Ask in other words, or choose another retriever under Search in the sidebar."
        )
        return
    nearest = max(range(len(found.hits)), key=lambda place: found.hits[place].score)
    among = (
        "" if found.retriever == "dense" else f" of those that the retriever {retriever_name(found)} finds"
    )
    report.caption(
        f"The nearest passage{among}: {score_words(found, nearest)}. But "
        f"{chance_words(found.null_scores.relevance(found.hits[nearest].score))}, and at most "
        f"{100 - found.min_relevance:.0f} may. Ask in other words, add a document, or move the relevance "
        "threshold under Search in the sidebar."
    )
    with report.expander("The passages found, too far to be used"):
        for place in range(len(found.hits)):
            show_hit(report, found, place)
    show_closeness(found)


def retriever_name(found: Retrieval) -> str:
    """Return the name of the retriever."""
    return RETRIEVERS[found.retriever].label


def show_hit(report: Report, found: Retrieval, place: int) -> None:
    """Draw a passage that was found but not used, with its document and cosine."""
    chunk = found.hits[place].chunk
    report.caption(f"{chunk.document} · rank {place + 1} · {score_words(found, place)}")
    report.text(escape(chunk.text))
    show_look_inside(chunk, f"hit-{place}")
