"""Results of reading files."""

from dataclasses import dataclass

from engine.documents.document import Document


@dataclass(frozen=True)
class Failure:
    """A file or part that could not be read; the reason is one line that names it and a solution."""

    name: str
    reason: str


@dataclass(frozen=True)
class Loaded:
    """Documents in order, failures, and the names of skipped files of other formats."""

    documents: tuple[Document, ...] = ()
    failures: tuple[Failure, ...] = ()
    skipped: tuple[str, ...] = ()
