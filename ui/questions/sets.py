"""Question sets: the bundled one, and the user's own, labelled, uploaded or drafted."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

import numpy as np
import streamlit as st

from engine.documents.document import Chunk, Document, Loaded
from engine.errors import DocumentError, GlassboxError
from engine.evaluation.answer_labels import as_labels
from engine.evaluation.answers import AnswerQuestion, check_answers, has_short_answers, parse_answer_questions
from engine.evaluation.beir import parse_beir_zip
from engine.evaluation.checks import Problem, by_stem, check_questions, measurable, mended, repaired
from engine.evaluation.document_names import Asked, at_rows, matched_names, renamed
from engine.evaluation.passage_search import located
from engine.evaluation.questions import (
    DRAFTED,
    KEPT,
    Question,
    load_questions,
    parse_questions,
    questions_about,
    relevance,
    stem,
)
from engine.evaluation.sample import about_documents, some_questions
from engine.layers.tracing import Array
from engine.wording import counted, shortened
from ui.documents import OF_DOCUMENTS, add_files, session_documents
from ui.questions.drafts import collect_drafts, show_drafting, status_words
from ui.questions.kept import (
    BUNDLED,
    DRAFTS,
    LABELLED,
    OFFERED,
    answer_sets,
    keep_answer_set,
    keep_questions,
    kept_names,
    kept_questions,
    name_for,
    uploaded_names,
)
from ui.questions.names import show_names
from ui.server_settings import limits, read_upload
from ui.text import escape_markdown, show_error
from ui.widgets import kept

LEAST_LABELLED = 10
MAX_PROBLEMS_SHOWN = 50
NAME_CHARACTERS = 40
LABEL_SOME = "label some on the page “Questions”, or upload them on “Best settings”"
MAX_QUESTIONS, MAX_ANSWERS = 5000, 1000
CHOSEN_SET = "questions"  # the key of the name of the chosen set
FORMAT = (
    "CSV, in each row a question and the passage that answers it, in the words of a document, as below; a "
    "third column, `document`, names it where several hold the passage. Or a short `answer` in place of the "
    "passage, empty where the documents hold none: `|` divides spellings of which one has to occur "
    "(`1990|in the nineties`), `&` between spaces parts that must all occur, and `start` and `end` may say "
    "where it stands, in characters from 0. JSONL of the same keys. What the page “Questions” downloads, "
    "with places. Or a BEIR folder as a .zip file (`corpus.jsonl`, `queries.jsonl`, `qrels/test.tsv`): its "
    "texts become one document, a section each, and the splitter “Headings” keeps them apart."
)
EXAMPLE = 'question,passage\nWho pulls the sea?,The moon.\n"When, and where?","At noon, by the harbour."'
bundled_questions = st.cache_data(show_spinner=False)(load_questions)
labels_of = st.cache_data(
    max_entries=8, show_spinner="Looking the answers up in the documents…", **OF_DOCUMENTS
)(as_labels)
located_questions = st.cache_data(
    max_entries=8, show_spinner="Searching the documents for the passages…", **OF_DOCUMENTS
)(located)


@dataclass(frozen=True)
class Examined:
    """A question set, compared with the documents that are searched."""

    usable: tuple[Question, ...] = ()  # about these documents, with every passage at its place
    n_elsewhere: int = 0  # about other documents
    n_faulty: int = 0  # not usable
    n_unanswered: int = 0  # drafted as ones that the documents do not answer
    n_unclear: int = 0  # usable, and about a name that several documents have
    problems: tuple[Problem, ...] = ()  # of questions about these documents
    n_mended: int = 0  # passages that were found at another place


def question_set_picker(documents: Sequence[Document]) -> list[Question]:
    """Draw the choice of a question set, open if none is usable; return its usable questions."""
    name, said = chosen_set(documents), ""
    try:
        found = set_about(name, documents)
    except GlassboxError as error:
        found, said = Examined(), str(error)
    show_choice(name, len(found.usable), found.problems)
    if said:
        show_error(said)
    elif name != DRAFTS or found != Examined():  # else they are offered below
        show_counts(found)
    if name in kept_names() or name in answer_sets():
        show_names_in(name)
    if name == DRAFTS:
        show_drafting(documents, is_offer=not found.usable)
        if n_labelled := len(questions_about(questions_of(LABELLED)[0], names_of(documents))):
            labelled = counted(n_labelled, "question")
            words = f"You labelled {labelled} about these documents: choose “{LABELLED}” above."
            if n_labelled < LEAST_LABELLED:
                words += (
                    f" From {LEAST_LABELLED} on they are taken by themselves, if nothing else was chosen."
                )
            st.info(words, icon=":material/bookmark_added:")
    return list(found.usable)


def show_names_in(name: str, key: str = CHOSEN_SET) -> None:
    """Draw which documents the names in a kept set mean; ``key`` begins those of the widgets."""
    documents = session_documents()
    if name in answer_sets():
        answers = at_rows(answer_sets()[name], documents)
        show_names(answers, documents, key, lambda names: keep_answer_set(name, renamed(answers, names)))
        return
    labels = at_rows(kept_questions(name)[0], documents)
    show_names(labels, documents, key, lambda names: keep_questions(name, renamed(labels, names)))


def set_names() -> list[str]:
    """Return the names of the sets to choose from."""
    lists = [name for name in answer_sets() if name not in (*OFFERED, *kept_names())]
    return [BUNDLED, LABELLED, *uploaded_names(), *lists, DRAFTS]


def chosen_set(documents: Sequence[Document]) -> str:
    """Take an uploaded file and drafts that are ready into the session; return the name of the chosen set."""
    read_queued()
    collect_drafts()
    names, state = set_names(), st.session_state
    if state.get(CHOSEN_SET) not in names:
        state[CHOSEN_SET] = first_choice(documents)
    name: str = state[CHOSEN_SET]
    return name


def show_choice(name: str, n_usable: int, problems: Sequence[Problem] = ()) -> None:
    """Draw the choice of a set, and the upload of one, in an expander that is open if none is usable."""
    title = (
        f"Questions: {escape_markdown(choice_label(name))}, {f'{n_usable:,}' if n_usable else 'none'} usable"
    )
    with st.expander(title, expanded=not n_usable, icon=":material/quiz:"):
        st.selectbox(
            "Questions",
            set_names(),
            format_func=choice_label,
            **kept(CHOSEN_SET),
            help="The questions that search and answers are measured on. Labels are places in the text of a "
            "document, so one set serves every way to cut it.",
        )
        show_upload(name)
        show_problems(name, problems)


def first_choice(documents: Sequence[Document]) -> str:
    """Return the default set: the first with questions about the documents, else the drafts.

    Those labelled here count from `LEAST_LABELLED` on: a single one would decide between settings.
    """
    names = names_of(documents)
    own = [name for name in kept_names() if name != DRAFTS]
    for name in (*own, *answer_sets(), BUNDLED):
        if len(questions_about(questions_of(name)[0], names)) >= (LEAST_LABELLED if name == LABELLED else 1):
            return name
    return DRAFTS


def choice_label(name: str) -> str:
    """Return the name of a set, as the picker shows it."""
    return name if name in OFFERED else f"Uploaded: {shortened(name, NAME_CHARACTERS)}"


def set_about(name: str, documents: Sequence[Document]) -> Examined:
    """Return the usable questions of a set for the documents, and the problems of the others."""
    questions, unread = questions_of(name)
    stems = set(map(stem, names_of(documents)))
    others = [document for document in session_documents() if stem(document.name) not in stems]
    questions, n_mended = mended_questions(questions, session_documents())
    found = replace(examined(questions, documents, others), n_mended=n_mended)
    if name in answer_sets():
        answers = about_documents(answers_in(name), documents)
        n_unanswered = sum(not each.answer for each in answers)
        n_faulty = len(answers) - n_unanswered - len(found.usable)
        unread += [Problem((), line) for line in problems_of(tuple(answers_in(name)), documents)]
        found = replace(found, n_unanswered=n_unanswered, n_faulty=n_faulty)
    return replace(found, problems=(*unread, *found.problems))


def questions_of(name: str) -> tuple[list[Question], list[Problem]]:
    """Return all questions of a labelled set, and the problems of those that could not be read.

    Names of documents that differ only in ending and capitals are those of the session's documents, in which
    passages without a place are searched.
    """
    if name == BUNDLED:
        return bundled_questions(), []
    if name in answer_sets():
        return labels_of(answers_in(name), session_documents()), []
    questions, unread = kept_questions(name)
    if name == DRAFTS:
        questions += [each for each in kept_questions(LABELLED)[0] if each.status == KEPT]
    documents = session_documents()
    questions = at_rows(questions, documents)
    named = renamed(questions, matched_names(questions, names_of(documents)))
    return located_questions(named, documents), unread


def answers_in(name: str) -> list[AnswerQuestion]:
    """Return the questions of a list with short answers, about the session's documents that it means."""
    documents = session_documents()
    questions = at_rows(answer_sets()[name], documents)
    return renamed(questions, matched_names(questions, names_of(documents)))


