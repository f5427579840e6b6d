"""Where a passage is in the documents, and which chunks hold it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ...documents.document import Chunk, Document
from ...errors import InputError
from ...evaluation.passage_search import LEAST_ALIKE, SearchableText

NEAR_CHARACTERS = 200  # on either side of a passage that belong to it


@dataclass(frozen=True)
class Location:
    """Where a passage is: ``[start, end)`` of a document."""

    document: str
    start: int
    end: int
    # "alike": with other white space, quotation marks or dashes
    how: Literal["exact", "alike", "approximate"] = "exact"
    likeness: float = 1.0  # share of words in common, in order; 1 but for "approximate"

    def around(self, text: str) -> str:
        """Return the passage with the text of the document that belongs to it."""
        return text[max(0, self.start - NEAR_CHARACTERS) : self.end + NEAR_CHARACTERS]


@dataclass(frozen=True)
class ChunkOverlap:
    """A chunk with part of a passage: its row, the share of the passage in it, and the share read."""

    row: int
    share: float
    read: float


def locate(passage: str, documents: Sequence[Document]) -> Location | None:
    """Find a passage: exact in any document, else alike, else the most similar text.

    The first match in the order of the documents; None where none has `LEAST_ALIKE` of its words in common.
    """
    passage = passage.strip()
    if not passage:
        raise InputError("the passage is blank: give the text that should have been found")
    for document in documents:
        if (start := document.text.find(passage)) >= 0:
            return Location(document.name, start, start + len(passage))
    searched = [SearchableText(document.name, document.text) for document in documents]
    for each in searched:
        if span := each.alike(passage, 0):
            return Location(each.name, *span, "alike")
    near = [(each, *each.approximate(passage, 0)) for each in searched]
    found = [(ratio, each.name, span) for each, span, ratio in near if span and ratio >= LEAST_ALIKE]
    if not found:
        return None
    ratio, name, span = max(found, key=lambda one: one[0])
    return Location(name, *span, "approximate", ratio)


def chunk_overlaps(
    place: Location, chunks: Sequence[Chunk], read_ends: Sequence[int]
) -> tuple[ChunkOverlap, ...]:
    """Return the chunks with part of a passage, in order; ``read_ends`` as of `truncation.read_ends`."""
    found = []
    for row, (chunk, read_end) in enumerate(zip(chunks, read_ends, strict=True)):
        shared = shared_length(place, chunk.start, chunk.end)
        if chunk.document == place.document and shared:
            length, read = place.end - place.start, shared_length(place, chunk.start, read_end)
            found.append(ChunkOverlap(row, shared / length, read / length))
    return tuple(found)


def shared_length(place: Location, start: int, end: int) -> int:
    """Number of characters that a passage shares with a span of its document."""
    return max(0, min(place.end, end) - max(place.start, start))


def middle_half(place: Location) -> tuple[int, int]:
    """Return the middle half of a passage: a chunk with any of it counts as the passage found.

    With all of it, a chunk with its last word would count; with less, no chunk with a half.
    """
    quarter = (place.end - place.start) // 4
    return place.start + quarter, place.end - quarter


def matching_rows(place: Location, chunks: Sequence[Chunk]) -> list[int]:
    """Return the chunks that count as the passage found: those with any of its `middle_half`."""
    start, end = middle_half(place)
    return [
        row
        for row, chunk in enumerate(chunks)
        if chunk.document == place.document and chunk.start < end and start < chunk.end
    ]
