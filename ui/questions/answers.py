"""Questions with short answers: the choice of a set, the upload of one, and what is wrong with it."""

from collections.abc import Sequence

import streamlit as st

from engine.documents.document import Document
from engine.errors import GlassboxError
from engine.evaluation.answers import (
    AnswerQuestion,
    check_answers,
    load_answer_questions,
    parse_answer_questions,
)
from engine.evaluation.document_names import at_rows, matched_names, renamed
from engine.evaluation.sample import about_documents
from engine.wording import counted, shortened
from ui.documents import session_documents
from ui.questions.kept import BUNDLED, answer_sets, keep_answer_set
from ui.questions.names import show_names
from ui.questions.sets import kept_sample
from ui.server_settings import read_upload
from ui.text import escape_markdown, show_error
from ui.widgets import choice

MOST_QUESTIONS, MAX_MEGABYTES = 1000, 5
MAX_PROBLEMS_SHOWN = 5
FORMAT = (
    "A CSV file whose first row names the columns `question` and `answer`; `document`, `start` and `end` may "
    "follow. In an answer, `|` divides spellings of which one has to occur (`1990|in the nineties`), and `&` "
    "between spaces divides parts that must all occur (`Vogel & Kross`). Leave the answer empty where the "
    "documents hold none: such a question is to be refused. `document` is a document's name; `start` and "
    "`end` are the place of the answer in it, in characters from 0, the end not included."
)
EXAMPLE = """question,answer,document,start,end
Who pulls the sea?,the moon|moon,tides.md,120,138
Which two bodies cause spring tides?,sun & moon,tides.md,,
Who discovered the tides of Mars?,,tides.md,,
"""


def answer_set_picker(documents: Sequence[Document]) -> tuple[str, list[AnswerQuestion]]:
    """Draw the choice of questions with answers; return the set's name, and its questions about documents."""
    name, given = question_choice()
    loaded = session_documents()
    given = tuple(at_rows(given, loaded))
    every = renamed(given, matched_names(given, [document.name for document in loaded]))
    questions = about_documents(every, documents)
    show_questions(name, every, questions, documents)
    show_names(given, loaded, "answers", lambda names: keep_answer_set(name, renamed(given, names)))
    return name, questions


def question_choice() -> tuple[str, tuple[AnswerQuestion, ...]]:
    """Draw the choice of a question set and the upload of one; return its name and all its questions."""
    state = st.session_state
    sets = {BUNDLED: bundled_answers(), **answer_sets()}
    if state.get("answers-set") not in sets:
        state["answers-set"] = BUNDLED
    if len(sets) > 1:
        choice("Questions", list(sets), "answers-set", format_func=lambda name: shortened(name, 40))
    with st.expander("Upload questions with answers", icon=":material/upload_file:"):
        uploader = f"answers-file-{state.setdefault('answers-uploader', 0)}"
        st.file_uploader(
            "Questions with answers",
            type=["csv"],
            key=uploader,
            max_upload_size=MAX_MEGABYTES,
            on_change=store_answers,
            args=(uploader,),
            help=f"Of more than {MOST_QUESTIONS:,} questions a sample is kept.",
        )
        st.caption(FORMAT)
        st.code(EXAMPLE, language=None, wrap_lines=True)
    if error := state.get("answers-upload-error"):
        show_error(error)
    name: str = state["answers-set"]
    return name, sets[name]


@st.cache_data(show_spinner=False)
def bundled_answers() -> tuple[AnswerQuestion, ...]:
    """Return the questions that come with the app."""
    return tuple(load_answer_questions())


def store_answers(uploader: str) -> None:
    """Read an uploaded file into the session, and select it; one that cannot be read changes nothing."""
    state = st.session_state
    if (file := state[uploader]) is None:
        return
    state["answers-uploader"] += 1  # a fresh, empty uploader
    state["answers-upload-error"] = None
    try:
        questions = read_upload(parse_answer_questions, file.name, file.getvalue())
        questions = kept_sample(file.name, questions, MOST_QUESTIONS)
    except GlassboxError as error:
        state["answers-upload-error"] = str(error)
        return
    keep_answer_set(file.name, questions)
    state["answers-set"] = file.name


def show_questions(
    name: str, every: Sequence[AnswerQuestion], own: Sequence[AnswerQuestion], documents: Sequence[Document]
) -> None:
    """Draw how many questions of a set are about the documents, and what is wrong with them."""
    if name != BUNDLED and (problems := problems_of(every, documents)):
        lines = [
            f"- {escape_markdown(line[0].upper() + line[1:])}." for line in problems[:MAX_PROBLEMS_SHOWN]
        ]
        if len(problems) > MAX_PROBLEMS_SHOWN:
            lines.append(f"- And {len(problems) - MAX_PROBLEMS_SHOWN:,} more.")
        st.warning("\n".join(lines), icon=":material/warning:")
    if not own:
        st.info(
            "No question of this set is about the chosen documents. Choose other documents under “Search in” "
            "in the sidebar, or upload questions about these."
        )
        return
    n_elsewhere, n_empty = len(every) - len(own), sum(not each.answer for each in own)
    words = f"{escape_markdown(name)}: {counted(len(own) - n_empty, 'question')} with a known answer"
    if n_empty:
        words += f", {n_empty:,} that the documents do not answer and that are to be refused"
    if n_elsewhere:
        words += f"; {n_elsewhere:,} about other documents left out"
    st.caption(f"{words}.")


@st.cache_data(max_entries=4, show_spinner="Looking the answers up in the documents…", scope="session")
def problems_of(questions: Sequence[AnswerQuestion], documents: Sequence[Document]) -> list[str]:
    """Return what is wrong with questions about documents; cached."""
    return list(check_answers(questions, documents))
