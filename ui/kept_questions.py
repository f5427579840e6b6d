"""The question sets that a session holds: they live in its workspace, and are saved and opened with it."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from engine.errors import InputError
from engine.evaluation.checks import Problem
from engine.evaluation.question_files import question_fields
from engine.evaluation.questions import Question, to_question
from engine.workspace import Workspace

# What a picker offers beside the sets that were uploaded.
BUNDLED, LABELLED, SELF_TEST = "Bundled", "Labelled here", "Self-test (no labels)"


def kept_names() -> list[str]:
    """Return the names of the sets that the session's workspace holds."""
    return list(workspace().question_sets)


def uploaded_names() -> list[str]:
    """Return the names of those among them that were not labelled here; none can pass for another choice."""
    return [name for name in kept_names() if name not in (BUNDLED, LABELLED, SELF_TEST)]


def kept_questions(name: str) -> tuple[list[Question], list[Problem]]:
    """Return a kept set's questions, and what is wrong with those that a workspace's file got wrong."""
    questions, unread = [], []
    for number, row in enumerate(workspace().question_sets.get(name, ())):
        try:
            questions.append(to_question(row, f"question {number + 1} of the workspace"))
        except InputError as error:
            unread.append(Problem((number,), str(error)))
    return questions, unread


def keep_questions(name: str, questions: Sequence[Question]) -> None:
    """Put a set into the session's workspace, in the place of one of the same name; an empty one is gone."""
    sets = {other: rows for other, rows in workspace().question_sets.items() if other != name}
    if questions:
        sets[name] = [question_fields(question) for question in questions]
    st.session_state["workspace"] = replace(workspace(), question_sets=sets)


def workspace() -> Workspace:
    """Return the session's workspace, of which documents and settings are put together when it is saved."""
    kept: Workspace = st.session_state.get("workspace", Workspace())
    return kept
