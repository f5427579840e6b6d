"""Answers scored without a judge: whether what is shown holds the short answer of a labelled question.

Texts are compared as in SQuAD (Rajpurkar et al. 2016): in lower case, without punctuation and articles. The
documents hold no answer to some questions (as in SQuAD 2.0, Rajpurkar et al. 2018): these are to be refused.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import filterfalse
from pathlib import Path, PurePath
from time import perf_counter
from typing import Any

import numpy as np

from ..documents.document import Chunk, Document
from ..errors import InputError
from ..generation.answer import Answer
from ..generation.confidence import AnswerStatus
from ..generation.reading import AnswerSpan
from ..installed import bundled
from ..models.parallel import run_parallel
from ..retrieval.evidence import Quote
from ..retrieval.index import Hit
from ..weights.fetch import Progress
from .bootstrap import Interval, level_interval
from .document_names import did_you_mean
from .questions import csv_rows, file_content, names_for, stem, utf8_text

BUNDLED_ANSWERS = bundled("answers.csv")
COLUMNS = ("question", "answer")
N_BINS = 5  # of answers by how sure they are
PARTS = re.compile(r"\s&(?=\s)")
ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalized(text: str) -> str:
    """Return a text in lower case without punctuation and articles, its words divided by single spaces."""
    kept = "".join(filterfalse(is_punctuation, text.lower()))
    return " ".join(ARTICLES.sub(" ", kept).split())


@cache
def is_punctuation(character: str) -> bool:
    """Whether a character is punctuation, of ASCII as in SQuAD (``$`` and ``+`` too) or of Unicode."""
    category = unicodedata.category(character)
    return category.startswith("P") or (category.startswith("S") and character.isascii())


@dataclass(frozen=True)
class ShortAnswer:
    """A short answer: parts that must all occur, each with its alternatives; no parts where there is none.

    Written as text, ``&`` between spaces divides parts and ``|`` the alternatives of one: ``"UAW & IBEW"``,
    ``"1990|1991"``; in ``"C&A"`` and ``"AT&T"`` it is part of a name.
    """

    parts: tuple[tuple[str, ...], ...]

    @classmethod
    def parse(cls, text: str) -> "ShortAnswer":
        """Read an answer; raise `InputError` where an alternative is empty; punctuation is never found."""
        if not text.strip():
            return cls(())
        parts = tuple(tuple(each.strip() for each in part.split("|")) for part in PARTS.split(text))
        if not all(alternative for part in parts for alternative in part):
            raise InputError(f"the answer {text!r} has an empty part: give words between & and |")
        return cls(parts)

    def __bool__(self) -> bool:
        """Whether there is an answer."""
        return bool(self.parts)

    def is_in(self, text: str) -> bool:
        """Whether every part occurs in a text, as whole words."""
        return self.is_in_words(normalized(text))

    def is_in_words(self, words: str) -> bool:
        """Whether every part occurs in a text that is `normalized` already."""
        return bool(self.parts) and all(occurs(part, words) for part in self.parts)

    def f1(self, text: str) -> float:
        """F1 of the words of a text, with the alternative of each part that is nearest to it."""
        if not self.parts:
            return 0.0
        best = [max(part, key=lambda each: word_f1(each, text)) for part in self.parts]
        return word_f1(" ".join(best), text)


def occurs(alternatives: Sequence[str], words: str) -> bool:
    """Whether one of several texts occurs in another that is `normalized` already, as whole words."""
    found = filter(None, map(normalized, alternatives))
    return any(f" {each} " in f" {words} " for each in found)


def word_f1(wanted: str, text: str) -> float:
    """Harmonic mean of the shares of words that two texts have in common."""
    want, have = normalized(wanted).split(), normalized(text).split()
    n_common = sum((Counter(want) & Counter(have)).values())
    return 2 * n_common / (len(want) + len(have)) if n_common else 0.0


@dataclass(frozen=True)
class AnswerQuestion:
    """A question and its short answer.

    Without a short answer, words of its ``spans`` answer it; without these, too, the documents hold none.
    """

    text: str
    answer: ShortAnswer
    document: str = ""  # name of the document that answers it; empty if it is not said
    spans: tuple[tuple[int, int], ...] = ()  # where it does, ``(start, end)`` each; none if it is not said
    kind: str = ""  # labels of the file, to report questions apart; empty if it has none
    half: str = ""

    @property
    def is_answerable(self) -> bool:
        """Whether the documents hold an answer."""
        return bool(self.answer or self.spans)

    @property
    def about(self) -> str:
        """The stem of the document's name; empty if it is not said."""
        return stem(self.document)

    def renamed(self, document: str) -> "AnswerQuestion":
        """Return the question about the document of another name."""
        return replace(self, document=document)

    def within(self, document: Document, row: tuple[int, int]) -> "AnswerQuestion":
        """Return the question about a document, with its places within a row, or the row as its place."""
        spans = tuple((row[0] + start, row[0] + end) for start, end in self.spans)
        return replace(self, document=document.name, spans=spans or (row,))

    def fits(self, text: str) -> bool | None:
        """Whether the text of a document has the answer at its places; None without places or answer."""
        if not (self.spans and self.answer):
            return None
        return self.answer.is_in("\n".join(text[start:end] for start, end in self.spans))

    def is_found_in(self, hits: Sequence[Hit]) -> bool:
        """Whether passages hold the answer: in the document and at the places that are labelled, if any."""
        own = [hit.chunk for hit in hits if not self.about or self.about in names_for(hit.chunk.document)]
        if not self.answer:
            return any(touches(chunk, span) for chunk in own for span in self.spans)
        is_whole = all(any(touches(chunk, span) for chunk in own) for span in self.spans)
        counted = [c for c in own if not self.spans or any(touches(c, span) for span in self.spans)]
        return is_whole and self.answer.is_in("\n".join(chunk.text for chunk in counted))

    def is_answered_by(self, piece: AnswerSpan | Quote) -> bool:
        """Whether words of a document are of a passage that is labelled, in place of a short answer."""
        is_own = self.about in ("", *names_for(piece.document))
        return is_own and any(touches(piece, span) for span in self.spans)