@st.cache_data(max_entries=4, show_spinner="Looking the answers up in the documents…", **OF_DOCUMENTS)
def problems_of(questions: Sequence[AnswerQuestion], documents: Sequence[Document]) -> list[str]:
    """Return what is wrong with questions about documents; cached."""
    return list(check_answers(questions, documents))


@st.cache_data(max_entries=8, show_spinner="Looking for misplaced passages…", **OF_DOCUMENTS)
def mended_questions(
    questions: Sequence[Question], documents: Sequence[Document]
) -> tuple[list[Question], int]:
    """Return questions with the places found for passages of the same words, and how many; cached."""
    found, _, n_mended = mended(questions, documents)
    return found, n_mended


def usable_questions(documents: Sequence[Document]) -> list[Question]:
    """Return the usable labelled questions about documents from all sets of the session, each once."""
    sets = (set_about(name, documents).usable for name in (BUNDLED, LABELLED, *uploaded_names()))
    return list(dict.fromkeys(question for usable in sets for question in usable))


def some_usable(documents: Sequence[Document]) -> list[Question]:
    """Return the `usable_questions`, or a sample of many, as scores of all would fill the memory."""
    questions = usable_questions(documents)
    if len(some := some_questions(questions)) < len(questions):
        st.caption(f"By a sample of {len(some):,} of {counted(len(questions), 'labelled question')}.")
    return some


