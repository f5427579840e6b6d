"""Problems of a set of questions, found before any metric is computed.

A passage that is not at the place given for it makes every retriever look bad, and no metric shows it. Every
problem is described in one line. If the passage occurs elsewhere in its document, exactly, spelled alike or
approximately, that place is suggested.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.documents.document import Document
from engine.evaluation.document_names import did_you_mean
from engine.evaluation.locating import is_unlocated
from engine.evaluation.passage_search import SearchableText
from engine.evaluation.questions import Question, Reference, stem
from engine.wording import beginning, some_of

SHOWN = 60  # characters of a text that is quoted
LISTED = 20  # names of documents in a message
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
    """Compare questions with the documents that they are about.

    Problems are questions that are blank, repeated, without a passage that answers them, or about an unknown
    document, and passages that are not at the place given for them.
    """
    texts = by_stem(documents)
    return [
        *unknown_documents(questions, list(texts)),
        *ambiguous_documents(questions, texts),
        *blank_questions(questions),
        *repeated_questions(questions),
        *unanswered_questions(questions),
        *misplaced_passages(questions, texts),
        *unfound_passages(questions),
    ]


def by_stem(documents: Sequence[Document]) -> Texts:
    """Group documents by the stem of their names."""
    texts: Texts = {}
    for document in documents:
        texts.setdefault(stem(document.name), []).append(SearchableText(document.name, document.text))
    return texts


def measurable(questions: Sequence[Question], documents: Sequence[Document]) -> list[Question]:
    """Return the questions by which a search of the documents can be measured, in their order.

    Each is about one of the documents and has passages that answer it, all of them at their places.
    """
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


def unknown_documents(questions: Sequence[Question], stems: Sequence[str]) -> list[Problem]:
    """Find questions about unknown documents: one problem per document."""
    loaded = some_of([quoted(each) for each in stems], LISTED) or "none"
    problems = []
    for name, numbers in by_document(questions).items():
        if name in stems or not name:
            continue
        meant = did_you_mean(name, stems)
        hint = f"{meant} Correct corpus_id, or load" if meant else "load"
        problems.append(
            Problem(
                tuple(numbers),
                f"{counted(numbers)} about {quoted(name)}, and no document is called that (there are: "
                f"{loaded}): {hint} that document, or leave these questions out",
            )
        )
    return problems


def ambiguous_documents(questions: Sequence[Question], texts: Texts) -> list[Problem]:
    """Find questions about a name that several documents have: one problem per name."""
    return [
        Problem(
            tuple(numbers),
            f"{counted(numbers)} about {quoted(name)}, which {len(texts[name])} documents are called "
            f"({', '.join(quoted(searched.name) for searched in texts[name])}), and a chunk of any would "
            "count as an answer: leave all but one out, or rename them",
        )
        for name, numbers in by_document(questions).items()
        if len(texts.get(name, ())) > 1
    ]


def by_document(questions: Sequence[Question]) -> dict[str, list[int]]:
    """Group the numbers of questions by the document that they are about."""
    about: dict[str, list[int]] = {}
    for number, question in enumerate(questions):
        about.setdefault(question.corpus_id, []).append(number)
    return about


def counted(numbers: Sequence[int]) -> str:
    """Return the beginning of a sentence about some questions: ``"question 3 is"``."""
    if len(numbers) == 1:
        return f"question {numbers[0] + 1} is"
    return f"{len(numbers)} questions, the first is question {numbers[0] + 1}, are"


def blank_questions(questions: Sequence[Question]) -> list[Problem]:
    """Find questions without text."""
    return [
        Problem((number,), f"question {number + 1} is blank: write what it asks, or leave it out")
        for number, question in enumerate(questions)
        if not question.text.strip()
    ]


def repeated_questions(questions: Sequence[Question]) -> list[Problem]:
    """Find questions repeated for the same document, ignoring case and white space."""
    first: dict[tuple[str, str], int] = {}
    problems = []
    for number, question in enumerate(questions):
        words = " ".join(question.text.split()).casefold()
        before = first.setdefault((words, question.corpus_id), number)
        if words and before != number:
            said = f"question {number + 1} repeats question {before + 1}, {quoted(question.text)}"
            problems.append(
                Problem((before, number), f"{said}: it counts twice in every mean, so leave one out")
            )
    return problems


def unanswered_questions(questions: Sequence[Question]) -> list[Problem]:
    """Find questions without a passage that answers them."""
    return [
        Problem(
            (number,),
            f"question {number + 1}, {quoted(question.text)}, has no passage that answers it, so that "
            "nothing is measured by it and it is left out: give it one",
        )
        for number, question in enumerate(questions)
        if not question.references
    ]


def misplaced_passages(questions: Sequence[Question], texts: Texts) -> list[Problem]:
    """Find references whose passage is not at its place, and search for it elsewhere in the document."""
    problems = []
    for number, question in enumerate(questions):
        candidates = texts.get(question.corpus_id, [])
        for i, reference in enumerate(question.references):
            if not candidates or any(searched.holds(reference) for searched in candidates):
                continue
            how, suggestion = candidates[0].find(reference)
            place = "in" if is_unlocated(reference) else f"at {reference.start} to {reference.end} of"
            said = (
                f"question {number + 1}: its passage {quoted(reference.content)} does not stand {place} "
                f"{quoted(candidates[0].name)}, which has {len(candidates[0].text)} characters; {how}"
            )
            problems.append(Problem((number,), said, i, suggestion))
    return problems


def unfound_passages(questions: Sequence[Question]) -> list[Problem]:
    """Find questions that name no document and whose passages are not located yet."""
    return [
        Problem(
            (number,),
            f"question {number + 1}: its passage {quoted(question.references[0].content)} stands in none of "
            "the documents, in several, or in too many places: copy more of it, word for word, and name the "
            "document under “document”",
        )
        for number, question in enumerate(questions)
        if not question.corpus_id and question.references
    ]


def quoted(text: str) -> str:
    """Return a text in quotation marks, on one line and shortened."""
    return f"“{beginning(text, SHOWN)}”"
