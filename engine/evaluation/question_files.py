"""Question sets as files: labelled questions as JSONL, and a BEIR collection as one document."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.documents.document import Document, Section
from engine.documents.loaders import MAX_BYTES
from engine.errors import InputError
from engine.evaluation.beir import BeirSet, parse_beir
from engine.evaluation.questions import Question, Reference, stem

MAX_TEXT = MAX_BYTES  # characters of a collection
COMMAND = "measure it with python -m engine evaluate FOLDER"
FILES = "corpus.jsonl, queries.jsonl and qrels/*.tsv"


@dataclass(frozen=True)
class Collection:
    """A collection as one document, and its questions, whose passages are spans of the document."""

    document: Document = field(repr=False)
    questions: tuple[Question, ...] = field(repr=False)


def question_fields(question: Question) -> dict[str, Any]:
    """Return the fields of a question in a file: ``question``, ``references`` and ``corpus_id``."""
    return {
        "question": question.text,
        "references": [
            {"content": one.content, "start_index": one.start, "end_index": one.end}
            for one in question.references
        ],
        "corpus_id": question.corpus_id,
    }


def to_jsonl(questions: Sequence[Question]) -> str:
    """Return questions as JSONL, which `parse_questions` reads."""
    return "".join(json.dumps(question_fields(question), ensure_ascii=False) + "\n" for question in questions)


def parse_beir_zip(name: str, content: bytes) -> Collection:
    """Read a BEIR folder packed as a .zip file, as one document, which has the file's name."""
    return as_collection(name, parse_beir(name, content))


def as_collection(name: str, found: BeirSet) -> Collection:
    """Make one document of a collection's, with a section for each; its judgements become spans of text.

    The stem of its ``name`` is the ``corpus_id`` of the questions. Chunks may cross sections, except with the
    splitter "markdown".
    """
    n_characters = sum(len(document.text) for document in found.documents)
    if n_characters > MAX_TEXT:
        raise InputError(f"{name} holds {n_characters:,} characters, more than the {MAX_TEXT:,}: {COMMAND}")
    text, sections, references = "", [], {}
    for document in found.documents:
        # The title and the unique id are the heading, in one line.
        heading = " ".join(f"{document.title} ({document.name})".split())
        sections.append(Section(len(text), (heading,)))
        if document.text:
            end = len(text) + len(document.text)
            references[document.name] = Reference(document.text, len(text), end)
        text += document.text + "\n\n"
    questions = []
    for query, asked in zip(found.query_ids, found.questions, strict=True):
        relevant = [name for name, score in found.qrels[query].items() if score > 0]
        places = tuple(references[name] for name in relevant if name in references)
        questions.append(Question(asked, stem(name), places))
    return Collection(
        Document(name, text.removesuffix("\n\n"), stem(name), tuple(sections)), tuple(questions)
    )
