"""What came of reading files."""

from dataclasses import dataclass

from engine.documents.document import Document


@dataclass(frozen=True)
class Failure:
    """Something that could not be read, and why; the reason is a line that names it and the way out."""

    name: str
    reason: str


@dataclass(frozen=True)
class Loaded:
    """Documents in their order, what failed beside them, and the names of files that are of no kind read."""

    documents: tuple[Document, ...] = ()
    failures: tuple[Failure, ...] = ()
    skipped: tuple[str, ...] = ()
