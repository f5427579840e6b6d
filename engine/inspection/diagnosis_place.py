"""Where a passage stands in documents, and which chunks hold it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from engine.documents.document import Chunk, Document
from engine.errors import InputError
from engine.evaluation.passage_search import LEAST_ALIKE, Searched


@dataclass(frozen=True)
class Location:
    """Where a passage stands: ``[start, end)`` of a document.

    ``how`` says whether it stands there as it is, with other white space, quotation marks or dashes, or
    approximately; ``likeness`` is the share of words in common, in order: 1 for the first two.
    """

    document: str
    start: int
    end: int
    how: Literal["exact", "alike", "approximate"] = "exact"
    likeness: float = 1.0


@dataclass(frozen=True)
class Holding:
    """A chunk with some of a passage: its row, and the shares of the passage that it holds and is read of."""

    row: int
    share: float
    read: float


def locate(passage: str, documents: Sequence[Document]) -> Location | None:
    """Find a passage: as it is in any document, else spelled alike, else what is most like it.

    Returns
    -------
    Location or None
        The first of the places, in the order of the documents; None where no place has `LEAST_ALIKE` of
        its words in common.

    Raises
    ------
    InputError
        The passage is blank.
    """
    passage = passage.strip()
    if not passage:
        raise InputError("the passage is blank: give the text that should have been found")
    for document in documents:
        if (start := document.text.find(passage)) >= 0:
            return Location(document.name, start, start + len(passage))
    searched = [Searched(document.name, document.text) for document in documents]
    for each in searched:
        if span := each.alike(passage, 0):
            return Location(each.name, *span, "alike")
    near = [(each, *each.approximate(passage, 0)) for each in searched]
    found = [(ratio, each.name, span) for each, span, ratio in near if span and ratio >= LEAST_ALIKE]
    if not found:
        return None
    ratio, name, span = max(found, key=lambda one: one[0])
    return Location(name, *span, "approximate", ratio)


def holdings(place: Location, chunks: Sequence[Chunk], read_ends: Sequence[int]) -> tuple[Holding, ...]:
    """Return the chunks with some of a passage, in their order.

    ``read_ends`` are the characters of the document where reading of each chunk stops, as of
    `engine.documents.budget.read_ends`.
    """
    found = []
    for row, (chunk, read_end) in enumerate(zip(chunks, read_ends, strict=True)):
        held = common(place, chunk.start, chunk.end)
        if chunk.document == place.document and held:
            length = place.end - place.start
            found.append(Holding(row, held / length, common(place, chunk.start, read_end) / length))
    return tuple(found)


def common(place: Location, start: int, end: int) -> int:
    """Characters that a passage shares with a stretch of its document."""
    return max(0, min(place.end, end) - max(place.start, start))


def core(place: Location) -> tuple[int, int]:
    """Return the middle half of a passage: a chunk with any of it counts as the passage found.

    Less would let a chunk count that has the passage's last word, more none of two that have a half each.
    """
    quarter = (place.end - place.start) // 4
    return place.start + quarter, place.end - quarter


def own_rows(place: Location, chunks: Sequence[Chunk]) -> list[int]:
    """Return the chunks that count as the passage found: those with any of its `core`."""
    start, end = core(place)
    return [
        row
        for row, chunk in enumerate(chunks)
        if chunk.document == place.document and chunk.start < end and start < chunk.end
    ]
