"""Labelled questions, split into folds so that each is tested by a model not trained on it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ...errors import InputError
from ...layers.tracing import Array


@dataclass(frozen=True)
class LabelledTexts:
    """Questions, chunks and their relevance; every question has a relevant chunk."""

    questions: tuple[str, ...] = field(repr=False)
    chunks: tuple[str, ...] = field(repr=False)
    documents: tuple[str, ...] = field(repr=False)  # name of each chunk's
    relevant: Array = field(repr=False)  # bool ``(n_questions, n_chunks)``

    def __post_init__(self) -> None:
        sizes = (len(self.questions), len(self.chunks))
        if self.relevant.shape != sizes or len(self.documents) != sizes[1]:
            raise InputError(
                f"relevance of shape {self.relevant.shape} and {len(self.documents)} names of documents for "
                f"{sizes[0]} questions and {sizes[1]} chunks: give a row a question, and a column and a "
                "name a chunk"
            )
        if unanswered := int((~self.relevant.any(axis=1)).sum()):
            raise InputError(f"{unanswered} questions have no relevant chunk: leave them out")


@dataclass(frozen=True)
class Fold:
    """Places of the training and test questions, and of the chunks that training may see."""

    train: Array
    test: Array
    seen: Array


def folds_by_question(labelled: LabelledTexts, n_folds: int, seed: int = 0) -> list[Fold]:
    """Split the questions into folds, each tested once; training sees every chunk."""
    n_questions, n_chunks = labelled.relevant.shape
    check_folds(n_folds, n_questions, "questions")
    order = np.random.default_rng(seed).permutation(n_questions)
    chunks = np.arange(n_chunks)
    return [Fold(np.setdiff1d(order, test), np.sort(test), chunks) for test in np.array_split(order, n_folds)]


def folds_by_document(labelled: LabelledTexts, n_folds: int, seed: int = 0) -> list[Fold]:
    """Split the questions into folds so that no document that answers a test question is trained on.

    Questions answered by the same documents stay together; training leaves out questions that only these
    answer. There are at most as many folds as groups of questions.
    """
    names = np.array(labelled.documents, object)
    answering = [frozenset(names[row]) for row in labelled.relevant]
    groups: dict[frozenset[str], list[int]] = {}
    for number, found in enumerate(answering):
        groups.setdefault(found, []).append(number)
    n_folds = min(n_folds, len(groups)) if n_folds > 1 else n_folds
    check_folds(n_folds, len(groups), "documents with questions")
    dealt: list[list[int]] = [[] for _ in range(n_folds)]
    members = list(groups.values())
    shuffled = [members[place] for place in np.random.default_rng(seed).permutation(len(members))]
    for group in sorted(shuffled, key=len, reverse=True):  # the largest first, to the smallest fold
        min(dealt, key=len).extend(group)
    return [fold_without(labelled, names, answering, np.array(sorted(test))) for test in dealt]


def fold_without(
    labelled: LabelledTexts, names: Array, answering: Sequence[frozenset[str]], test: Array
) -> Fold:
    """Return the fold whose training sees no document that answers a test question."""
    hidden = frozenset().union(*(answering[number] for number in test))
    seen = np.flatnonzero([name not in hidden for name in names])
    has_answer: Array = np.asarray(labelled.relevant[:, seen].any(axis=1))
    has_answer[test] = False
    if not has_answer.any():
        raise InputError(
            f"the documents that answer {len(test)} test questions answer all the others too: bring "
            "questions about more documents, or take fewer folds"
        )
    return Fold(np.flatnonzero(has_answer), test, seen)


def check_folds(n_folds: int, n_groups: int, what: str) -> None:
    """Raise `InputError` unless there are at least two folds, and a group for each."""
    if not 2 <= n_folds <= n_groups:
        raise InputError(
            f"{n_folds} folds of {n_groups} {what}: take 2 folds or more, and at most as many as there are "
            f"{what}"
        )


def hold_out(questions: Array, share: int, seed: int) -> tuple[Array, Array]:
    """Hold one in ``share`` of the training questions out: those trained on, and those held out."""
    if len(questions) < 2:
        raise InputError(
            f"{len(questions)} question is left to train on, and one more has to be held out: bring more "
            "labelled questions"
        )
    order = np.random.default_rng(seed).permutation(len(questions))
    held_out = np.array_split(order, min(share, len(questions)))[0]
    return questions[np.setdiff1d(order, held_out)], questions[np.sort(held_out)]
