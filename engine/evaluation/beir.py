"""Labelled collections in the format of BEIR (Thakur et al. 2021), as documents or as one document.

A folder holds ``corpus.jsonl`` (``_id``, ``title``, ``text``), ``queries.jsonl`` (``_id``, ``text``) and
``qrels/*.tsv`` (``query-id``, ``corpus-id``, ``score``, under a header).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from ..documents.document import Document, Failure, Section
from ..documents.formats.archive import MAX_PATH, read_members
from ..documents.formats.outline import MAX_HEADING, one_line
from ..documents.loaders import MAX_BYTES
from ..errors import DocumentError, InputError
from ..installed import PROGRAM
from ..layers.tracing import Array
from ..limited_reader import read_limited
from .questions import Question, Reference, bounded_content, jsonl_rows, stem, utf8_text

MAX_TEXT = MAX_BYTES  # characters of a collection
COMMAND = f"measure it with {PROGRAM} evaluate FOLDER"
FILES = "corpus.jsonl, queries.jsonl and qrels/*.tsv"
QRELS_HEADER = ("query-id", "corpus-id", "score")


@dataclass(frozen=True)
class BeirSet:
    """Documents, the questions with judgements, and the judgements."""

    # named by their ids; the text of each is its title, a blank line and its text
    documents: tuple[Document, ...] = field(repr=False)
    # ids and texts of the questions in ``qrels``, in the order of queries.jsonl
    query_ids: tuple[str, ...] = field(repr=False)
    questions: tuple[str, ...] = field(repr=False)
    # relevance by question id and document id; 0 and below is not relevant
    qrels: dict[str, dict[str, int]] = field(repr=False)

    def relevance(self, names: Sequence[str]) -> Array:
        """Whether documents of these names answer each question: bool ``(n_questions, n_names)``."""
        places: dict[str, list[int]] = {}
        for place, name in enumerate(names):
            places.setdefault(name, []).append(place)
        relevant = np.zeros((len(self.query_ids), len(names)), bool)
        for row, query in zip(relevant, self.query_ids, strict=True):
            for name, score in self.qrels[query].items():
                if score > 0:
                    row[places.get(name, [])] = True
        return relevant


def load_beir(path: Path, split: str | None = None) -> BeirSet:
    """Read a BEIR folder or .zip, by the judgements of a split, of test.tsv or of the only file."""
    try:
        if path.suffix.lower() == ".zip":
            return read_limited(parse_beir, path.name, bounded_content(path), split)
        judged = sorted((path / "qrels").glob("*.tsv"))
        every = [path / "corpus.jsonl", path / "queries.jsonl", *judged]
        files = {each.relative_to(path).as_posix(): bounded_content(each) for each in every}
    except OSError as error:
        where = error.filename or path
        raise InputError(f"{where} cannot be read ({error.strerror}): a BEIR folder has {FILES}") from error
    return beir_of(files, str(path), split)


def parse_beir(name: str, content: bytes, split: str | None = None) -> BeirSet:
    """Read a BEIR folder packed as a .zip file: its files are at the root or in one folder."""
    members: dict[PurePosixPath, bytes] = {}
    for member in read_members(name, content):
        if isinstance(member, Failure):
            raise DocumentError(member.reason)
        members[PurePosixPath(member[0])] = member[1]
    roots = [path.parent for path in members if path.name == "corpus.jsonl"]
    if len(roots) != 1:
        raise InputError(f"{name} holds {len(roots)} files corpus.jsonl: pack one BEIR folder, with {FILES}")
    inside = {path: part for path, part in members.items() if path.is_relative_to(roots[0])}
    files = {path.relative_to(roots[0]).as_posix(): part for path, part in inside.items()}
    return beir_of(files, name, split)


def beir_of(files: Mapping[str, bytes], where: str, split: str | None) -> BeirSet:
    """Read the files of a collection by their paths in its folder; ``where`` names it in messages."""
    corpus, queries = (records(files, f"{kind}.jsonl", where) for kind in ("corpus", "queries"))
    splits = [path.stem for path in map(PurePosixPath, files) if path.match("qrels/*.tsv")]
    if not splits:
        raise InputError(f"{where}/qrels holds no judgements: put a test.tsv there")
    wanted = split or (splits[0] if len(splits) == 1 else "test")
    if wanted not in splits:
        raise InputError(f"{where}/qrels has no {wanted}.tsv: choose one of the splits {', '.join(splits)}")
    qrels = read_qrels(files, f"qrels/{wanted}.tsv", where, queries, corpus)
    judged = [number for number in queries if number in qrels]
    return BeirSet(
        tuple(to_document(number, row) for number, row in corpus.items()),
        tuple(judged),
        tuple(queries[number]["text"] for number in judged),
        qrels,
    )


def to_document(number: str, row: dict[str, Any]) -> Document:
    """Make a document from a row of the corpus; its title, if any, is the first paragraph."""
    title, text = (
        (row.get(key) or "").replace("\r\n", "\n").replace("\r", "\n") for key in ("title", "text")
    )
    return Document(number, f"{title}\n\n{text}" if title else text, one_line(title)[:MAX_HEADING])


def records(files: Mapping[str, bytes], name: str, where: str) -> dict[str, dict[str, Any]]:
    """Read the objects of a JSONL file by their ``_id``."""
    if name not in files:
        raise InputError(f"{where} has no {name}: a BEIR folder has {FILES}")
    found: dict[str, dict[str, Any]] = {}
    for row, place in jsonl_rows(utf8_text(f"{where}/{name}", files[name]), name):
        if not isinstance(row, dict) or not all(isinstance(row.get(key), str) for key in ("_id", "text")):
            raise InputError(
                f'{place} has not both "_id" and "text" as strings: give {{"_id": …, "text": …}}'
            )
        if not isinstance(row.get("title") or "", str):
            raise InputError(f"{place} has a title that is no string: give text, or none")
        number = row["_id"]
        if not number.strip() or number in found or len(number) > MAX_PATH:
            raise InputError(
                f"{place} has the _id {number!r:.80}, which is blank, was there before or is longer than "
                f"{MAX_PATH:,} characters: change it"
            )
        found[number] = row
    if not found:
        raise InputError(f"{where}/{name} is empty: give one object a line")
    return found


def read_qrels(
    files: Mapping[str, bytes],
    name: str,
    where: str,
    queries: Mapping[str, Mapping[str, Any]],
    corpus: Mapping[str, Mapping[str, Any]],
) -> dict[str, dict[str, int]]:
    """Read judgements, and check that their questions and documents exist."""
    header, *lines = utf8_text(f"{where}/{name}", files[name]).split("\n")
    name = PurePosixPath(name).name
    if tuple(header.split()) != QRELS_HEADER:
        raise InputError(f"{name}, line 1 is no header: begin with {', '.join(QRELS_HEADER)}, with tabs")
    qrels: dict[str, dict[str, int]] = {}
    for number, line in enumerate(lines, 2):
        if line.strip():
            place = f"{name}, line {number}"
            try:
                query, document, score_text = line.split("\t")
                score = int(score_text)  # which leaves out a "\r"
            except ValueError as error:
                raise InputError(
                    f"{place} is no judgement ({line!r:.80}): give {', '.join(QRELS_HEADER)} with tabs "
                    "between, the score a whole number"
                ) from error
            if query not in queries or document not in corpus:
                kind, unknown = ("question", query) if query not in queries else ("document", document)
                raise InputError(
                    f"{place} judges {kind} {unknown!r:.80}, which is unknown: add it, or delete the line"
                )
            if qrels.setdefault(query, {}).setdefault(document, score) != score:
                raise InputError(f"{place} judges what was judged otherwise before: delete one of the lines")
    if not qrels:
        raise InputError(f"{where}/{name} holds no judgements: give one a line, under the header")
    return qrels


@dataclass(frozen=True)
class Collection:
    """A collection as one document, and its questions, whose passages are spans of the document."""

    document: Document = field(repr=False)
    questions: tuple[Question, ...] = field(repr=False)


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
    document = Document(name, text.removesuffix("\n\n"), stem(name), tuple(sections))
    return Collection(document, tuple(questions))
