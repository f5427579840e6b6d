"""The question set that labels are added to: its choice, its questions, its download."""

import streamlit as st

from engine.evaluation.question_files import to_jsonl
from engine.wording import counted, shortened
from ui.questions.kept import LABELLED, keep_questions, kept_questions, uploaded_names
from ui.questions.sets import NAME_CHARACTERS
from ui.session_work import keeping_words
from ui.tables import show_table
from ui.text import escape_markdown
from ui.widgets import more_options


def set_to_extend() -> str:
    """Draw the choice of the set that labels are added to, if there is more than one."""
    names = [LABELLED, *uploaded_names()]
    if len(names) == 1:
        return LABELLED
    if st.session_state.get("label-set") not in names:
        st.session_state["label-set"] = LABELLED
    with more_options():
        chosen: str = st.selectbox(
            "Keep questions in",
            names,
            format_func=lambda name: shortened(name, NAME_CHARACTERS),
            key="label-set",
            persist_state="session",
            help="Labels are added to this set, which is listed below: the one of this page, or one that you "
            "uploaded.",
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
            for question in questions
        ],
        f"{n} labelled questions with their documents and passages",
    )
    st.caption(
        f"{counted(n, 'question')}, {keeping_words()}. "
        "*Save or open*, on top of the sidebar, puts them into a workspace."
    )
    st.download_button(
        "Download as JSONL",
        lambda: to_jsonl(questions),
        file_name="questions.jsonl",
        mime="application/jsonl",
        icon=":material/download:",
        on_click="ignore",
        help="The format of uploads, which python -m engine sweep reads, too.",
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
