"""Labelling questions: write one, mark the passage that answers it, and keep both."""

from collections import Counter
from collections.abc import Mapping
from html import escape
from itertools import islice

import streamlit as st

from engine.documents.document import Document
from engine.evaluation.questions import DRAFTED, KEPT, Reference, stem, to_jsonl
from engine.installed import PROGRAM
from engine.retrieval.ranking import top
from engine.retrieval.retrievers import RETRIEVERS, index_scores
from engine.wording import counted, shortened
from pages.improve.questions.passage_picker import mark_nothing, mark_sentences, passage_picker
from ui.corpus import query_of
from ui.current import follow_question, is_about_another
from ui.documents import documents_called
from ui.questions.drafts import drafts, show_drafting, status_words
from ui.questions.kept import BUNDLED, LABELLED, keep_label, keep_questions, kept_questions, uploaded_names
from ui.questions.search import sentences_with
from ui.questions.sets import NAME_CHARACTERS, set_about, usable_questions
from ui.search import Search
from ui.session_work import keeping_words
from ui.tables import show_table
from ui.text import escape_markdown, joined, show_text
from ui.widgets import MOST_QUESTION, chapters, check_typed, choice, download, kept, more_options

SEARCH, WORDS = "By the app's search", "By words"
CANDIDATES = 5
MAX_NAMED = 3  # documents without questions
ORIGINS = {"": "labelled", KEPT: "drafted, kept by you", DRAFTED: "drafted, unread"}
CANDIDATE_HEIGHT = 103  # pixels: four lines


def show_labelling(search: Search) -> None:
    """Draw the form that labels questions by spans of documents, and the set they go into."""
    questions = usable_questions(search.documents)
    bundled = set(set_about(BUNDLED, search.documents).usable)
    n_about = Counter(question.corpus_id for question in questions)
    counts = {document.name: n_about[stem(document.name)] for document in search.documents}
    n_own = sum(question not in bundled for question in questions)
    st.markdown(f"**{escape_markdown(headline(counts, len(questions), n_own))}**")
    if words := status_words([*kept_questions(LABELLED)[0], *drafts()]):
        st.caption(f"There are {words}, too: see the tab “Drafts”.")
    if not questions:
        show_drafting(search.documents, is_offer=True)
    st.write("Write a question that you would ask, mark the passage that answers it, and keep both.")
    name = set_to_extend()
    changed = follow_question("label-question")
    if is_about_another("label-about", st.session_state["label-question"]):
        mark_nothing()
        st.session_state["label-words"] = ""
    question = st.text_input(
        "Question",
        **kept("label-question"),
        on_change=changed,
        placeholder="In your own words, not in the document's",
        help="Any search finds the answer to a question in the document's own words, so such questions do "
        "not show which search is better.",
    ).strip()
    if check_typed(question, MOST_QUESTION):
        show_candidates(question, search)
        st.markdown("**Mark the passage**")
        if found := passage_picker(search.documents):
            show_keep_button(name, question, *found)
    else:
        st.info("Write a question to begin.", icon=":material/help:")
    show_set(name)


def show_candidates(question: str, search: Search) -> None:
    """Draw passages that may answer a question, each with a button that marks it."""
    st.markdown("**Find it**")
    how = chapters((SEARCH, WORDS), "label-how", label="Find it")
    if how == SEARCH:
        index, retriever = search.index, search.retriever
        st.caption(
            f"The best passages of {RETRIEVERS[retriever].label}. Labels from only one search favour that "
            "search: look by words, too."
        )
        query = query_of(question, index, search.model)
        scores = index_scores(retriever, question, query, index, search.model.as_encoder)  # (n_chunks,)
        rows = top(scores, CANDIDATES)
        best = [index.chunks[row] for row in rows.tolist()]
        hits = [(search.document(chunk.document), chunk.start, chunk.end) for chunk in best]
        if not hits:
            st.info(f"{RETRIEVERS[retriever].label} finds nothing for this question in these documents.")
    else:
        words = st.text_input(
            "Words",
            **kept("label-words"),
            max_chars=200,
            placeholder="All of them in one sentence",
            help="Sentences that contain words of your choice. Upper and lower case are the same, and parts "
            "of words count.",
        )
        found = (
            (document, *span)
            for document in search.documents
            for span in sentences_with(words, document.text)
        )
        hits = list(islice(found, CANDIDATES))
        if words.strip() and not hits:
            st.info("No sentence of these documents contains all of these words.")
    for number, (document, start, end) in enumerate(hits):
        with st.container(border=True):
            show_text(escape(" ".join(document.text[start:end].split())), height=CANDIDATE_HEIGHT)
            row = st.container(
                horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"
            )
            row.caption(escape_markdown(document.name), width="content")
            row.button(
                "Mark it",
                key=f"label-hit-{number}",
                on_click=mark,
                args=(document, start, end),
                icon=":material/ink_highlighter:",
                help="Marks these sentences below, where you can take fewer.",
            )