def labelled_questions(
    documents: Sequence[Document], chunks: Sequence[Chunk]
) -> tuple[tuple[Question, ...], Array]:
    """Return those of `some_usable` that chunks answer, and which do: ``(n_questions, n_chunks)``."""
    questions, texts = some_usable(documents), by_stem(documents)
    names = np.array([chunk.document for chunk in chunks], object)  # (n_chunks,)
    relevant = relevance(questions, chunks)
    for row, question in zip(relevant, questions, strict=True):
        called = texts[question.corpus_id]
        if len(called) > 1:
            row &= np.isin(names, [each.name for each in called if any(map(each.holds, question.references))])
    answered = np.flatnonzero(relevant.any(axis=1))
    return tuple(questions[number] for number in answered), relevant[answered]


@st.cache_data(max_entries=8, show_spinner="Comparing the questions with the documents…", **OF_DOCUMENTS)
def examined(
    questions: Sequence[Question], documents: Sequence[Document], others: Sequence[Document]
) -> Examined:
    """Compare questions with the documents that are searched, and with the session's others."""
    names, elsewhere = names_of(documents), set(map(stem, names_of(others)))
    problems = tuple(
        problem
        for problem in check_questions(questions, [*documents, *others])
        if any(questions[number].corpus_id not in elsewhere for number in problem.questions)
    )
    n_about = len(questions_about(questions, names)) + sum(not each.corpus_id for each in questions)
    n_unanswered = sum(each.is_unanswered for each in questions_about(questions, names))
    usable = measurable(questions, documents)
    shared = {name for name, count in Counter(map(stem, names)).items() if count > 1}
    return Examined(
        tuple(usable),
        len(questions) - n_about,
        n_about - len(usable) - n_unanswered,
        n_unanswered,
        len(questions_about(usable, shared)),
        problems,
    )


def kept_sample(name: str, questions: list[Asked], most: int) -> list[Asked]:
    """Return the questions of a file, or a sample of many, of those about documents that are here if any."""
    if len(questions) <= most:
        return questions
    present = about_documents(questions, session_documents())
    st.toast(
        f"{escape_markdown(name)}: a sample of {most:,} of {len(questions):,} questions is kept, "
        f"{counted(len(present), 'question')} being about documents that are here.",
        duration="long",
    )
    return some_questions(present or questions, most)


def names_of(documents: Sequence[Document]) -> list[str]:
    """Return the names of documents."""
    return [document.name for document in documents]


def show_counts(found: Examined) -> None:
    """Draw how many questions are used, and why others are left out."""
    left_out = [
        f"{number:,} {why}"
        for number, why in (
            (found.n_elsewhere, "about documents that are not searched"),
            (found.n_faulty, "without a passage at its place (open “Questions” to see what is wrong)"),
            (found.n_unanswered, "that the documents do not answer, to be refused"),
        )
        if number
    ]
    said = f"Left out: {', '.join(left_out)}." if left_out else ""
    if found.n_mended:
        said += f" {counted(found.n_mended, 'place')} found again, a few characters further."
    if not found.usable and not left_out and not found.problems:
        st.info(
            "No question is labelled yet. Label or draft some on the page “Questions”, upload a file, or "
            "choose another set."
        )
        return
    if not found.usable:
        st.info(
            f"No question of this set can be used. {said} Choose the documents that it is about, or another "
            "set."
        )
        return
    n = len(found.usable)
    marked = status_words(found.usable)
    st.caption(f"{counted(n, 'question')} about these documents{marked and f', {marked}'}. {said}")
    if found.n_unclear:
        st.warning(
            f"{found.n_unclear:,} of them may be judged wrongly: several of these documents have the name "
            "that they are about (apart from the ending), and a passage of any of them counts as an answer. "
            "Remove all but one of them, or rename them.",
            icon=":material/file_copy:",
        )


