"""Question sets as files: labelled questions as JSONL, and a BEIR collection as one document."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from engine.documents.document import Document, Failure, Section
from engine.documents.formats.archive import read_members
from engine.documents.loaders import MAX_BYTES
from engine.errors import DocumentError, InputError
from engine.evaluation.beir import BeirSet, load_beir
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
    return as_collection(name, unzip_beir(name, content))


def unzip_beir(name: str, content: bytes) -> BeirSet:
    """Read a BEIR folder packed as a .zip file.

    It holds corpus.jsonl, queries.jsonl and qrels/test.tsv (or the only file in qrels), at the root or in
    one folder.
    """
    with TemporaryDirectory() as folder:
        unpack(name, content, Path(folder))
        try:
            return load_beir(Path(folder))
        except InputError as error:
            raise InputError(str(error).replace(folder, name)) from error


def unpack(name: str, content: bytes, folder: Path) -> None:
    """Write the files of a packed BEIR folder, and no others, into a folder."""
    members: dict[PurePosixPath, bytes] = {}
    for member in read_members(name, content):
        if isinstance(member, Failure):
            raise DocumentError(member.reason)
        members[PurePosixPath(member[0])] = member[1]
    roots = [path.parent for path in members if path.name == "corpus.jsonl"]
    if len(roots) != 1:
        raise InputError(f"{name} holds {len(roots)} files corpus.jsonl: pack one BEIR folder, with {FILES}")
    (folder / "qrels").mkdir()
    for path, part in members.items():
        if path in (roots[0] / "corpus.jsonl", roots[0] / "queries.jsonl"):
            (folder / path.name).write_bytes(part)
        elif path.parent == roots[0] / "qrels" and path.suffix == ".tsv":
            (folder / "qrels" / path.name).write_bytes(part)


def as_collection(name: str, found: BeirSet) -> Collection:
    """Make one document of a collection's, with a section for each; its judgements become spans of text.

    The stem of its ``name`` is the ``corpus_id`` of the questions. Chunks may cross sections, except with the
    splitter "markdown".
    """
    n_characters = sum(len(document.text) for document in found.documents)
    if n_characters > MAX_TEXT:
        raise InputError(f"{name} holds {n_characters:,} characters, more than the {MAX_TEXT:,}: {COMMAND}")
    starts, start = {}, 0
    for document in found.documents:
        starts[document.name] = start
        start += len(document.text) + 2
    text = "\n\n".join(document.text for document in found.documents)
    sections = tuple(Section(starts[document.name], (heading(document),)) for document in found.documents)
    references = {
        document.name: Reference(document.text, starts[document.name], starts[document.name] + n)
        for document in found.documents
        if (n := len(document.text))
    }
    return Collection(
        Document(name, text, stem(name), sections),
        tuple(judged_questions(stem(name), found, references)),
    )


def heading(document: Document) -> str:
    """Return a document's title and its unique id in one line."""
    return " ".join(f"{document.title} ({document.name})".split())


def judged_questions(stem: str, found: BeirSet, references: dict[str, Reference]) -> Iterator[Question]:
    """Yield the questions with the relevant documents as their references."""
    for query, text in zip(found.query_ids, found.questions, strict=True):
        relevant = [document for document, score in found.qrels[query].items() if score > 0]
        yield Question(
            text, stem, tuple(references[document] for document in relevant if document in references)
        )