def touches(piece: Chunk | AnswerSpan | Quote, span: tuple[int, int]) -> bool:
    """Whether a piece of a document has a character of a span of it."""
    return piece.start < span[1] and span[0] < piece.end


def load_answer_questions(path: Path = BUNDLED_ANSWERS) -> list[AnswerQuestion]:
    """Read questions with short answers from a CSV file."""
    return parse_answer_questions(path.name, file_content(path, "CSV"))


def has_short_answers(content: bytes) -> bool:
    """Whether the first line of a file names a column of short answers, and none of passages."""
    header = content[:10_000].decode("utf-8-sig", "replace").split("\n", 1)[0].lower()
    columns = {column.strip(" \"'\r") for column in re.split("[,;\t|]", header)}
    return "answer" in columns and columns.isdisjoint({"passage", "references"})


def parse_answer_questions(name: str, content: bytes) -> list[AnswerQuestion]:
    """Read questions with short answers from CSV.

    Its columns are ``question`` and ``answer`` (written as in `ShortAnswer`, empty where the documents hold
    none) and optionally ``document``, ``start`` and ``end`` (characters of the document; ``&`` divides
    several places), ``kind`` and ``half``.
    """
    rows = list(csv_rows(utf8_text(name, content), name))
    if missing := [column for column in COLUMNS if rows and column not in rows[0][0]]:
        raise InputError(
            f"{name} has no column {' and '.join(missing)}: name the columns in its first line, question and "
            "answer, and optionally document, start and end"
        )
    questions = [
        to_question({key: value or "" for key, value in row.items() if key}, place) for row, place in rows
    ]
    if not questions:
        raise InputError(f"{name} holds no questions: give one a row, under question and answer")
    return questions


