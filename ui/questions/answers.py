"""The short answers of a set of questions, and what is wrong with them."""

from collections.abc import Sequence

import streamlit as st

from engine.documents.document import Document
from engine.evaluation.answer_labels import as_answers
from engine.evaluation.answers import AnswerQuestion, load_answer_questions
from engine.evaluation.questions import DRAFTED, Question
from engine.evaluation.sample import about_documents
from engine.wording import counted
from ui.questions.drafts import show_drafting
from ui.questions.kept import BUNDLED, DRAFTS, answer_sets
from ui.questions.sets import (
    CHOSEN_SET,
    answers_in,
    choice_label,
    chosen_set,
    problems_of,
    questions_of,
    show_choice,
    show_names_in,
)
from ui.text import escape_markdown

MAX_PROBLEMS_SHOWN = 5


def answer_set_picker(documents: Sequence[Document]) -> tuple[str, list[AnswerQuestion]]:
    """Draw the choice of a question set; return its name, and its questions with answers about documents."""
    name = chosen_set(documents)
    every = [each for each in answers_of(name) if each.answer or not each.spans]
    questions = about_documents(every, documents)
    show_choice(name, len(questions))
    show_questions(name, every, questions, documents)
    if name in answer_sets():
        show_names_in(name, "answers")
    if name == DRAFTS:
        show_drafting(documents, is_offer=not every)
    return name, questions


def questions_to_answer(documents: Sequence[Document], usable: Sequence[Question]) -> list[AnswerQuestion]:
    """Return the questions of the chosen set to be answered; ``usable`` are its labels about documents."""
    name: str = st.session_state[CHOSEN_SET]
    if name == BUNDLED or name in answer_sets():
        return about_documents(answers_of(name), documents)
    unanswered = [one for one in questions_of(name)[0] if one.is_unanswered]
    return about_documents(as_answers([*usable, *unanswered]), documents)


def answers_of(name: str) -> list[AnswerQuestion]:
    """Return the questions of a set whose short answers are known, or that are to be refused."""
    if name == BUNDLED:
        return list(bundled_answers())
    return answers_in(name) if name in answer_sets() else as_answers(questions_of(name)[0])


@st.cache_data(show_spinner=False)
def bundled_answers() -> tuple[AnswerQuestion, ...]:
    """Return the questions that come with the app."""
    return tuple(load_answer_questions())


def show_questions(
    name: str, every: Sequence[AnswerQuestion], own: Sequence[AnswerQuestion], documents: Sequence[Document]
) -> None:
    """Draw how many questions of a set are about the documents, and what is wrong with them."""
    if name != BUNDLED and (problems := problems_of(every, documents)):
        lines = [f"- {escape_markdown(one[0].upper() + one[1:])}." for one in problems[:MAX_PROBLEMS_SHOWN]]
        if len(problems) > MAX_PROBLEMS_SHOWN:
            lines.append(f"- And {len(problems) - MAX_PROBLEMS_SHOWN:,} more.")
        st.warning("\n".join(lines), icon=":material/warning:")
    if not own:
        st.info(
            "No question of this set is about the chosen documents and has a known short answer. Choose "
            "another set, or other documents under “Search in” in the sidebar, or upload questions about "
            "these."
        )
        return
    n_elsewhere, n_empty = len(every) - len(own), sum(not each.answer for each in own)
    asked = counted(len(own) - n_empty, "question")
    words = f"{escape_markdown(choice_label(name))}: {asked} with a known answer"
    if n_empty:
        words += f", {n_empty:,} that the documents do not answer and that are to be refused"
    if n_drafted := sum(each.kind == DRAFTED for each in own):
        words += f"; nobody has read {n_drafted:,} of them"
    if n_elsewhere:
        words += f"; {n_elsewhere:,} about other documents left out"
    st.caption(f"{words}.")
