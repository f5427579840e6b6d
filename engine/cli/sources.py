"""Documents and questions of a sweep on the command line, from folders and labelled collections."""

from collections.abc import Sequence
from pathlib import Path

from ..documents.document import Document
from ..documents.loaders import BUNDLED_CORPUS, unique
from ..errors import InputError
from ..evaluation.answer_labels import as_answers, as_labels
from ..evaluation.answers import AnswerQuestion, has_short_answers, load_answer_questions
from ..evaluation.beir import as_collection, load_beir
from ..evaluation.checks import measurable, mended
from ..evaluation.document_names import Asked, at_rows, did_you_mean, matched_names, renamed, unknown_names
from ..evaluation.passage_search import located
from ..evaluation.questions import DRAFTED, Question, file_content, load_questions, questions_about
from ..evaluation.sample import about_documents, sample_of
from ..progress import say
from ..wording import counted, some_of
from .loading import MAX_NAMES_SHOWN, picked, readable


def sources(
    corpus: Path | None, beir: Sequence[Path], names: Sequence[str], questions: Path | None, most: int = 0
) -> tuple[list[Document], list[Question], list[AnswerQuestion]]:
    """Read the documents to search, their labelled questions, and those to answer; report what is left out.

    Those to answer are the same, or all of a file of short answers, such as the bundled one.

    The corpus and the questions are bundled where they are None and there is no BEIR collection, each of
    which is one more document. ``names`` are the documents to search, all if empty; ``most`` questions are
    asked, of a sample in which documents are left out, too, or all for 0.
    """
    paths = [] if corpus is None and beir else [corpus or BUNDLED_CORPUS]
    say(f"Reading {', '.join(map(str, [*beir, *paths]))}")
    collections = [as_collection(path.resolve().name, load_beir(path)) for path in beir]
    given = [document for path in paths for document in readable(path).documents]
    every = unique([*given, *(one.document for one in collections)])
    documents = picked(every, names)
    answers: list[AnswerQuestion] = []
    if questions is None and collections:
        asked = [question for one in collections for question in one.questions]
    elif questions is not None and has_short_answers(file_content(questions, "CSV or JSONL")):
        answers = present(with_matched_names(load_answer_questions(questions), every), every)
        asked = as_labels(answers, every)
    else:
        asked = load_questions(questions)
        answers = [] if questions or corpus else load_answer_questions()
    asked = located(present(with_matched_names(asked, every), every), every)
    if most:
        sample = sample_of(documents, about_documents(asked, documents), most)
        if not sample.is_whole:
            say(f"measuring a sample: {sample.words}; --sample 0 measures all")
            documents, asked = list(sample.documents), list(sample.questions)
    asked, problems, n_mended = mended(asked, documents)
    if n_mended:
        say(f"{counted(n_mended, 'passage')} found again, a few characters further")
    warn_of_problems([problem.text for problem in problems])
    used = measurable(asked, documents)
    report_unused(asked, used, documents)
    drafts = [each for each in asked if each.is_unanswered]
    return documents, used, about_documents(answers, documents) or as_answers([*used, *drafts])


def present(questions: Sequence[Asked], documents: Sequence[Document]) -> list[Asked]:
    """Return the questions about documents that are there; report how many others there are."""
    found = about_documents(questions, documents)
    if left := len(questions) - len(found):
        names = unknown_names(questions, [document.name for document in documents])
        say(
            f"left out {left:,} of {counted(len(questions), 'question')}, about documents that are not "
            f"there: {some_of(names, MAX_NAMES_SHOWN)}"
        )
    return found


def warn_of_problems(problems: Sequence[str]) -> None:
    """Warn of the first problems of questions, and say how many more there are."""
    for problem in problems[:MAX_NAMES_SHOWN]:
        say(f"warning: {problem}")
    if len(problems) > MAX_NAMES_SHOWN:
        say(f"warning: {counted(len(problems) - MAX_NAMES_SHOWN, 'more problem')} of this kind")


def with_matched_names(questions: Sequence[Asked], documents: Sequence[Document]) -> list[Asked]:
    """Take names of documents that differ only in ending and capitals, and report each."""
    names = [document.name for document in documents]
    questions = at_rows(questions, documents)
    matched = matched_names(questions, names)
    for name, document in matched.items():
        say(f"the questions' document {name!r} is taken to be {document}")
    found = renamed(questions, matched)
    unknown = unknown_names(found, names)
    if unknown and all(each.about in unknown for each in found):
        said = [
            f"{name!r} ({did_you_mean(name, names) or 'none is similar'})"
            for name in unknown[:MAX_NAMES_SHOWN]
        ]
        raise InputError(
            f"no document has a name that the questions give: {', '.join(said)}: correct the names in the "
            "file of questions, or give the documents that they are about"
        )
    return found


def report_unused(asked: Sequence[Question], used: Sequence[Question], documents: Sequence[Document]) -> None:
    """Report how many questions are left out and why; raise `InputError` where none is left."""
    about = questions_about(asked, [document.name for document in documents])
    n_unanswered = sum(each.is_unanswered for each in about)
    reasons = {
        "about documents that are not searched": len(asked) - len(about),
        "without a passage at its place": len(about) - len(used) - n_unanswered,
        "that the documents do not answer": n_unanswered,
    }
    why = ", ".join(f"{number:,} {reason}" for reason, number in reasons.items() if number)
    if not used:
        raise InputError(f"no question can be used ({why}): give the documents that they are about")
    if why:
        n = len(asked) - len(used)
        say(f"left out {n:,} of {len(asked):,} questions: {why}")
    if n_drafted := sum(each.status == DRAFTED for each in used):
        say(
            f"warning: nobody has read {n_drafted:,} of {counted(len(used), 'question')}: these drafts tell "
            "settings that are clearly worse, not the best one"
        )
