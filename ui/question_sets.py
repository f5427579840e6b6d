"""Question sets: those that come with the app, those that the user brings, and a test without labels."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from engine.documents.document import Chunk, Document
from engine.errors import GlassboxError
from engine.evaluation.checks import Problem, check_questions, repaired
from engine.evaluation.questions import Question, load_questions, questions_about, relevance, stem
from engine.evaluation.self_test import self_test_questions
from engine.layers.tracing import Array
from ui.answer import escape_markdown
from ui.corpus import bundled_names, session_documents
from ui.kept_questions import (
    BUNDLED,
    LABELLED,
    SELF_TEST,
    keep_questions,
    kept_names,
    kept_questions,
    uploaded_names,
)
from ui.map_figures import shortened
from ui.question_upload import show_upload, take_unread

N_SENTENCES = 60  # of the self-test
LISTED = 50  # problems
NAME_CHARACTERS = 40
SMOKE_TEST = (
    "A smoke test and no more: sentences of the documents, and the same reworded by fixed rules, must find "
    "the chunk that they are from. People ask in words that the documents have not, so a search that passes "
    "may fail them all."
)


@dataclass(frozen=True)
class Examined:
    """A question set, compared with the documents that are searched.

    ``usable`` are about these, with every passage at its place; ``n_elsewhere`` are about others,
    ``n_faulty`` about these but not usable; ``n_unclear`` are usable, and several of these are called as
    their document is. ``problems`` are what is wrong, questions about others left out.
    """

    usable: tuple[Question, ...]
    n_elsewhere: int
    n_faulty: int
    n_unclear: int
    problems: tuple[Problem, ...]


def question_set_picker(documents: Sequence[Document], key: str = "questions") -> list[Question]:
    """Draw the choice of a question set; return its questions about the documents, all else counted.

    The choice is folded up, and open where the set has no question to use; what it leaves out is said
    beside it.

    Parameters
    ----------
    documents
        Those that are searched.
    key
        The choice's key; a page with several pickers gives each its own.
    """
    take_unread(key)
    names, state = [BUNDLED, LABELLED, *uploaded_names(), SELF_TEST], st.session_state
    if state.get(key) not in names:
        state[key] = first_choice(documents)
    name, said = state[key], ""
    try:
        found = set_about(name, documents)
    except GlassboxError as error:
        found, said = Examined((), 0, 0, 0, ()), str(error)
    n = len(found.usable)
    title = f"Questions: {escape_markdown(choice_label(name))}, {f'{n:,}' if n else 'none'} usable"
    with st.expander(title, expanded=not n, icon=":material/quiz:"):
        st.selectbox(
            "Questions",
            names,
            format_func=choice_label,
            key=key,
            persist_state="session",
            help="What a search is measured by. Labels are places in the text of a document, so one set "
            "serves every way to cut it.",
        )
        show_upload(key, name)
        show_problems(name, found.problems, key)
    if said:
        st.error(escape_markdown(said), icon=":material/error:")
    else:
        show_counts(found)
    if name == SELF_TEST:
        st.caption(SMOKE_TEST)
    return list(found.usable)


def first_choice(documents: Sequence[Document]) -> str:
    """Return the set to begin with: the first with questions about the documents, else the self-test."""
    names = names_of(documents)
    if set(names) & bundled_names():
        return BUNDLED
    for name in kept_names():
        if questions_about(kept_questions(name)[0], names):
            return name
    return SELF_TEST


def choice_label(name: str) -> str:
    """Say what a set is."""
    own = (BUNDLED, LABELLED, SELF_TEST)
    return name if name in own else f"Uploaded: {shortened(name, NAME_CHARACTERS)}"


@st.cache_data(max_entries=4, show_spinner="Drawing sentences…", scope="session")
def self_test_set(documents: Sequence[Document]) -> list[Question]:
    """Draw the self-test's questions, once."""
    return [probe.question for probe in self_test_questions(documents, N_SENTENCES)]


def set_about(name: str, documents: Sequence[Document]) -> Examined:
    """Return what of a set can be used for the documents that are searched, and what is wrong with the rest.

    Raises
    ------
    InputError
        It is the self-test, and the documents hold no sentence for it.
    """
    if name == SELF_TEST:
        return Examined(tuple(self_test_set(documents)), 0, 0, 0, ())
    questions, unread = questions_of(name)
    stems = set(map(stem, names_of(documents)))
    others = [document for document in session_documents() if stem(document.name) not in stems]
    found = examined(questions, documents, others)
    return replace(found, problems=(*unread, *found.problems))


