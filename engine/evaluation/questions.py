"""Labelled questions: each with the passages that answer it, as spans of a document."""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from io import StringIO
from itertools import zip_longest
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from ..documents.document import Chunk, Document
from ..documents.formats.table import SEPARATOR_LINE
from ..documents.loaders import LARGE_BYTES, suffixes
from ..errors import InputError
from ..installed import bundled
from ..layers.tracing import Array
from ..limited_reader import read_limited

BUNDLED_QUESTIONS = bundled("questions.csv")
MOST_BYTES = 200_000_000  # of a file
DELIMITERS = ",;\t|"
DRAFTED, KEPT = "drafted", "kept"
LAST_PLACE = 2**31  # in a document; all files are far smaller
UNLOCATED = -1  # start and end of a passage whose file does not say where it stands
FORMS = (
    "question and passage, the words of a document that answer it (and document, its name, where several "
    'hold them); or question, corpus_id, and references as a JSON list of {"content", "start_index", '
    '"end_index"}'
)
HALF_PAIR = re.compile("[\ud800-\udfff]")  # of a surrogate pair: possible in JSON, not in UTF-8


@lru_cache(maxsize=4096)
def stem(name: str) -> str:
    """Return the name by which questions refer to a document: ``"notes/a.md" -> "a"``; of a row ``"a#2"``.

    Only endings of files that are read are left out: ``"LGPL-2.1"`` is a name without one.
    """
    path = PurePath(name)
    ending, mark, number = path.suffix.partition("#")  # "a.csv#2" is a row of a file
    if ending.lower() not in suffixes():
        return path.name
    return path.stem + mark + number if number.isdecimal() else path.stem


@lru_cache(maxsize=4096)
def names_for(document: str) -> tuple[str, ...]:
    """Return the names that may mean a document: its stem, and for a row that of its file."""
    return tuple(dict.fromkeys((stem(document), PurePath(document).stem)))


@dataclass(frozen=True)
class Reference:
    """A passage that answers a question: ``content`` is the span ``[start, end)`` of its document."""

    content: str
    start: int  # both `UNLOCATED` until `passage_search.located` finds the passage
    end: int


@dataclass(frozen=True)
class Question:
    """A question, the document that it is about, and the passages that answer it."""

    text: str
    corpus_id: str  # stem of the document; empty where a file names none and the passages are not located yet
    references: tuple[Reference, ...]
    answer: Reference | None = None  # the words of a passage that answer in short, if known
    # empty for a label of a person, `DRAFTED` for a question that a model wrote and nobody has read, `KEPT`
    # once a person has kept it
    status: str = ""
    seed: int | None = None  # of the draw of a draft

    @property
    def about(self) -> str:
        """The stem of the document's name."""
        return self.corpus_id

    @property
    def is_unanswered(self) -> bool:
        """Whether it is a draft that asks what the documents do not say."""
        return bool(self.status) and not self.references

    def renamed(self, document: str) -> "Question":
        """Return the question about the document of another name."""
        return replace(self, corpus_id=stem(document))

    def within(self, document: Document, row: tuple[int, int]) -> "Question":
        """Return the question about a document, with passages and places within its row."""
        references = []
        for one in self.references:
            start = document.text.find(one.content, *row) if one.start == UNLOCATED else row[0] + one.start
            moved = Reference(one.content, start, start + len(one.content))
            references.append(one if start == UNLOCATED else moved)
        own = self.answer
        answer = own and replace(own, start=row[0] + own.start, end=row[0] + own.end)
        return replace(self, corpus_id=stem(document.name), references=tuple(references), answer=answer)

    def fits(self, text: str) -> bool | None:
        """Whether the text of a document has all passages at their places; None for no passages."""
        found = [
            one.content in text if one.start == UNLOCATED else text[one.start : one.end] == one.content
            for one in self.references
        ]
        return all(found) if found else None


def load_questions(path: Path | None = None) -> list[Question]:
    """Read questions from a file, as `parse_questions` does, the bundled one for None."""
    path = path or BUNDLED_QUESTIONS
    content = file_content(path, "CSV or JSONL")
    if len(content) > LARGE_BYTES:
        return read_limited(parse_questions, path.name, content)
    return parse_questions(path.name, content)