def to_question(row: dict[str, str], place: str) -> AnswerQuestion:
    """Make a question from the fields of a row; errors name its place."""
    if not row["question"].strip():
        raise InputError(f"{place} has no question: fill the column question, or remove the row")
    try:
        starts, ends = (
            [int(each) for each in row.get(key, "").split("&") if each.strip()] for key in ("start", "end")
        )
        spans = tuple(zip(starts, ends, strict=True))
    except ValueError as error:
        raise InputError(
            f"{place} has start {row.get('start', '')!r} and end {row.get('end', '')!r}: give as many of one "
            "as of the other, whole numbers with & between"
        ) from error
    if not all(0 <= start < end for start, end in spans):
        raise InputError(f"{place} has a place that ends before it begins: give start < end")
    try:
        answer = ShortAnswer.parse(row["answer"])
    except InputError as error:
        raise InputError(f"{place}: {error}") from error
    document, kind, half = (row.get(key, "").strip() for key in ("document", "kind", "half"))
    return AnswerQuestion(row["question"].strip(), answer, document, spans, kind, half)


def check_answers(questions: Sequence[AnswerQuestion], documents: Sequence[Document]) -> Iterator[str]:
    """Yield a line for each question whose document is missing, or does not hold its answer."""
    texts: dict[str, list[str]] = {}  # of the documents that a name may mean
    for document in documents:
        for name in names_for(document.name):
            texts.setdefault(name, []).append(document.text)
    words = {name: list(map(normalized, of_name)) for name, of_name in texts.items()}
    for number, question in enumerate(questions, 1):
        name = PurePath(question.document).name
        if question.about and question.about not in texts:
            meant = did_you_mean(name, texts)
            yield f"question {number} is about {name}, which is not among the documents" + (
                f": {meant}" if meant else ""
            )
        elif question.answer:
            own = [question.about] if question.about else list(texts)
            if not any(question.answer.is_in_words(text) for each in own for text in words[each]):
                yield f"the answer of question {number} occurs nowhere in {name or 'the documents'}"
            elif question.about and all(question.fits(text) is False for text in texts[question.about]):
                yield f"the answer of question {number} is not at the place given in {name}"


@dataclass(frozen=True)
class AnswerRow:
    """The answer shown for a question, and its scores."""

    question: AnswerQuestion
    status: AnswerStatus  # as in `Answer`
    confidence: float
    # the sentences quoted, and the text that a language model wrote, without what was struck out
    quotes: tuple[str, ...]
    text: str
    found: bool  # whether the passages hold the answer
    right: bool  # whether what is shown as answered or unsure holds every part of the answer
    f1: float  # of the words of the reader's answer, of the text or of the first quote: the first there is
    until_quotes_s: float  # time to the reader's answer and the quotes, and to the end
    seconds: float
    reading: str = ""  # the words that the reader found
    exact: bool = False  # whether they are the answer, and no more

    @property
    def wrong_confident(self) -> bool:
        """Whether it is shown as answered, and wrong."""
        return self.status == "answered" and not self.right

    @property
    def holds(self) -> bool:
        """Whether quotes and text hold every part of the answer, also where it was refused."""
        return self.right or self.question.answer.is_in("\n".join([*self.quotes, self.text]))


def score_answer(question: AnswerQuestion, answer: Answer, seconds: float) -> AnswerRow:
    """Score the answer to a question."""
    quotes = tuple(quote.text for quote in answer.quotes)
    reading = answer.reading.text if answer.reading else ""
    is_refused = answer.judged.status == "refused"
    shown = "" if is_refused else "\n".join([reading, *quotes, answer.supported_text])
    own = reading or answer.supported_text or (quotes[0] if quotes else "")
    right = question.answer.is_in(shown)
    if not question.answer and not is_refused:
        first = answer.reading or next(iter(answer.quotes), None)
        right = first is not None and question.is_answered_by(first)
    return AnswerRow(
        question=question,
        status=answer.judged.status,
        confidence=answer.judged.confidence,
        quotes=quotes,
        text=answer.supported_text,
        found=question.is_found_in(answer.retrieved.hits),
        right=right,
        f1=0.0 if is_refused else question.answer.f1(own),
        until_quotes_s=answer.timed.until_quotes_s,
        seconds=seconds,
        reading=reading,
        exact=bool(question.answer) and question.answer.f1(reading) == 1,
    )


