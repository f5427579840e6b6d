"""Reading drafts: each with its sentence marked in its document, to keep, edit or strike by a key."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import streamlit as st

from engine.documents.document import Document
from engine.evaluation.questions import KEPT, Question, Reference, stem, to_jsonl
from engine.installed import PROGRAM
from engine.wording import counted
from pages.improve.questions.passage_picker import show_marked
from ui.questions.drafts import ENOUGH, decide, drafts, labelled_here, show_drafting, undo
from ui.questions.kept import DRAFTS, keep_questions
from ui.questions.sets import mended_questions
from ui.text import escape_markdown
from ui.widgets import MOST_QUESTION, check_typed, download

WHAT_COUNTS = (
    "Keep a question that somebody would ask and that the marked words answer; edit one that is nearly so; "
    "strike what asks for nothing or cannot be understood without the passage."
)


def show_drafts(documents: Sequence[Document]) -> None:
    """Draw the drafting, the draft to read next, and the downloads of what is not read yet."""
    show_drafting(documents, is_offer=not drafts())
    found, n_moved = mended_questions(drafts(), documents)
    if n_moved:  # the text before them has changed
        keep_questions(DRAFTS, found)
    n_kept = sum(each.status == KEPT for each in labelled_here())
    by_stem = {stem(document.name): document for document in documents}
    unread = [each for each in drafts() if each.corpus_id in by_stem]
    if n_kept or unread:
        st.progress(
            min(1.0, n_kept / ENOUGH),
            f"{n_kept:,} of {ENOUGH} kept by you, {counted(len(unread), 'draft')} to read",
        )
    if unread:
        show_draft(unread[0], by_stem[unread[0].corpus_id])
    elif n_kept:
        st.success(
            "Every draft is read. Kept questions are in the set “Labelled here”, on this page and on *Best "
            "settings*.",
            icon=":material/check_circle:",
        )
    if st.session_state.get("drafts-decided"):
        st.button("Undo", key="drafts-undo", icon=":material/undo:", on_click=undo, help="One decision back.")
    if own := drafts():
        if n_elsewhere := len(own) - len(unread):
            st.caption(f"{counted(n_elsewhere, 'draft')} about documents that are not chosen in the sidebar.")
        download(
            "Download the drafts as JSONL",
            lambda: to_jsonl(own),
            "drafts.jsonl",
            f"With place, seed and status of each, as {PROGRAM} draft-questions writes them.",
        )


def show_draft(draft: Question, document: Document) -> None:
    """Draw a draft, its sentence in the document, and the three decisions."""
    state = st.session_state
    with st.container(border=True):
        st.subheader(escape_markdown(draft.text), anchor=False)
        if draft.references:
            place = draft.references[0]
            if document.text[place.start : place.end] != place.content:
                st.warning(
                    f"The text of {escape_markdown(document.name)} has changed since: its sentence, "
                    f"“{escape_markdown(place.content)}”, is no longer there. Strike this draft.",
                    icon=":material/edit_document:",
                )
            else:
                headings = " › ".join((document.name, *document.section_at(place.start).headings))
                st.caption(escape_markdown(headings))
                show_marked(document.text, place.start, place.end)
        if draft.answer:
            st.markdown(f"Answer, as the reader finds it: **{escape_markdown(draft.answer.content)}**")
        elif not draft.references:
            st.markdown(
                f"To be refused: it asks of a thing in **{escape_markdown(document.name)}** what is said of "
                "another one. Strike it if the documents do answer it."
            )
        actions: dict[str, tuple[str, Callable[[], None]]] = {
            "Keep": (":material/check:", partial(decide, draft, draft)),
            "Edit": (":material/edit:", lambda: state.update({"drafts-edited": draft})),
            "Strike": (":material/close:", partial(decide, draft, None)),
        }
        for column, (label, (icon, action)) in zip(st.columns(3), actions.items(), strict=True):
            column.button(
                label,
                key=f"drafts-{label.lower()}",
                type="primary" if label == "Keep" else "secondary",
                icon=icon,
                shortcut=label[0].lower(),
                on_click=action,
                width="stretch",
            )
        if state.get("drafts-edited") == draft:
            show_edit(draft)
        st.caption(WHAT_COUNTS)


def show_edit(draft: Question) -> None:
    """Draw the form that keeps a draft in other words; its sentence in the document stays."""
    with st.form("drafts-edit-form", border=False):
        text = st.text_input("Question", draft.text, key=f"drafts-text-{draft.text}").strip()
        known = draft.answer.content if draft.answer else ""
        answer = known
        if draft.references:
            answer = st.text_input(
                "Answer, in words of the marked sentence", known, key=f"drafts-answer-{draft.text}"
            ).strip()
        if not st.form_submit_button("Keep it so", type="primary") or not check_typed(text, MOST_QUESTION):
            return
    edited = replace(draft, text=text)
    if answer != known:
        sentence = draft.references[0]
        if not answer or (place := sentence.content.find(answer)) < 0:
            st.warning("These words are not in the marked sentence: copy the answer from it.")
            return
        start = sentence.start + place
        edited = replace(edited, answer=Reference(answer, start, start + len(answer)))
    decide(draft, edited)
    st.rerun()