def mark(document: Document, start: int, end: int) -> None:
    """Mark a candidate in the passage picker, further down the page."""
    mark_sentences(document, start, end)
    st.toast("Marked below: take fewer sentences there, and keep it.", icon=":material/ink_highlighter:")


def show_keep_button(name: str, question: str, document: Document, reference: Reference) -> None:
    """Draw the button that keeps a label in a set, or why it cannot be kept."""
    corpus_id = stem(document.name)
    alike = documents_called(corpus_id)
    if len(alike) > 1:
        st.warning(
            f"{len(alike)} documents are called {escape_markdown(corpus_id)}, and a label does not tell "
            "which is meant: remove all but one, or rename them.",
            icon=":material/file_copy:",
        )
    st.button(
        "Keep this label",
        key="label-keep",
        type="primary",
        icon=":material/bookmark_add:",
        on_click=keep_marked,
        args=(name, question, corpus_id, reference),
        disabled=len(alike) > 1,
    )
    if notice := st.session_state.pop("label-notice", None):
        st.success(notice, icon=":material/check_circle:")


def keep_marked(name: str, text: str, corpus_id: str, reference: Reference) -> None:
    """Keep a label, and say what comes next."""
    keep_label(name, text, corpus_id, reference)
    st.session_state["label-notice"] = (
        "Kept. Mark another passage that answers it, or write the next question."
    )


def headline(counts: Mapping[str, int], n_questions: int, n_own: int) -> str:
    """Say in a sentence which of the documents in use the labelled questions are about."""
    n = len(counts)
    named = "the document in use" if n == 1 else f"the {n:,} documents in use"
    if not n_questions:
        return f"No labelled question is about {named}: no setting can be measured yet."
    without = [name for name, count in counts.items() if not count]
    about = f"{n - len(without):,} of {named}" if without else named
    least, most = min(counts.values()), max(counts.values())
    each = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    spread = f", {each} about each" if n > 1 and not without else ""
    if without:
        none = joined(without, "and") if len(without) <= MAX_NAMED else f"{len(without):,} others"
        spread = f"; {none} {'has' if len(without) == 1 else 'have'} none"
    asked = f"{counted(n_questions, 'labelled question')}, {own_words(n_questions, n_own)},"
    return f"{asked} {'is' if n_questions == 1 else 'are'} about {about}{spread}."


def own_words(n_questions: int, n_own: int) -> str:
    """``"none of them your own"``: how many of the questions are."""
    if n_questions == 1:
        return "your own" if n_own else "a bundled one"
    return f"{'all' if n_own == n_questions else f'{n_own:,}' if n_own else 'none'} of them your own"


def set_to_extend() -> str:
    """Draw the choice of the set that labels are added to, if there is more than one."""
    names = [LABELLED, *uploaded_names()]
    if len(names) == 1:
        return LABELLED
    if st.session_state.get("label-set") not in names:
        st.session_state["label-set"] = LABELLED
    with more_options():
        chosen: str = choice(
            "Keep questions in",
            names,
            "label-set",
            "Labels are added to this set, which is listed below: the one of this page, or one that you "
            "uploaded.",
            format_func=lambda name: shortened(name, NAME_CHARACTERS),
            as_list=True,
        )
    return chosen


def show_set(name: str) -> None:
    """Draw the questions of a set, with their download and the deletion of some."""
    questions, _ = kept_questions(name)
    n = len(questions)
    st.header(escape_markdown(shortened(name, NAME_CHARACTERS)))
    if not questions:
        st.caption("None yet.")
        return
    show_table(
        [
            {
                "Question": question.text,
                "Document": question.corpus_id,
                "Passages": " … ".join(one.content for one in question.references),
            }
            | ({"Origin": ORIGINS[question.status]} if any(each.status for each in questions) else {})
            for question in questions
        ],
        f"{counted(n, 'labelled question')} with their documents and passages",
    )
    st.caption(
        f"{counted(n, 'question')}, {keeping_words()}. "
        "*Save or open*, on top of the sidebar, puts them into a workspace."
    )
    download(
        "Download as JSONL",
        lambda: to_jsonl(questions),
        "questions.jsonl",
        f"The format of uploads, which {PROGRAM} sweep reads, too.",
    )
    with st.expander("Delete questions", icon=":material/delete:"):
        chosen = st.multiselect(
            "Questions",
            range(n),
            format_func=lambda number: f"{number + 1}. {shortened(questions[number].text, 80)}",
            key=f"label-deleted-{name}",
            placeholder="None",
            help="Deletes them from this session.",
        )
        st.button(
            "Delete them", key="label-delete", on_click=delete_questions, args=(name,), disabled=not chosen
        )


def delete_questions(name: str) -> None:
    """Delete the chosen questions of a set."""
    state, (questions, _) = st.session_state, kept_questions(name)
    gone = set(state[f"label-deleted-{name}"])
    keep_questions(name, [question for number, question in enumerate(questions) if number not in gone])
    state[f"label-deleted-{name}"] = []
