"""Why a question does not find a passage: its rank with each possible cause removed in turn."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ...documents.document import Document
from ...documents.truncation import read_ends, span_mask
from ...errors import InputError
from ...layers.tracing import Array
from ...retrieval.embedding_model import Model, embed_query, encode_by
from ...retrieval.index import Index
from ...retrieval.words import WORD, words
from ..health.neighbors import neighborhood
from ..health.report import NEAR_DUPLICATE
from ..pooling.stop_words import without_stop_words
from .counterfactual import RankedScore, counterfactuals, tail_vectors
from .location import ChunkOverlap, Location, chunk_overlaps, matching_rows

COMPARED = 1000  # chunks above a passage that are searched for near duplicates

CauseKind = Literal[
    "not in the corpus",
    "prompts left out",
    "truncated",
    "split",
    "near duplicates",
    "pooled away",
    "word mismatch",
    "other words",
    "retriever",
    "not relevant",
    "outranked",
]


@dataclass(frozen=True)
class Cause:
    """A reason why a passage is not found."""

    kind: CauseKind
    headline: str  # the cause in a sentence
    advice: str  # what may help, to be measured
    rank: int | None = None  # rank of the passage without it, where that can be computed

    @property
    def sentence(self) -> str:
        """The headline and the advice."""
        return f"{self.headline} {self.advice}"


@dataclass(frozen=True)
class Diagnosis:
    """The rank of a passage for a question, now and with one condition changed at a time.

    Ranks count from 1; those of a passage are of the best of its chunks (`matching_rows`).
    """

    k: int  # how many chunks count as found
    length: int  # characters of the passage
    overlaps: tuple[ChunkOverlap, ...]  # the chunks with some of the passage
    # the passage's best chunk, and its rank
    row: int
    now: RankedScore
    scores: Array = field(repr=False)  # cosine of every chunk with the question, ``(n_chunks,)``
    above: tuple[int, ...]  # rows of the chunks that rank higher, best first
    # groups of rows above that nearly repeat one another or the passage's chunk; two rows or more each
    repeats: tuple[tuple[int, ...], ...]
    # parts of the passage that chunks hold but all beyond their token limit, ``(start, end)``
    unread: tuple[tuple[int, int], ...]
    # rank with each group of near duplicates counted once, and the passage's own group as the passage
    without_repeats: int
    # with the truncated chunks of the passage read to their ends; None where none is truncated within it
    tail_read: RankedScore | None
    centred: RankedScore  # with all of it in the middle of a chunk, as long as the one that holds most of it
    by_itself: RankedScore  # with the passage as a chunk of its own
    part: float  # its length as a share of the part of its chunk that is read
    bm25: RankedScore  # by BM25; a score of 0 where they share no word
    # content words of the question that the passage has too, in this or another form
    shared_words: tuple[str, ...]

    @property
    def found(self) -> bool:
        """Whether the passage is among the first ``k``."""
        return self.now.rank <= self.k

    @property
    def n_unread(self) -> int:
        """Number of characters of the passage that are never read."""
        return sum(end - start for start, end in self.unread)

    @property
    def share(self) -> float:
        """Share of the passage in the chunk that holds most of it."""
        return max(each.share for each in self.overlaps)


def diagnose(
    question: str, place: Location, document: Document, index: Index, encoder: Model, k: int
) -> Diagnosis:
    """Rank a passage now, and with one condition changed at a time.

    ``place`` is the passage in its ``document``, ``encoder`` the model of the vectors of ``index``; the first
    ``k`` chunks count as found. Without token vectors, `Diagnosis.tail_read` is not known.
    """
    if k < 1:
        raise InputError(f"k is {k}: look at 1 chunk or more")
    encoder, spec = index.encoder(encoder), index.spec
    query = embed_query(question, encoder, spec.pooling, spec.max_tokens)
    index.check(query)
    ends = read_ends(index.chunks, encoder.tokenizer, encoder.text_limit(spec.max_tokens))
    overlaps, own = chunk_overlaps(place, index.chunks, ends), matching_rows(place, index.chunks)
    if not own:
        raise InputError(f"no chunk of {place.document} holds this passage: choose that document to search")
    scores = index.vectors @ query.vector  # (n_chunks,)
    row = max(own, key=lambda each: scores[each])
    above = [int(each) for each in np.argsort(-scores, kind="stable") if scores[each] > scores[row]]
    groups, without_repeats = group_repeats(index, row, above)

    others = np.delete(scores, own)  # (n_others,)
    fullest = index.chunks[max(overlaps, key=lambda each: each.share).row]
    passage = document.text[place.start : place.end]
    middle = document.text[slice(*centred_span(place, fullest.end - fullest.start, document.text))]
    vectors = encode_by(spec, "document", [passage, middle], encoder)
    by_itself, centred = (rank_among(others, float(vector @ query.vector)) for vector in vectors)
    cut = [each.row for each in overlaps if each.row in own and each.read < each.share]
    tail_read: RankedScore | None = None
    if cut and (inside := encoder.as_encoder):
        tails = counterfactuals(query.vector, tail_vectors(index, inside, cut))
        tail_read = min(
            (way for tail in tails for way in (tail.whole, tail.windows)), key=lambda way: way.rank
        )
    by_words = index.words.scores([question])[0]  # (n_chunks,)
    return Diagnosis(
        k=k,
        length=len(passage),
        overlaps=overlaps,
        row=row,
        now=rank_among(others, float(scores[row])),
        scores=scores,
        above=tuple(above),
        repeats=groups,
        unread=unread_spans(place, index, overlaps, ends),
        without_repeats=without_repeats,
        tail_read=tail_read,
        centred=centred,
        by_itself=by_itself,
        part=len(passage) / (ends[row] - index.chunks[row].start),
        bm25=rank_among(np.delete(by_words, own), float(by_words[own].max())),
        shared_words=shared_words(question, passage, index.languages[place.document]),
    )


def rank_among(others: Array, score: float) -> RankedScore:
    """Return the rank of a score among those of other chunks, ``(n_others,)``."""
    return RankedScore(1 + int((others > score).sum()), score)


def centred_span(place: Location, size: int, text: str) -> tuple[int, int]:
    """Return a span of about ``size`` characters around a passage that ends at word borders."""
    room = max(0, size - (place.end - place.start))
    start = max(0, place.start - room // 2)
    end = min(len(text), place.end + room // 2)
    while start and start < place.start and not text[start - 1].isspace():
        start += 1
    while end < len(text) and end > place.end and not text[end].isspace():
        end -= 1
    return start, end


def group_repeats(index: Index, row: int, above: Sequence[int]) -> tuple[tuple[tuple[int, ...], ...], int]:
    """Group the near duplicates among a row and the chunks above it; return the row's rank with one of each.

    Near duplicates of the row itself are as good an answer, so they do not count. Only the first `COMPARED`
    are compared, pair by pair. Rows of tables look alike and say different things: each is alone.
    """
    rows = np.array([row, *above[:COMPARED]])
    leaders = neighborhood(index.vectors[rows], NEAR_DUPLICATE, 1).leader  # (n_rows,), indices into rows
    tables = {name for name, document in index.documents.items() if document.has_rows}
    in_table = np.array([index.chunks[each].document in tables for each in rows])
    leaders = np.where(in_table, np.arange(len(rows)), leaders)
    groups = [tuple(rows[leaders == leader].tolist()) for leader in np.unique(leaders)]
    rank = len(groups) + len(above[COMPARED:])
    return tuple(group for group in groups if len(group) > 1), rank


def unread_spans(
    place: Location, index: Index, overlaps: Sequence[ChunkOverlap], ends: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    """Return the parts of a passage that chunks hold but all beyond their token limit."""
    whole = span_mask(
        [(index.chunks[each.row].start, index.chunks[each.row].end) for each in overlaps], place.end
    )
    read = span_mask([(index.chunks[each.row].start, ends[each.row]) for each in overlaps], place.end)
    unread = (whole & ~read)[place.start :]
    borders = np.flatnonzero(np.diff(unread, prepend=False, append=False))  # start and end of each run
    return tuple((place.start + start, place.start + end) for start, end in borders.reshape(-1, 2).tolist())


def shared_words(question: str, passage: str, language: str) -> tuple[str, ...]:
    """Return the content words of a question that a passage has too, in order, compared as BM25 does."""
    [given] = words([without_stop_words(passage)], [language])
    asked = WORD.findall(without_stop_words(question))
    found: dict[str, str] = {}  # by stem
    for word, stems in zip(asked, words(asked, [language] * len(asked)), strict=True):
        for stem in stems:
            # Of several, as of a run of Chinese, each stands for itself.
            found.setdefault(stem, word if len(stems) == 1 else stem)
    return tuple(word for stem, word in found.items() if stem in given)