def file_content(path: Path, kinds: str) -> bytes:
    """Return a file's content; the `InputError` for one that cannot be read names the kinds to give."""
    try:
        return bounded_content(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): give a {kinds} file") from error


def bounded_content(path: Path) -> bytes:
    """Return a file's content; raise `InputError` for a pipe, and where it has no end, or too many bytes."""
    if path.is_fifo():
        raise InputError(f"{path} is a pipe: give a file")
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise InputError(f"{path} has over {MOST_BYTES // 10**6} MB, the most that is read: split it")
    return content


def utf8_text(name: str, content: bytes) -> str:
    """Decode a file, with or without a byte order mark; raise `InputError` where it is not UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is no UTF-8 (byte {error.start}): save it as UTF-8") from error


def parse_questions(name: str, content: bytes) -> list[Question]:
    """Read questions from CSV or JSONL: a passage that answers each, or its places.

    In columns (or keys) ``question`` and ``passage``, and where it is said ``document``, the passage has no
    place yet. ``question``, ``corpus_id`` and ``references`` say the places: a list of ``{"content",
    "start_index", "end_index"}``, as JSON in a CSV file, empty for a question without an answer. Files whose
    names end in ``.jsonl`` are read as JSONL.
    """
    text = utf8_text(name, content)
    read = jsonl_rows if PurePath(name).suffix.lower() == ".jsonl" else csv_rows
    questions = [to_question(row, place) for row, place in read(text, name)]
    if not questions:
        raise InputError(f"{name} holds no questions: give one a row, with {FORMS}")
    return questions


def jsonl_rows(text: str, name: str) -> Iterator[tuple[Any, str]]:
    """Yield the object of each line that is not blank, and the line's place for messages."""
    # Only "\n" ends a line: the other line ends of str.splitlines may occur within a JSON string.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            place = f"{name}, line {number}"
            try:
                yield json.loads(line), place
            except (ValueError, RecursionError) as error:
                raise InputError(f"{place} is no JSON ({error}): put one object on each line") from error


