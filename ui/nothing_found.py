"""The refusal to answer where no passage is close enough, with the nearest passages."""

from html import escape

import streamlit as st

from engine.generation.answering import NOTHING_FOUND, Answer
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
}

THOUGHT_ONLY = {
    "stop": "(the model ended with its thought, without an answer)",
    "length": "(the model was still thinking at the longest thought allowed, and wrote no answer)",
    "stopped": "(stopped while the model was thinking)",
    "content_filter": "(the server's content filter ended the model's thought)",
}


def no_text_words(answer: Answer) -> str:
    """Say why an answer has no text."""
    return (THOUGHT_ONLY if answer.thought else NO_TEXT)[answer.finish_reason or "stop"]


def show_nothing_found(report: Report, answer: Answer) -> None:
    """Say that no passage is close enough, and how close the nearest come."""
    report.note(st.info, ":material/search_off:", NOTHING_FOUND)
    if not answer.hits:
        report.caption(
            f"The retriever {retriever_name(answer)} finds no passage: none shares a word with the question. "
            "Ask in other words, or choose another retriever under Search in the sidebar."
        )
        return
    report.caption(
        f"{nearest_words(answer)} "
        "Ask in other words, add a document, or move the relevance threshold under Search in the sidebar."
    )
    with report.expander("The passages found, too far to be used"):
        for place in range(len(answer.hits)):
            show_hit(report, answer, place)
    show_closeness(answer)


def nearest_words(answer: Answer) -> str:
    """Say how close the nearest passage comes, and why that is not close enough."""
    nearest = max(range(len(answer.hits)), key=lambda place: answer.hits[place].score)
    relevance = answer.null_scores.relevance(answer.hits[nearest].score)
    among = (
        "" if answer.retriever == "dense" else f" of those that the retriever {retriever_name(answer)} finds"
    )
    return (
        f"The nearest passage{among}: {score_words(answer, nearest)}. But {chance_words(relevance)}, and "
        f"at most {100 - answer.min_relevance:.0f} may."
    )


def retriever_name(answer: Answer) -> str:
    """Return the name of the retriever."""
    return RETRIEVERS[answer.retriever].label


def show_hit(report: Report, answer: Answer, place: int) -> None:
    """Draw a passage that was found but not used, with its document and cosine."""
    chunk = answer.hits[place].chunk
    report.caption(f"{chunk.document} · rank {place + 1} · {score_words(answer, place)}")
    report.text(escape(chunk.text))
    show_look_inside(chunk, f"hit-{place}")
