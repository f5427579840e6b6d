"""Questions with the places of their answers, by which a search is judged."""

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from engine.documents.document import Chunk
from engine.documents.loaders import BUNDLED_CORPUS
from engine.errors import InputError
from engine.layers.tracing import Array

BUNDLED_QUESTIONS = BUNDLED_CORPUS.parent / "questions.csv"


@dataclass(frozen=True)
class Reference:
    """A passage that answers a question: ``content`` stands at ``[start, end)`` of its document."""

    content: str
    start: int
    end: int


@dataclass(frozen=True)
class Question:
    """A question, the passages that answer it, and the stem of the document they are in."""

    text: str
    corpus_id: str
    references: tuple[Reference, ...]

    def is_answered_by(self, chunk: Chunk) -> bool:
        """Whether a chunk shares a character with one of the passages, however it was cut."""
        return PurePath(chunk.document).stem == self.corpus_id and any(
            chunk.start < reference.end and reference.start < chunk.end for reference in self.references
        )


def load_questions(path: Path = BUNDLED_QUESTIONS) -> list[Question]:
    """Read questions from CSV (columns ``question``, ``references``, ``corpus_id``) or JSONL of these keys.

    ``references`` are a list of ``{"content", "start_index", "end_index"}``, in a CSV file as JSON; an empty
    list says that nothing answers the question.

    Raises
    ------
    InputError
        There is no such file, it is no UTF-8, it holds no questions, or a row is not as above: the message
        names it.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): give a CSV or JSONL file") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is no UTF-8 (byte {error.start}): save it as UTF-8") from error
    read = jsonl_rows if path.suffix.lower() == ".jsonl" else csv_rows
    questions = [to_question(row, place) for row, place in read(text, path.name)]
    if not questions:
        raise InputError(f"{path} holds no questions: give one a row, under question, references, corpus_id")
    return questions


def jsonl_rows(text: str, name: str) -> Iterator[tuple[Any, str]]:
    """Yield the object of each line that is not blank, and its place."""
    # Only "\n" ends a line: the other ends of lines that str.splitlines knows may stand within a string.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            place = f"{name}, line {number}"
            try:
                yield json.loads(line), place
            except (ValueError, RecursionError) as error:
                raise InputError(f"{place} is no JSON ({error}): put one object on each line") from error


def csv_rows(text: str, name: str) -> Iterator[tuple[Any, str]]:
    """Yield each row with its references read, and its place, the header not counted."""
    rows = csv.DictReader(StringIO(text, newline=""), strict=True)
    place = f"{name}, header"
    try:
        for number, row in enumerate(rows, 1):
            place = f"{name}, row {number}"
            yield row | {"references": json.loads(row.get("references") or "null")}, place
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place} is no labelled question: its references are no JSON ({error})") from error
    except csv.Error as error:
        raise InputError(
            f"{name} is no CSV after {place} ({error}): put fields with commas in quotes, or give JSONL"
        ) from error


def to_question(row: Any, place: str) -> Question:
    """Make a question of a row's fields; errors name the place it is from."""
    try:
        references = tuple(to_reference(fields) for fields in row["references"])
        question, corpus_id = row["question"], row["corpus_id"]
        if not (is_text(question) and is_text(corpus_id)):
            raise ValueError("question and corpus_id are text, and not blank")
        return Question(question, corpus_id, references)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{place} is no labelled question ({error!r}): it needs question, corpus_id, and references as "
            'a JSON list of {"content", "start_index", "end_index"}'
        ) from error


def to_reference(fields: Any) -> Reference:
    """Make a reference of its fields."""
    content, start, end = fields["content"], fields["start_index"], fields["end_index"]
    if type(content) is not str or type(start) is not int or type(end) is not int or not 0 <= start < end:
        raise ValueError(f"no span of text: {repr(fields)[:80]}")
    return Reference(content, start, end)


def is_text(value: Any) -> bool:
    """Whether a field is a text that is not blank."""
    return isinstance(value, str) and bool(value.strip())


def relevance(questions: Sequence[Question], chunks: Sequence[Chunk]) -> Array:
    """Whether each chunk holds part of an answer to each question: bool ``(n_questions, n_chunks)``.

    It is what `Question.is_answered_by` says, of all of them at once.
    """
    stems = np.array([PurePath(chunk.document).stem for chunk in chunks], object)  # (n_chunks,)
    starts = np.array([chunk.start for chunk in chunks], np.int64)
    ends = np.array([chunk.end for chunk in chunks], np.int64)
    relevant = np.zeros((len(questions), len(chunks)), bool)
    for row, question in zip(relevant, questions, strict=True):
        for reference in question.references:
            row |= (starts < reference.end) & (reference.start < ends)
        row &= stems == question.corpus_id
    return relevant