def csv_rows(text: str, name: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each row of a table by the names in its header, and its place, not counting the header."""
    place = f"{name}, header"
    if hint := SEPARATOR_LINE.match(text):
        text = text[hint.end() :]
    try:
        headers = [names_in_header(text, mark) for mark in DELIMITERS]
        best = next((place for place, names in enumerate(headers) if "question" in names), 0)
        rows = csv.reader(StringIO(text, newline=""), delimiter=DELIMITERS[best], strict=True)
        next(rows, None)
        for number, row in enumerate(filter(None, rows), 1):
            place = f"{name}, row {number}"
            yield dict(zip_longest(headers[best], row[: len(headers[best])])), place
    except csv.Error as error:
        raise InputError(
            f"{name} is no CSV after {place} ({error}): put fields with commas in quotes"
        ) from error


def names_in_header(text: str, delimiter: str) -> list[str]:
    """Return the names of a table's columns, in lower case, as its first row has them with a delimiter."""
    rows = csv.reader(StringIO(text, newline=""), delimiter=delimiter)
    return [cell.strip().lower() for cell in next(rows, [])]


def to_question(row: Any, place: str) -> Question:
    """Make a question from a row's fields, in a CSV file with JSON for references; errors name its place."""
    try:
        if not isinstance(row, dict):
            raise ValueError("it is no object")
        if "passage" in row and "references" not in row:
            return with_passage(row)
        text, corpus_id, references = row["question"], row["corpus_id"], row["references"]
        if isinstance(references, str):
            references = json.loads(references or "null")
        if not isinstance(references, list):
            raise ValueError("its references are no list")
        passages = tuple(map(to_reference, references))
        is_named = is_text(corpus_id) or (corpus_id == "" and all(one.start == UNLOCATED for one in passages))
        if not (is_text(text) and is_named):
            raise ValueError("question and corpus_id are text, not blank, without half a surrogate pair")
        # What a row says of a draft; what is unfit is none.
        status, seed = row.get("status"), row.get("seed")
        found: dict[str, Any] = {"status": status if status in (DRAFTED, KEPT) else ""}
        found["seed"] = seed if type(seed) is int else None
        found["answer"] = to_reference(row["answer"]) if isinstance(row.get("answer"), dict) else None
        return Question(text, corpus_id, passages, **found)
    except json.JSONDecodeError as error:
        why = f"its references are no JSON, {error}"
    except KeyError as error:
        why = f"{error} is missing"
    except (ValueError, RecursionError) as error:
        why = str(error)
    raise InputError(f"{place} is no labelled question ({why}): it needs {FORMS}")


def with_passage(row: dict[str, Any]) -> Question:
    """Make a question of a row with a passage, which is not located yet; a blank one answers nothing."""
    text, passage, document = row["question"], row["passage"] or "", row.get("document") or ""
    if not is_text(text) or not all(
        isinstance(one, str) and not HALF_PAIR.search(one) for one in (passage, document)
    ):
        raise ValueError("question and passage are text, document is a name, without half a surrogate pair")
    unlocated = [Reference(passage.strip(), UNLOCATED, UNLOCATED)] if passage.strip() else []
    return Question(text, stem(document.strip()) if document.strip() else "", tuple(unlocated))


def to_reference(fields: Any) -> Reference:
    """Make a reference from its fields."""
    if isinstance(fields, dict):
        content, start, end = fields["content"], fields["start_index"], fields["end_index"]
        if type(content) is str and type(start) is type(end) is int and not HALF_PAIR.search(content):
            is_unlocated = (start, end) == (UNLOCATED, UNLOCATED) and content.strip()
            if is_unlocated or 0 <= start < end <= LAST_PLACE:
                return Reference(content, start, end)
    raise ValueError(f"no span of text: {repr(fields)[:80]}")


def is_text(value: Any) -> bool:
    """Whether a field is a text that is not blank and can be encoded as UTF-8."""
    return isinstance(value, str) and bool(value.strip()) and not HALF_PAIR.search(value)


def question_fields(question: Question) -> dict[str, Any]:
    """Return the fields of a question in a file; those of a draft only where it has them."""
    fields = {
        "question": question.text,
        "references": [reference_fields(one) for one in question.references],
        "corpus_id": question.corpus_id,
        "answer": question.answer and reference_fields(question.answer),
        "status": question.status or None,
        "seed": question.seed,
    }
    return {name: value for name, value in fields.items() if value is not None}


def reference_fields(reference: Reference) -> dict[str, Any]:
    """Return the fields of a passage in a file."""
    return {"content": reference.content, "start_index": reference.start, "end_index": reference.end}


def to_jsonl(questions: Sequence[Question]) -> str:
    """Return questions as JSONL, which `parse_questions` reads."""
    return "".join(json.dumps(question_fields(question), ensure_ascii=False) + "\n" for question in questions)


def questions_about(questions: Sequence[Question], documents: Iterable[str]) -> list[Question]:
    """Return the questions about documents with these names, in order."""
    stems = set(map(stem, documents))
    return [question for question in questions if question.corpus_id in stems]


def chunk_places(chunks: Sequence[Chunk]) -> tuple[Array, Array, Array]:
    """Return the stems of the documents of chunks, their starts and their ends, each ``(n_chunks,)``."""
    stems = np.array([stem(chunk.document) for chunk in chunks], object)
    spans = np.array([(chunk.start, chunk.end) for chunk in chunks], np.int64).reshape(-1, 2)
    return stems, spans[:, 0], spans[:, 1]


def relevance(questions: Sequence[Question], chunks: Sequence[Chunk]) -> Array:
    """Whether each chunk holds part of an answer to each question: bool ``(n_questions, n_chunks)``.

    That is, whether it shares a character with one of the passages. Questions do not tell apart documents of
    one stem, ``a.md`` and ``b/a.html``; `check_questions` reports them.
    """
    stems, starts, ends = chunk_places(chunks)
    relevant = np.zeros((len(questions), len(chunks)), bool)
    for row, question in zip(relevant, questions, strict=True):
        for reference in question.references:
            row |= (starts < reference.end) & (reference.start < ends)
        row &= stems == question.corpus_id
    return relevant
