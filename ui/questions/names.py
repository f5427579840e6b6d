"""Names of documents in a file of questions that no loaded document has: what is taken, and what is meant."""

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from engine.documents.document import Document
from engine.evaluation.document_names import AboutDocument, Proposal, matched_names, proposals, unknown_names
from engine.wording import counted, shortened
from ui.documents import OF_DOCUMENTS
from ui.text import escape_markdown, joined

MAX_NAMES_SHOWN = 20  # drawn at once
NAME_CHARACTERS = 60
NONE = "none of these: leave them out"
proposals_of = st.cache_data(
    max_entries=8, show_spinner="Looking for the documents that are meant…", **OF_DOCUMENTS
)(proposals)


def show_names(
    questions: Sequence[AboutDocument],
    documents: Sequence[Document],
    key: str,
    apply: Callable[[Mapping[str, str]], None],
) -> None:
    """Draw which names were taken, and a choice of the document that each of the others means.

    The questions are all of a set, with the names of its file; the chosen documents are given to ``apply``
    by the unknown names.
    """
    names = [document.name for document in documents]
    taken = matched_names(questions, names)
    if taken:
        pairs = [f"“{name}” as {document}" for name, document in list(taken.items())[:MAX_NAMES_SHOWN]]
        st.caption(
            f"Taken: {escape_markdown(joined(pairs, 'and'))}, which differ only in ending and capitals."
        )
    if not set(unknown_names(questions, names)) - set(taken):
        return
    unknown = [each for each in proposals_of(questions, documents) if each.name not in taken]
    unknown = unknown[:MAX_NAMES_SHOWN]
    n = sum(each.n_questions for each in unknown)
    with st.container(border=True):
        st.markdown(f"**{counted(n, 'question')} name a document that is not loaded.** Which one is meant?")
        keys = {each.name: f"{key}-meant-{each.name}" for each in unknown}
        for each in unknown:
            chosen = st.selectbox(
                f"“{escape_markdown(shortened(each.name, NAME_CHARACTERS))}” in the file is",
                [NONE, *names],
                1 + names.index(each.best),
                key=keys[each.name],
            )
            st.caption(fit_words(each, chosen))

        def use() -> None:
            state = st.session_state
            apply({name: state[widget] for name, widget in keys.items() if state[widget] != NONE})

        st.button(
            "Use these documents",
            key=f"{key}-meant-use",
            type="primary",
            icon=":material/link:",
            on_click=use,
            help="Replaces the names in this set of questions, in this session.",
        )


def fit_words(proposal: Proposal, document: str) -> str:
    """Say in how many questions a document has the quoted text at the places given."""
    n = proposal.n_quoting
    if document == NONE:
        return f"Leaves out {counted(proposal.n_questions, 'question')}."
    if not n:
        return "The file quotes no text with its place in these questions, so nothing but the name tells."
    fit = proposal.fitting[document]
    words = f"In {fit:,} of {counted(n, 'question')} the quoted text stands at its place there"
    return f"{words}." if fit else f"{words}: another document seems to be meant."