@dataclass(frozen=True)
class AnswerMetric:
    """A share of the questions."""

    value: Callable[[AnswerRow], float]  # its value for a row
    of: str  # the questions that count: "answerable", "unanswerable" or "all"
    label: str  # name and description for people
    help: str

    def counts(self, question: AnswerQuestion) -> bool:
        """Whether a question counts for this share."""
        return self.of == "all" or question.is_answerable == (self.of == "answerable")


ANSWER_METRICS = {
    "found": AnswerMetric(lambda row: row.found, "answerable", "found", "The passages hold the answer."),
    "right": AnswerMetric(
        lambda row: row.right,
        "answerable",
        "right",
        "What is shown, quotes included, holds every part of the answer; without a short answer, the words "
        "found are of the labelled passage.",
    ),
    "exact": AnswerMetric(
        lambda row: row.exact, "answerable", "exact match", "The words that the reader found are the answer."
    ),
    "f1": AnswerMetric(
        lambda row: row.f1, "answerable", "F1", "Words in common of the answer and the words that were found."
    ),
    "answered": AnswerMetric(
        lambda row: row.status == "answered", "answerable", "answered", "Shown as an answer."
    ),
    "refused_wrongly": AnswerMetric(
        lambda row: row.status == "refused",
        "answerable",
        "refused wrongly",
        "Refused although the documents hold the answer.",
    ),
    "refused_rightly": AnswerMetric(
        lambda row: row.status == "refused",
        "unanswerable",
        "refused rightly",
        "Refused, and the documents do not hold the answer.",
    ),
    "wrong_confident": AnswerMetric(
        lambda row: row.wrong_confident, "all", "wrong and confident", "Shown as an answer, and wrong."
    ),
}


def answer_metrics(rows: Sequence[AnswerRow]) -> dict[str, Interval]:
    """Return each of `ANSWER_METRICS` for which there are questions, with its interval."""
    found = {}
    for name, metric in ANSWER_METRICS.items():
        values = [float(metric.value(row)) for row in rows if metric.counts(row.question)]
        if values:
            found[name] = level_interval(np.array(values))
    return found


def measure_answers(
    questions: Sequence[AnswerQuestion],
    answer: Callable[[str], Answer],
    on_progress: Progress | None = None,
    at_once: bool = False,
) -> list[AnswerRow]:
    """Answer questions one after the other, or on all cores, and score each; ``on_progress`` counts them."""
    rows = dict[int, AnswerRow]()

    def measure(number: int) -> None:
        start = perf_counter()
        found = answer(questions[number].text)
        rows[number] = score_answer(questions[number], found, perf_counter() - start)

    numbers = range(len(questions))
    run: Any = run_parallel if at_once else map
    for n_done, _ in enumerate(run(measure, numbers), start=1):
        if on_progress is not None:
            on_progress(n_done, len(questions))
    return [rows[number] for number in numbers]


@dataclass(frozen=True)
class ReliabilityBin:
    """Answers of similar confidence: its mean, the share that is right, and their number."""

    confidence: float
    right: float
    n: int


def reliability(rows: Sequence[AnswerRow]) -> list[ReliabilityBin]:
    """Return how often answers are right by how sure they are, in `N_BINS` bins of equally many answers."""
    ordered = sorted(rows, key=lambda row: row.confidence)
    groups = (group for group in np.array_split(np.arange(len(ordered)), N_BINS) if len(group))
    return [
        ReliabilityBin(
            float(np.mean([ordered[number].confidence for number in group])),
            float(np.mean([ordered[number].holds for number in group])),
            len(group),
        )
        for group in groups
    ]


@dataclass(frozen=True)
class Coverage:
    """At a confidence from which answers are shown as answered: their share of all, and the share right."""

    confidence: float
    answered: float
    right: float


def coverage_curve(rows: Sequence[AnswerRow]) -> list[Coverage]:
    """Return the share answered against the share right of those, the highest confidence first."""
    ordered = sorted(rows, key=lambda row: -row.confidence)
    n_right = np.cumsum([row.holds for row in ordered])
    return [
        Coverage(row.confidence, n / len(ordered), float(n_right[n - 1]) / n)
        for n, row in enumerate(ordered, start=1)
        if n == len(ordered) or ordered[n].confidence < row.confidence  # equal ones pass together
    ]
