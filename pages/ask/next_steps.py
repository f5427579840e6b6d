"""What can be done with an answer: keep it as a labelled question, or go on to another page with it."""

import streamlit as st

from engine.evaluation.questions import Reference, stem
from engine.generation.answer import Answer
from engine.retrieval.evidence import Quote
from ui.current import open_diagnosis
from ui.documents import documents_called
from ui.questions.kept import LABELLED, keep_label
from ui.report import Report

RIGHT_HELP = (
    "Keeps the question with the first quote as the passage that answers it, on the page “Questions”. From a "
    "few dozen on, “Best settings” can tell which settings answer your questions best."
)


def show_next_steps(report: Report, answer: Answer, question: str) -> None:
    """Draw the buttons that follow an answer; the last one saves the report, titled by the question."""
    with st.container(horizontal=True):
        if can_be_kept(answer):
            st.button(
                "It is right",
                icon=":material/thumb_up:",
                help=RIGHT_HELP,
                on_click=keep,
                args=(answer.question, answer.quotes[0]),
            )
        if st.button("Why was it not found?", icon=":material/troubleshoot:"):
            hits = answer.retrieved.hits
            nearest = hits[0].chunk.document if hits else None
            open_diagnosis(answer.question, answer.quotes[0].document if answer.quotes else nearest)
        if answer.text and st.button("Look inside", icon=":material/account_tree:"):
            st.switch_page("pages/inside/answer/page.py")
        if st.button("Find better settings", icon=":material/science:"):
            st.switch_page("pages/improve/settings/page.py")
        report.button("answer", question)


def can_be_kept(answer: Answer) -> bool:
    """Whether an answer was given, from a document that a label can name."""
    names = [stem(quote.document) for quote in answer.quotes[:1]]
    return answer.judged.status != "refused" and any(len(documents_called(name)) == 1 for name in names)


def keep(question: str, quote: Quote) -> None:
    """Keep a question with the sentence that answers it."""
    passage = Reference(quote.text, quote.start, quote.end)
    keep_label(LABELLED, question, stem(quote.document), passage)
    st.toast("Kept as a labelled question on the page “Questions”.", icon=":material/bookmark_added:")