def show_problems(name: str, problems: Sequence[Problem]) -> None:
    """Draw the problems of a set, with a button that applies the suggested places."""
    if not problems:
        return
    offers = [problem for problem in problems if problem.suggestion is not None]
    n = len(problems)
    with st.expander(f"{counted(n, 'problem')} in this set", icon=":material/rule:"):
        for problem in problems[:MAX_PROBLEMS_SHOWN]:
            st.caption(escape_markdown(problem.text[:1].upper() + problem.text[1:]))
        if n > MAX_PROBLEMS_SHOWN:
            st.caption(f"And {n - MAX_PROBLEMS_SHOWN:,} more.")
    if offers and name not in (BUNDLED, DRAFTS):
        st.button(
            f"Use all {len(offers):,} suggested places" if len(offers) > 1 else "Use the suggested place",
            key="questions-repair",
            on_click=lambda: keep_questions(name, repaired(questions_of(name)[0], offers)),
            icon=":material/build:",
            width="stretch",
            help="Replaces misplaced passages by those that were found. The list says which of them are only "
            "similar: read these first.",
        )


def show_upload(name: str) -> None:
    """Draw the upload of a question file, and the removal of an uploaded set."""
    state = st.session_state
    with st.expander("Upload questions", icon=":material/upload_file:"):
        uploader = f"questions-file-{state.setdefault('questions-uploader', 0)}"
        st.file_uploader(
            "Labelled questions",
            type=["csv", "tsv", "jsonl", "zip"],
            accept_multiple_files=True,
            key=uploader,
            max_upload_size=limits().document_mb,
            on_change=queue_upload,
            args=(uploader,),
            help="Stays in this session, and in the workspaces that you save from it.",
        )
        st.caption(FORMAT)
        st.code(EXAMPLE, language=None, wrap_lines=True)
    if error := state.get("questions-error"):
        show_error(error)
    if name in (*uploaded_names(), *answer_sets()):
        st.button(
            "Remove this set",
            key="questions-remove",
            type="tertiary",
            icon=":material/delete:",
            on_click=keep_answer_set if name in answer_sets() else keep_questions,
            args=(name, ()),
            help="Removes these questions. Documents stay.",
        )


def queue_upload(uploader: str) -> None:
    """Keep uploaded files to be read in the next run of the page, and empty the uploader."""
    state = st.session_state
    if files := state[uploader]:
        state["questions-unread"] = [(file.name, file.getvalue()) for file in files]
        state["questions-error"] = None
        state["questions-uploader"] += 1  # a fresh, empty uploader


def read_queued() -> None:
    """Read uploaded files into the session, and select the last; one that cannot be read changes nothing."""
    state, has_documents = st.session_state, False
    for name, content in state.pop("questions-unread", []):
        try:
            with st.spinner(f"Reading {escape_markdown(name)}…", show_time=True):
                state[CHOSEN_SET], is_collection = add_question_file(name, content)
            has_documents |= is_collection
        except GlassboxError as error:
            state["questions-error"] = str(error)
    if has_documents:
        st.rerun()  # the document picker above was drawn without them


def add_question_file(name: str, content: bytes) -> tuple[str, bool]:
    """Add a file's questions to the session; return the name of the set, and whether it has documents."""
    is_collection = PurePath(name).suffix.lower() == ".zip"
    if is_collection:
        collection = read_upload(parse_beir_zip, name, content)
        questions = list(collection.questions)
        for failure in add_files({name: Loaded((collection.document,))}):
            raise DocumentError(failure.reason)
    elif has_short_answers(content):
        answers = read_upload(parse_answer_questions, name, content)
        keep_answer_set(name, kept_sample(name, answers, MAX_ANSWERS))
        return name, False
    else:
        questions = read_upload(parse_questions, name, content)
    questions = kept_sample(name, questions, MAX_QUESTIONS)
    if fresh := [each for each in questions if each.status == DRAFTED]:
        questions = [each for each in questions if each.status != DRAFTED]
        keep_questions(DRAFTS, list(dict.fromkeys([*kept_questions(DRAFTS)[0], *fresh])))
    if not questions:
        return DRAFTS, is_collection
    name = name_for(name, questions)
    keep_questions(name, questions)
    return name, is_collection
