"""Problems of a set of questions, found before any metric is computed.

A passage that is not at the place given for it makes every retriever look bad, and no metric shows it. Every
problem is described in one line. If the passage occurs elsewhere in its document, exactly, spelled alike or
approximately, that place is suggested.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..documents.document import Document
from ..wording import beginning, some_of
from .document_names import did_you_mean
from .passage_search import SearchableText, is_unlocated, words_of
from .questions import Question, Reference, stem

QUOTED_CHARACTERS = 60
MAX_NAMES_SHOWN = 20
MOST_MOVED = 200  # characters between a given place and that of the same words, of one passage
# Documents by the stem of their names, by which questions refer to them.
Texts = dict[str, list[SearchableText]]


@dataclass(frozen=True)
class Problem:
    """A problem of one or several questions."""

    questions: tuple[int, ...]  # their numbers, from 0
    text: str  # the problem and its solution, in one line; it counts from 1
    # the number of the reference with the problem, from 0; None if it is not about a reference
    reference: int | None = None
    # a replacement for that reference, if its passage, or one like it, was found
    suggestion: Reference | None = None


def check_questions(questions: Sequence[Question], documents: Sequence[Document]) -> list[Problem]:
    """Return the problems of questions: blank, repeated, unanswered, misplaced, of unknown documents."""
    texts = by_stem(documents)
    return [
        *problems_of_names(questions, texts),
        *problems_of_wording(questions),
        *misplaced_passages(questions, texts),
    ]


def by_stem(documents: Sequence[Document]) -> Texts:
    """Group documents by the stem of their names."""
    texts: Texts = {}
    for document in documents:
        texts.setdefault(stem(document.name), []).append(SearchableText(document.name, document.text))
    return texts


def measurable(questions: Sequence[Question], documents: Sequence[Document]) -> list[Question]:
    """Return the questions about one of the documents, whose passages are all at their places."""
    texts = by_stem(documents)
    return [
        question
        for question in questions
        if question.references
        and all(
            any(searched.holds(reference) for searched in texts.get(question.corpus_id, ()))
            for reference in question.references
        )
    ]


def repaired(questions: Sequence[Question], problems: Sequence[Problem]) -> list[Question]:
    """Replace references by the suggestions for them."""
    kept = list(questions)
    for problem in problems:
        if problem.suggestion is not None and problem.reference is not None:
            for number in problem.questions:
                references = list(kept[number].references)
                references[problem.reference] = problem.suggestion
                kept[number] = replace(kept[number], references=tuple(references))
    return kept


def mended(
    questions: Sequence[Question], documents: Sequence[Document]
) -> tuple[list[Question], list[Problem], int]:
    """Return questions with passages that moved a little back in place, other problems, and how many."""
    problems = check_questions(questions, documents)
    moved = [has_moved_a_little(problem, questions) for problem in problems]
    certain = [problem for problem, is_certain in zip(problems, moved, strict=True) if is_certain]
    left = [problem for problem, is_certain in zip(problems, moved, strict=True) if not is_certain]
    return repaired(questions, certain), left, len(certain)


def has_moved_a_little(problem: Problem, questions: Sequence[Question]) -> bool:
    """Whether a passage stands, in the same words, near the place that was given for it."""
    if problem.suggestion is None or problem.reference is None:
        return False
    found, given = problem.suggestion, questions[problem.questions[0]].references[problem.reference]
    is_near = not is_unlocated(given) and abs(found.start - given.start) <= MOST_MOVED
    return is_near and [*words_of(found.content)] == [*words_of(given.content)]


def problems_of_names(questions: Sequence[Question], texts: Texts) -> list[Problem]:
    """Find names that no document has, or several have: one problem per name."""
    about: dict[str, list[int]] = {}
    for number, question in enumerate(questions):
        about.setdefault(question.corpus_id, []).append(number)
    loaded, unknown, ambiguous = some_of([quoted(each) for each in texts], MAX_NAMES_SHOWN) or "none", [], []
    for name, numbers in about.items():
        if len(numbers) == 1:
            said = f"question {numbers[0] + 1} is about {quoted(name)}"
        else:
            said = (
                f"{len(numbers)} questions, the first is question {numbers[0] + 1}, are about {quoted(name)}"
            )
        called = texts.get(name, [])
        if name and not called:
            meant = did_you_mean(name, texts)
            hint = f"{meant} Correct corpus_id, or load" if meant else "load"
            words = (
                f"{said}, and no document is called that (there are: {loaded}): {hint} that document, or "
                "leave these questions out"
            )
            unknown.append(Problem(tuple(numbers), words))
        elif len(called) > 1:
            words = (
                f"{said}, which {len(called)} documents are called "
                f"({', '.join(quoted(each.name) for each in called)}), and a chunk of any would count as an "
                "answer: leave all but one out, or rename them"
            )
            ambiguous.append(Problem(tuple(numbers), words))
    return unknown + ambiguous


def problems_of_wording(questions: Sequence[Question]) -> list[Problem]:
    """Find questions without text, repeated for the same document, and without a passage."""
    first: dict[tuple[str, str], int] = {}  # case and white space do not count
    blank, repeated, unanswered = [], [], []
    for number, question in enumerate(questions):
        named, words = f"question {number + 1}", " ".join(question.text.split()).casefold()
        before = first.setdefault((words, question.corpus_id), number)
        if not words:
            said = f"{named} is blank: write what it asks, or leave it out"
            blank.append(Problem((number,), said))
        elif before != number:
            said = f"{named} repeats question {before + 1}, {quoted(question.text)}"
            said += ": it counts twice in every mean, so leave one out"
            repeated.append(Problem((before, number), said))
        if not question.references and not question.is_unanswered:
            said = f"{named}, {quoted(question.text)}, has no passage that answers it, so that nothing is "
            said += "measured by it and it is left out: give it one"
            unanswered.append(Problem((number,), said))
    return blank + repeated + unanswered


def misplaced_passages(questions: Sequence[Question], texts: Texts) -> list[Problem]:
    """Find references whose passage is not at its place, and search for it elsewhere in the document."""
    misplaced, unfound = [], []
    for number, question in enumerate(questions):
        candidates = texts.get(question.corpus_id, [])
        for i, reference in enumerate(question.references if candidates else ()):
            if any(searched.holds(reference) for searched in candidates):
                continue
            how, suggestion = candidates[0].find(reference)
            place = "in" if is_unlocated(reference) else f"at {reference.start} to {reference.end} of"
            said = (
                f"question {number + 1}: its passage {quoted(reference.content)} does not stand {place} "
                f"{quoted(candidates[0].name)}, which has {len(candidates[0].text)} characters; {how}"
            )
            misplaced.append(Problem((number,), said, i, suggestion))
        if question.references and not question.corpus_id:
            said = (
                f"question {number + 1}: its passage {quoted(question.references[0].content)} stands in none "
                "of the documents, in several, or in too many places: copy more of it, word for word, and "
                "name the document under “document”"
            )
            unfound.append(Problem((number,), said))
    return misplaced + unfound


def quoted(text: str) -> str:
    """Return a text in quotation marks, on one line and shortened."""
    return f"“{beginning(text, QUOTED_CHARACTERS)}”"
