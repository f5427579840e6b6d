"""What ails the texts of chunks, whatever their vectors: the same text again, repeated lines, no letters."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.documents.document import Chunk
from engine.layers.tracing import Array

# A line is boilerplate where this many documents have it, and this share of all documents.
LINE_DOCUMENTS, LINE_SHARE = 3, 0.2
LINE_LETTERS = 5  # shorter lines, such as rules and brackets, are no text
MOSTLY = 0.5  # of a chunk's letters
SHOWN_CHARACTERS = 80


@dataclass(frozen=True)
class RepeatedLine:
    """A line that many documents have.

    Attributes
    ----------
    text
        The line, its beginning where it is long.
    rows
        The chunks it is in.
    mostly
        Those of them that consist mostly of such lines.
    n_documents, of_documents
        How many documents have it, and how many there are.
    """

    text: str
    rows: tuple[int, ...]
    mostly: tuple[int, ...]
    n_documents: int
    of_documents: int


def folded(text: str) -> str:
    """Return a text with every run of blanks made one space, none at the ends."""
    return " ".join(text.split())


def exact_leaders(chunks: Sequence[Chunk]) -> Array:
    """Return the row of the first chunk with the same text, blanks aside, for each chunk: ``(n,)``."""
    first: dict[str, int] = {}
    return np.array([first.setdefault(folded(chunk.text), row) for row, chunk in enumerate(chunks)], np.int64)


def letters(text: str) -> tuple[int, int]:
    """Return how many letters and digits a text has, and how many characters that are no blanks."""
    return sum(map(str.isalnum, text)), sum(not character.isspace() for character in text)


def boilerplate(chunks: Sequence[Chunk]) -> list[RepeatedLine]:
    """Return the lines that many documents have, those of most documents first.

    Lines are compared without case and with blanks folded. A line that a chunk's border cuts counts as
    far as it goes.
    """
    lines = [
        {
            folded(line).lower(): folded(line)
            for line in chunk.text.splitlines()
            if letters(line)[0] >= LINE_LETTERS
        }
        for chunk in chunks
    ]
    documents, rows = defaultdict(set), defaultdict(list)
    spelled: dict[str, str] = {}
    for row, (chunk, of_chunk) in enumerate(zip(chunks, lines, strict=True)):
        for line, text in of_chunk.items():
            documents[line].add(chunk.document)
            rows[line].append(row)
            spelled.setdefault(line, text)
    n_documents = len({chunk.document for chunk in chunks})
    least = max(LINE_DOCUMENTS, LINE_SHARE * n_documents)
    repeated = [line for line in documents if len(documents[line]) >= least]
    mostly = {row for row, chunk in enumerate(chunks) if repeated_share(chunk.text, set(repeated)) > MOSTLY}
    return [
        RepeatedLine(
            shortened(spelled[line]),
            tuple(rows[line]),
            tuple(row for row in rows[line] if row in mostly),
            len(documents[line]),
            n_documents,
        )
        for line in sorted(repeated, key=lambda line: (-len(documents[line]), rows[line][0]))
    ]


def repeated_share(text: str, repeated: set[str]) -> float:
    """Return the share of a text's letters that are in lines of a set, which are folded and lower case."""
    counts = [(letters(line)[0], folded(line).lower() in repeated) for line in text.splitlines()]
    return sum(n for n, again in counts if again) / max(sum(n for n, _ in counts), 1)


def shortened(text: str) -> str:
    """Return the beginning of a text, with an ellipsis where it goes on."""
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1].rstrip() + "…"
