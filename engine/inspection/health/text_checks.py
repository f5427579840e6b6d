"""Problems of the texts of chunks: repeated texts, repeated lines, few letters."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...documents.document import Chunk
from ...documents.formats.outline import one_line
from ...layers.tracing import Array
from ...wording import shortened

# A line is boilerplate where at least this number and this share of all documents have it.
LINE_DOCUMENTS, LINE_SHARE = 3, 0.2
LINE_LETTERS = 5  # shorter lines, such as rules and brackets, do not count as text
MOSTLY = 0.5  # of a chunk's letters
SHOWN_CHARACTERS = 80


@dataclass(frozen=True)
class RepeatedLine:
    """A line that many documents have."""

    text: str  # the line, shortened where it is long
    rows: tuple[int, ...]  # the chunks that have it
    mostly: tuple[int, ...]  # those that consist mostly of such lines
    # number of documents that have it, and of all documents
    n_documents: int
    of_documents: int


def first_copies(chunks: Sequence[Chunk]) -> Array:
    """Return for each chunk the row of the first with the same text up to white space: ``(n,)``."""
    first: dict[str, int] = {}
    return np.array(
        [first.setdefault(one_line(chunk.text), row) for row, chunk in enumerate(chunks)], np.int64
    )


def count_letters(text: str) -> tuple[int, int]:
    """Return the number of letters and digits of a text, and of all characters but white space."""
    return sum(map(str.isalnum, text)), sum(not character.isspace() for character in text)


def repeated_lines(chunks: Sequence[Chunk]) -> list[RepeatedLine]:
    """Return the lines that many documents have, whatever case and spaces; those of most documents first."""
    lines = [
        {
            one_line(line).lower(): one_line(line)
            for line in chunk.text.splitlines()
            if count_letters(line)[0] >= LINE_LETTERS
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
            shortened(spelled[line], SHOWN_CHARACTERS),
            tuple(rows[line]),
            tuple(row for row in rows[line] if row in mostly),
            len(documents[line]),
            n_documents,
        )
        for line in sorted(repeated, key=lambda line: (-len(documents[line]), rows[line][0]))
    ]


def repeated_share(text: str, repeated: set[str]) -> float:
    """Return the share of a text's letters in repeated lines, given as `one_line` in lower case."""
    counts = [(count_letters(line)[0], one_line(line).lower() in repeated) for line in text.splitlines()]
    return sum(n for n, again in counts if again) / max(sum(n for n, _ in counts), 1)
