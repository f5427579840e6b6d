"""Labelled collections in the format of BEIR (Thakur et al. 2021): documents, questions and judgements.

A folder holds ``corpus.jsonl`` (``_id``, ``title``, ``text``), ``queries.jsonl`` (``_id``, ``text``) and
``qrels/*.tsv`` (``query-id``, ``corpus-id``, ``score``, under a header).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from engine.documents.document import Document
from engine.errors import InputError
from engine.evaluation.questions import jsonl_rows, utf8_text
from engine.layers.tracing import Array

QRELS_HEADER = ("query-id", "corpus-id", "score")


@dataclass(frozen=True)
class BeirSet:
    """Documents, the questions with judgements, and the judgements.

    Attributes
    ----------
    documents
        Named by their ids; the text of each is its title, a blank line and its text.
    query_ids, questions
        Ids and texts of the questions in ``qrels``, in the order of queries.jsonl.
    qrels
        Relevance by question id and document id; 0 and below is not relevant.
    """

    documents: tuple[Document, ...] = field(repr=False)
    query_ids: tuple[str, ...] = field(repr=False)
    questions: tuple[str, ...] = field(repr=False)
    qrels: dict[str, dict[str, int]] = field(repr=False)

    def relevance(self, names: Sequence[str]) -> Array:
        """Whether documents are relevant to each question: bool ``(n_questions, n_names)``.

        ``names`` are document names, which may repeat: those of chunks give the relevance of chunks.
        """
        places: dict[str, list[int]] = {}
        for place, name in enumerate(names):
            places.setdefault(name, []).append(place)
        relevant = np.zeros((len(self.query_ids), len(names)), bool)
        for row, query in zip(relevant, self.query_ids, strict=True):
            for name, score in self.qrels[query].items():
                if score > 0:
                    row[places.get(name, [])] = True
        return relevant


def load_beir(folder: Path, split: str | None = None) -> BeirSet:
    """Read a BEIR folder.

    ``split`` names the judgements, ``"dev"`` for qrels/dev.tsv; None takes test.tsv, or the only file.
    """
    corpus, queries = records(folder / "corpus.jsonl"), records(folder / "queries.jsonl")
    qrels = read_qrels(qrels_path(folder / "qrels", split), queries, corpus)
    judged = [number for number in queries if number in qrels]
    return BeirSet(
        tuple(to_document(number, row) for number, row in corpus.items()),
        tuple(judged),
        tuple(queries[number]["text"] for number in judged),
        qrels,
    )


def to_document(number: str, row: dict[str, Any]) -> Document:
    """Make a document from a row of the corpus; its title, if any, is the first paragraph."""
    title, text = (unix_lines(row.get(key) or "") for key in ("title", "text"))
    return Document(number, f"{title}\n\n{text}" if title else text, title)


def unix_lines(text: str) -> str:
    r"""Replace every line end by ``\n``."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def records(path: Path) -> dict[str, dict[str, Any]]:
    """Read the objects of a JSONL file by their ``_id``."""
    found: dict[str, dict[str, Any]] = {}
    for row, place in jsonl_rows(read_text(path), path.name):
        if not isinstance(row, dict) or not all(isinstance(row.get(key), str) for key in ("_id", "text")):
            raise InputError(
                f'{place} has not both "_id" and "text" as strings: give {{"_id": …, "text": …}}'
            )
        if not isinstance(row.get("title") or "", str):
            raise InputError(f"{place} has a title that is no string: give text, or none")
        number = row["_id"]
        if not number.strip() or number in found:
            raise InputError(
                f"{place} has the _id {number[:80]!r}, which is blank or was there before: change it"
            )
        found[number] = row
    if not found:
        raise InputError(f"{path} is empty: give one object a line")
    return found


def qrels_path(folder: Path, split: str | None) -> Path:
    """Return the path of a split's judgements."""
    splits = sorted(path.stem for path in folder.glob("*.tsv"))
    if not splits:
        raise InputError(f"{folder} holds no judgements: put a test.tsv there")
    if split is None and len(splits) == 1:
        [split] = splits
    wanted = split or "test"
    if wanted not in splits:
        raise InputError(f"{folder} has no {wanted}.tsv: choose one of the splits {', '.join(splits)}")
    return folder / f"{wanted}.tsv"


def read_qrels(
    path: Path, queries: dict[str, dict[str, Any]], corpus: dict[str, dict[str, Any]]
) -> dict[str, dict[str, int]]:
    """Read judgements, and check that their questions and documents exist."""
    header, *lines = read_text(path).split("\n")
    if tuple(header.split()) != QRELS_HEADER:
        raise InputError(f"{path.name}, line 1 is no header: begin with {', '.join(QRELS_HEADER)}, with tabs")
    qrels: dict[str, dict[str, int]] = {}
    for number, line in enumerate(lines, 2):
        if line.strip():
            place = f"{path.name}, line {number}"
            query, document, score = to_judgement(line, place)
            if query not in queries or document not in corpus:
                kind, unknown = ("question", query) if query not in queries else ("document", document)
                raise InputError(
                    f"{place} judges {kind} {unknown[:80]!r}, which is unknown: add it, or delete the line"
                )
            if qrels.setdefault(query, {}).setdefault(document, score) != score:
                raise InputError(f"{place} judges what was judged otherwise before: delete one of the lines")
    if not qrels:
        raise InputError(f"{path} holds no judgements: give one a line, under the header")
    return qrels


def to_judgement(line: str, place: str) -> tuple[str, str, int]:
    """Parse a line; errors name its place."""
    try:
        query, document, score = line.split("\t")
        return query, document, int(score)  # which leaves out a "\r"
    except ValueError as error:
        raise InputError(
            f"{place} is no judgement ({line[:80]!r}): give {', '.join(QRELS_HEADER)} with tabs between, the "
            f"score a whole number"
        ) from error


def read_text(path: Path) -> str:
    """Read a UTF-8 file of a BEIR folder."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror}): a BEIR folder has corpus.jsonl, queries.jsonl and "
            "qrels/test.tsv"
        ) from error
    return utf8_text(str(path), content)
