"""The question sets of a session: they are part of its workspace, and are saved and opened with it."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import streamlit as st
from pydantic import TypeAdapter, ValidationError

from engine.errors import InputError
from engine.evaluation.answers import AnswerQuestion
from engine.evaluation.checks import Problem
from engine.evaluation.questions import Question, Reference, question_fields, to_question
from engine.storage.workspace import Workspace

AnswerSets = dict[str, tuple[AnswerQuestion, ...]]
ANSWERS_AS_JSON = TypeAdapter(AnswerSets)
# The sets that a picker offers besides the uploaded ones.
BUNDLED, LABELLED, DRAFTS = OFFERED = "Bundled", "Labelled here", "Drafts"


def kept_names() -> list[str]:
    """Return the names of the sets in the session's workspace."""
    return list(workspace().question_sets)


def uploaded_names() -> list[str]:
    """Return the names of the uploaded sets; none of them has the name of another choice."""
    return [name for name in kept_names() if name not in OFFERED]


def kept_questions(name: str) -> tuple[list[Question], list[Problem]]:
    """Return a set's questions, and the problems of those that a workspace file has in a wrong form."""
    questions, unread = [], []
    for number, row in enumerate(workspace().question_sets.get(name, ())):
        try:
            questions.append(to_question(row, f"question {number + 1} of the workspace"))
        except InputError as error:
            unread.append(Problem((number,), str(error)))
    return questions, unread


def keep_questions(name: str, questions: Sequence[Question]) -> None:
    """Put a set into the session's workspace, replacing one of the same name; an empty set is removed."""
    sets = {other: rows for other, rows in workspace().question_sets.items() if other != name}
    if questions:
        sets[name] = [question_fields(question) for question in questions]
    st.session_state["workspace"] = replace(workspace(), question_sets=sets)


def name_for(name: str, questions: Sequence[Question]) -> str:
    """Return the name for an uploaded set, with a number where one has questions that it lacks."""
    path, sets, number = PurePath(name), workspace().question_sets, 1
    given = {json.dumps(question_fields(question), sort_keys=True) for question in questions}
    while not {json.dumps(row, sort_keys=True) for row in sets.get(name, ())} <= given:
        number += 1
        name = f"{path.stem} ({number}){path.suffix}"
    return name


def keep_label(name: str, text: str, corpus_id: str, reference: Reference) -> None:
    """Add a passage to a set as the answer to a question."""
    questions, _ = kept_questions(name)
    keep_questions(name, with_label(questions, text, corpus_id, reference))


def with_label(
    questions: Sequence[Question], text: str, corpus_id: str, reference: Reference
) -> list[Question]:
    """Return the questions with a passage added, to the same question or to a new one."""
    added = list(questions)
    for number, question in enumerate(questions):
        if (question.text, question.corpus_id) == (text, corpus_id):
            references = tuple(dict.fromkeys((*question.references, reference)))
            added[number] = replace(question, references=references)
            return added
    return [*added, Question(text, corpus_id, (reference,))]


def answer_sets() -> AnswerSets:
    """Return the uploaded sets of questions with short answers."""
    return st.session_state.get("answer-sets", {})


def keep_answer_set(name: str, questions: Sequence[AnswerQuestion]) -> None:
    """Keep questions with short answers, in place of others of the name; an empty set is removed."""
    others = {other: rows for other, rows in answer_sets().items() if other != name}
    st.session_state["answer-sets"] = others | ({name: tuple(questions)} if questions else {})


def answer_sets_json() -> Any:
    """Return the sets of questions with short answers as JSON values, for a workspace's settings."""
    return ANSWERS_AS_JSON.dump_python(answer_sets(), mode="json")


def apply_answer_sets(values: object) -> None:
    """Take the sets of questions with short answers from a workspace's settings, none if they are damaged."""
    st.session_state["answer-sets"] = {}
    with suppress(ValidationError):
        st.session_state["answer-sets"] = ANSWERS_AS_JSON.validate_python(values)


def workspace() -> Workspace:
    """Return the session's workspace; documents and settings are added to it when it is saved."""
    return st.session_state.get("workspace", Workspace())
