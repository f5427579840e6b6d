"""Why a question does not find a passage: what it would be ranked with each possible cause taken away."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from engine.documents.budget import painted, read_ends, runs
from engine.documents.document import Document
from engine.errors import InputError
from engine.inspection.counterfactual import Place, counterfactuals, tail_vectors
from engine.inspection.diagnosis_place import Holding, Location, holdings, own_rows
from engine.inspection.health import NEAR
from engine.inspection.health_neighbors import neighborhood
from engine.inspection.stop_words import without_stop_words
from engine.layers.tracing import Array
from engine.models.encoder import Encoder
from engine.retrieval.bm25 import Bm25, words
from engine.retrieval.index import Index
from engine.retrieval.vector_kind import embed_query

COMPARED = 1000  # chunks above a passage among which near duplicates are looked for

Kind = Literal[
    "not in the corpus",
    "truncated",
    "split",
    "near duplicates",
    "pooled away",
    "word mismatch",
    "other words",
    "outranked",
]


@dataclass(frozen=True)
class Cause:
    """A reason why a passage is not found, in words, and its rank without that, where it can be computed."""

    kind: Kind
    sentence: str
    rank: int | None = None


@dataclass(frozen=True)
class Diagnosis:
    """Where a question ranks a passage, and where it would with one thing at a time another way.

    Ranks count from 1, and what is of a passage is of the best of its chunks (`own_rows`).

    Attributes
    ----------
    k
        How many chunks count as found.
    length
        Characters of the passage.
    held
        The chunks with some of the passage.
    row, now
        The passage's chunk that ranks best, and its place.
    scores
        Cosine of every chunk with the question, ``(n_chunks,)``.
    above
        Rows of the chunks that rank higher, best first.
    repeats
        Groups of those that nearly repeat one another, or the passage's chunk; each with two rows or more.
    unread
        Stretches of the passage that chunks hold and none is read as far as, ``(start, end)``.
    without_repeats
        Rank, had each group of near duplicates one place, and the passage's own the passage's place.
    tail_read
        Had the cut chunks of the passage been read to their ends; None where none was cut within it.
    centred
        Had a chunk as long as the one that holds most of it been cut with all of it in the middle.
    alone
        Had the passage been a chunk of its own.
    part
        Its length as a share of what is read of its chunk.
    bm25
        By BM25; a score of 0 where they share no word.
    shared_words
        Words of the question that the passage has too, function words aside.
    """

    k: int
    length: int
    held: tuple[Holding, ...]
    row: int
    now: Place
    scores: Array = field(repr=False)
    above: tuple[int, ...]
    repeats: tuple[tuple[int, ...], ...]
    unread: tuple[tuple[int, int], ...]
    without_repeats: int
    tail_read: Place | None
    centred: Place
    alone: Place
    part: float
    bm25: Place
    shared_words: tuple[str, ...]

    @property
    def found(self) -> bool:
        """Whether the passage is among the first ``k``."""
        return self.now.rank <= self.k

    @property
    def n_unread(self) -> int:
        """Characters of the passage that are never read."""
        return sum(end - start for start, end in self.unread)

    @property
    def share(self) -> float:
        """Share of the passage in the chunk that holds most of it."""
        return max(each.share for each in self.held)


def diagnose(
    question: str, place: Location, document: Document, index: Index, encoder: Encoder, k: int
) -> Diagnosis:
    """Rank a passage as it is, and with one thing at a time another way.

    Parameters
    ----------
    question
        What is asked.
    place, document
        Where the passage stands, and the document that it stands in.
    index, encoder
        What is searched, and the model of its vectors.
    k
        How many chunks count as found.

    Raises
    ------
    InputError
        ``k`` is below 1, the question is blank, or no chunk of the index holds any of the passage.
    """
    if k < 1:
        raise InputError(f"k is {k}: look at 1 chunk or more")
    encoder, kind = index.encoder(encoder), index.kind
    query = embed_query(question, encoder, kind.pooling, kind.max_tokens)
    index.check(query)
    ends = read_ends(index.chunks, encoder.tokenizer, kind.max_tokens)
    held, own = holdings(place, index.chunks, ends), own_rows(place, index.chunks)
    if not own:
        raise InputError(f"no chunk of {place.document} holds this passage: choose that document to search")
    scores = index.vectors @ query.vector  # (n_chunks,)
    row = max(own, key=lambda each: scores[each])
    above = [int(each) for each in np.argsort(-scores, kind="stable") if scores[each] > scores[row]]
    groups, without_repeats = repeated(index.vectors, row, above)

    others = np.delete(scores, own)  # (n_others,)
    fullest = index.chunks[max(held, key=lambda each: each.share).row]
    passage = document.text[place.start : place.end]
    middle = document.text[slice(*around(place, fullest.end - fullest.start, document.text))]
    vectors = encoder.encode([passage, middle], kind.pooling, max_tokens=kind.max_tokens)  # (2, d_model)
    alone, centred = (standing(others, float(vector @ query.vector)) for vector in vectors)
    cut = [each.row for each in held if each.row in own and each.read < each.share]
    return Diagnosis(
        k=k,
        length=len(passage),
        held=held,
        row=row,
        now=standing(others, float(scores[row])),
        scores=scores,
        above=tuple(above),
        repeats=groups,
        unread=unread(place, index, held, ends),
        without_repeats=without_repeats,
        tail_read=read_further(index, encoder, query.vector, cut) if cut else None,
        centred=centred,
        alone=alone,
        part=len(passage) / (ends[row] - index.chunks[row].start),
        bm25=bm25_place(question, index, own),
        shared_words=shared_words(question, passage),
    )


def standing(others: Array, score: float) -> Place:
    """Return the place of a score among those of other chunks, ``(n_others,)``."""
    return Place(1 + int((others > score).sum()), score)


def around(place: Location, size: int, text: str) -> tuple[int, int]:
    """Return ``size`` characters, or a little less, with a passage in the middle, from word to word."""
    room = max(0, size - (place.end - place.start))
    start = max(0, place.start - room // 2)
    end = min(len(text), place.end + room // 2)
    while start and start < place.start and not text[start - 1].isspace():
        start += 1
    while end < len(text) and end > place.end and not text[end].isspace():
        end -= 1
    return start, end


def repeated(vectors: Array, row: int, above: Sequence[int]) -> tuple[tuple[tuple[int, ...], ...], int]:
    """Group the chunks above a row that nearly repeat each other, or it; say its rank with one of each.

    Those that nearly repeat the row itself are as good as it, and so count for nothing. Only the first
    `COMPARED` are compared, as all pairs are.
    """
    rows = np.array([row, *above[:COMPARED]])
    leaders = neighborhood(vectors[rows], NEAR, 1).leader  # (n_rows,), places among the rows
    groups = [tuple(rows[leaders == leader].tolist()) for leader in np.unique(leaders)]
    rank = len(groups) + len(above[COMPARED:])
    return tuple(group for group in groups if len(group) > 1), rank


def unread(
    place: Location, index: Index, held: Sequence[Holding], ends: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    """Return the stretches of a passage that some chunk holds and none is read as far as."""
    whole = painted([(index.chunks[each.row].start, index.chunks[each.row].end) for each in held], place.end)
    read = painted([(index.chunks[each.row].start, ends[each.row]) for each in held], place.end)
    lost = runs((whole & ~read)[place.start :])
    return tuple((place.start + start, place.start + end) for start, end in lost)


def read_further(index: Index, encoder: Encoder, question: Array, rows: Sequence[int]) -> Place:
    """Return the best place that one of some cut chunks would have with its tail read."""
    found = counterfactuals(question, tail_vectors(index, encoder, rows))
    return min((way for one in found for way in (one.whole, one.windows)), key=lambda way: way.rank)


def bm25_place(question: str, index: Index, own: Sequence[int]) -> Place:
    """Return the place that BM25 gives the best of a passage's chunks."""
    scores = Bm25([chunk.text for chunk in index.chunks]).scores([question])[0]  # (n_chunks,)
    return standing(np.delete(scores, own), float(scores[list(own)].max()))


def shared_words(question: str, passage: str) -> tuple[str, ...]:
    """Return the words of a question that a passage has too, function words aside, in order."""
    asked, given = words([without_stop_words(question), without_stop_words(passage)])
    return tuple(word for word in dict.fromkeys(asked) if word in given)
