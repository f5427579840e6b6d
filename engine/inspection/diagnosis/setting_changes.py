"""A change of settings: which ones differ, and its effect on other labelled questions."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ...documents.document import Document
from ...evaluation.questions import Question, Reference, questions_about, stem
from ...evaluation.significance import Comparison, compare
from ...evaluation.sweep_row import SweepRow
from ...settings import SWEPT, Configuration
from .location import Location, middle_half


@dataclass(frozen=True)
class Effect:
    """The effect of a change of settings on other questions."""

    mrr: Comparison  # their reciprocal ranks before and after, compared question by question
    # share of them that find an answer among the first k
    hits_before: float
    hits_after: float
    # indices of the questions that find one only after the change, or only before
    won: tuple[int, ...] = field(repr=False)
    lost: tuple[int, ...] = field(repr=False)


def changed_settings(current: Configuration, configuration: Configuration) -> tuple[str, ...]:
    """Return the names of the settings that differ."""
    return tuple(key for key in SWEPT if getattr(current, key) != getattr(configuration, key))


def passage_question(question: str, place: Location, document: Document) -> Question:
    """Return a labelled question whose answer is a passage, by its `middle_half` as in a diagnosis."""
    start, end = middle_half(place)
    reference = Reference(document.text[start:end], start, end)
    return Question(question, stem(place.document), (reference,))


def other_questions(
    asked: Question, questions: Sequence[Question], documents: Sequence[Document]
) -> list[Question]:
    """Return the labelled questions about some documents, without the one that was asked."""
    about = questions_about(questions, [document.name for document in documents])
    return [question for question in about if question.references and question.text != asked.text]


def effect_on_others(before: SweepRow, after: SweepRow) -> Effect | None:
    """Compare two rows of a sweep on all questions but the first; None where there is no other."""
    mrr = [np.array(row.values["mrr"][1:]) for row in (before, after)]  # (n_others,) each
    if not len(mrr[0]) and not len(mrr[1]):
        return None
    comparison = compare(mrr[0], mrr[1])
    hit = [np.array(row.values["hit_rate@k"][1:]) > 0 for row in (before, after)]
    return Effect(
        comparison,
        float(hit[0].mean()),
        float(hit[1].mean()),
        tuple(np.flatnonzero(hit[1] & ~hit[0]).tolist()),
        tuple(np.flatnonzero(hit[0] & ~hit[1]).tolist()),
    )
