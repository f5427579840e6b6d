"""A document and its pieces."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Document:
    """A text with a name."""

    name: str
    text: str


@dataclass(frozen=True)
class Chunk:
    """A span of a document: ``document.text[start:end] == text``.

    ``n_tokens`` is what the model would read of it, special tokens included.
    """

    document: str
    start: int
    end: int
    text: str
    n_tokens: int