def questions_of(name: str) -> tuple[list[Question], list[Problem]]:
    """Return all questions of a labelled set, and what is wrong with those that could not be read."""
    return (bundled_questions(), []) if name == BUNDLED else kept_questions(name)


def usable_questions(documents: Sequence[Document]) -> list[Question]:
    """Return the labelled questions about documents, of all sets of the session, each once."""
    sets = (set_about(name, documents).usable for name in (BUNDLED, LABELLED, *uploaded_names()))
    return list(dict.fromkeys(question for usable in sets for question in usable))


@st.cache_data(show_spinner=False)
def bundled_questions() -> list[Question]:
    """Return the labelled questions that come with the app."""
    return load_questions()


def labelled_questions(chunks: Sequence[Chunk]) -> tuple[list[Question], Array]:
    """Return the bundled questions that a chunk answers, and which do: bool ``(n_questions, n_chunks)``.

    A chunk of a document that the user called as a bundled one is called answers none.
    """
    bundled = bundled_names()
    is_bundled = np.array([chunk.document in bundled for chunk in chunks], bool)
    names = {chunk.document for chunk in chunks} & bundled
    questions = questions_about(bundled_questions(), names)
    relevant = relevance(questions, chunks) & is_bundled
    answered = relevant.any(axis=1)
    return [q for q, yes in zip(questions, answered, strict=True) if yes], relevant[answered]


@st.cache_data(max_entries=8, show_spinner="Comparing the questions with the documents…", scope="session")
def examined(
    questions: Sequence[Question], documents: Sequence[Document], others: Sequence[Document]
) -> Examined:
    """Compare questions with the documents that are searched, and with others that there are."""
    names, elsewhere = names_of(documents), set(map(stem, names_of(others)))
    problems = tuple(
        problem
        for problem in check_questions(questions, [*documents, *others])
        if any(questions[number].corpus_id not in elsewhere for number in problem.questions)
    )
    misplaced = {n for problem in problems if problem.reference is not None for n in problem.questions}
    n_about = len(questions_about(questions, names))
    sound = [question for n, question in enumerate(questions) if question.references and n not in misplaced]
    usable = questions_about(sound, names)
    shared = {name for name, count in Counter(map(stem, names)).items() if count > 1}
    return Examined(
        tuple(usable),
        len(questions) - n_about,
        n_about - len(usable),
        len(questions_about(usable, shared)),
        problems,
    )


def names_of(documents: Sequence[Document]) -> list[str]:
    """Return the documents' names."""
    return [document.name for document in documents]


def show_counts(found: Examined) -> None:
    """Say how many questions are used, and why others are left out."""
    left_out = [
        f"{number:,} {why}"
        for number, why in (
            (found.n_elsewhere, "about documents that are not searched"),
            (found.n_faulty, "without a passage at its place (open “Questions” to see what is wrong)"),
        )
        if number
    ]
    said = f"Left out: {', '.join(left_out)}." if left_out else ""
    if not found.usable and not left_out and not found.problems:
        st.info("No question is labelled yet. Label some here, upload a file, or take another set.")
        return
    if not found.usable:
        st.info(
            f"No question of this set can be used. {said} Choose the documents that it is about, or another "
            "set."
        )
        return
    n = len(found.usable)
    st.caption(f"{n:,} question{'s' * (n != 1)} about these documents. {said}")
    if found.n_unclear:
        st.warning(
            f"{found.n_unclear:,} of them may be judged wrongly: several of these documents have the name "
            "that they are about (endings of files aside), and a passage of any counts as an answer. Leave "
            "all but one of these out, or rename them.",
            icon=":material/file_copy:",
        )


def show_problems(name: str, problems: Sequence[Problem], key: str) -> None:
    """List what is wrong with a set, with one click to put right what can be."""
    if not problems:
        return
    offers = [problem for problem in problems if problem.suggestion is not None]
    n = len(problems)
    with st.expander(f"{n:,} problem{'s' * (n != 1)} in this set", icon=":material/rule:"):
        for problem in problems[:LISTED]:
            st.caption(escape_markdown(problem.text[:1].upper() + problem.text[1:]))
        if n > LISTED:
            st.caption(f"And {n - LISTED:,} more.")
    if offers and name != BUNDLED:
        st.button(
            f"Take all {len(offers):,} offered places" if len(offers) > 1 else "Take the offered place",
            key=f"{key}-repair",
            on_click=lambda: keep_questions(name, repaired(questions_of(name)[0], offers)),
            icon=":material/build:",
            width="stretch",
            help="Puts the passages that were found in the place of those that are not where they should "
            "be. The list says which of them are only alike: read these before.",
        )
