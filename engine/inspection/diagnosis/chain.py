"""The links from a passage in a file to the right answer, each with its evidence."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ...documents.truncation import read_ends, span_mask
from ...evaluation.answers import ShortAnswer
from ...generation.answer import Answer
from ...generation.reading import AnswerSpan, answers_in_words, read_passages
from ...layers.tracing import Array
from ...retrieval.embedding_model import embed_query
from ...retrieval.index import Hit, Index
from ...retrieval.ranking import best_first
from ...retrieval.retrievers import RETRIEVERS, index_scores
from ...wording import beginning, counted
from .asking import Searched, are_right, touches
from .location import ChunkOverlap, Location, chunk_overlaps, matching_rows
from .table_rows import flattened

WHOLE = 0.9  # from this share on a chunk counts as holding a passage whole
SHOWN = 80  # characters of a text in evidence

LinkName = Literal["read", "whole", "limit", "found", "given", "reader", "quoted", "sure"]
TITLES: dict[LinkName, str] = {
    "read": "Read from the file",
    "whole": "Whole in one chunk",
    "limit": "Within the token limit",
    "found": "Found",
    "given": "Among the passages given to the reader",
    "reader": "Read: the reader's words",
    "quoted": "Quoted",
    "sure": "Sure enough to be shown",
}


@dataclass(frozen=True)
class Link:
    """One link: whether it holds, None where it does not apply or was not reached, and why."""

    name: LinkName
    holds: bool | None
    evidence: str
    figures: dict[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Its name for people."""
        return TITLES[self.name]


@dataclass(frozen=True)
class Ranking:
    """All chunks by a retriever, best first, and where the passage's best one is among them."""

    order: tuple[int, ...] = field(repr=False)
    scores: Array = field(repr=False)  # ``(n_chunks,)``
    row: int  # of the passage's best chunk
    rank: int | None  # its rank, from 1; None where the retriever finds no chunk of the passage

    @property
    def above(self) -> tuple[int, ...]:
        """Rows of the found chunks that rank higher, best first."""
        higher = self.order if self.rank is None else self.order[: self.rank - 1]
        return tuple(row for row in higher if self.scores[row] > -np.inf)


@dataclass(frozen=True)
class Chain:
    """The links of an answer, in order, and what they were read from."""

    links: tuple[Link, ...]
    overlaps: tuple[ChunkOverlap, ...] = ()
    unread: tuple[tuple[int, int], ...] = ()
    ranking: Ranking | None = None
    by_half: dict[str, Ranking] = field(default_factory=dict)  # ranks by vectors only and by words only
    own_span: AnswerSpan | None = None  # the reader's best in the passage

    @property
    def broken(self) -> Link | None:
        """The first link that does not hold."""
        return next((link for link in self.links if link.holds is False), None)

    def holds(self, name: LinkName) -> bool | None:
        """Whether a link holds."""
        return next((link.holds for link in self.links if link.name == name), None)

    @property
    def rank(self) -> int | None:
        """The rank of the passage's best chunk, None where it is not found."""
        return self.ranking.rank if self.ranking else None

    @property
    def share(self) -> float:
        """Share of the passage in the chunk that holds most of it."""
        return max((each.share for each in self.overlaps), default=0.0)


def chain_of(place: Location, answer: Answer, searched: Searched, wanted: ShortAnswer) -> Chain:
    """Follow a passage from its file to an answer."""
    index, limit = searched.index, searched.text_limit
    ends = read_ends(index.chunks, searched.model.tokenizer, limit)
    overlaps = chunk_overlaps(place, index.chunks, ends)
    if not overlaps:
        return Chain((read_link(place, searched), Link("whole", False, "No chunk holds any of it.")))
    unread = unread_spans(place, index, overlaps, ends)
    names = dict.fromkeys(("dense", "bm25", searched.settings["retriever"]))
    rankings = {name: ranking_of(answer.question, place, searched, name) for name in names}
    ranking = rankings[searched.settings["retriever"]]
    hit = given_hit(answer, place)
    span = own_span(answer, place, searched, hit)
    links = (
        read_link(place, searched),
        whole_link(overlaps),
        limit_link(place, unread, limit),
        found_link(ranking, rankings, searched),
        given_link(hit, len(answer.retrieved.hits), ranking, searched),
        reader_link(answer, span, place, wanted),
        quoted_link(answer, place),
        sure_link(answer, searched),
    )
    by_half = {name: rankings[name] for name in ("dense", "bm25")}
    return Chain(links, overlaps, unread, ranking, by_half, span)


def read_link(place: Location, searched: Searched) -> Link:
    """Say where the passage is in what was read of the files."""
    document = searched.index.documents.get(place.document)
    where = f"{place.document}, characters {place.start:,} to {place.end:,}"
    text = document.text[place.start : place.end] if document else ""
    how = {
        "exact": f"Word for word: {where}.",
        "alike": f"With other white space, quotation marks or dashes: {where}.",
        "approximate": f"Alike to {place.likeness:.0%}: {where}. There it says “{beginning(text, SHOWN)}”.",
    }[place.how]
    lost = flattened(document, place) if document else ""
    notes = f" Of this file: {'; '.join(document.notes)}." if document and document.notes else ""
    flat = f" It is a table that was read as plain text: {lost}." if lost else ""
    figures = {"document": place.document, "start": place.start, "end": place.end, "likeness": place.likeness}
    return Link("read", not lost, how + flat + notes, figures)


def whole_link(overlaps: Sequence[ChunkOverlap]) -> Link:
    """Say into how many chunks the passage was cut."""
    share, n = max(each.share for each in overlaps), len(overlaps)
    if share >= WHOLE:
        words = "One chunk holds it." if n == 1 else f"{n} chunks hold some of it, at least one the whole."
    else:
        words = f"{n} chunks share it: none holds more than {share:.0%}."
    return Link("whole", share >= WHOLE, words, {"chunks": n, "share": round(share, 4)})


def limit_link(place: Location, unread: Sequence[tuple[int, int]], limit: int) -> Link:
    """Say how much of the passage lies beyond the tokens that are read of a chunk."""
    n, length = sum(end - start for start, end in unread), place.end - place.start
    if not n:
        return Link("limit", True, "All of it is read.", {"unread_characters": 0})
    words = f"{n:,} of its {length:,} characters are beyond the {limit:,} tokens that are read of a chunk."
    return Link("limit", False, words, {"unread_characters": n, "limit": limit})


def found_link(ranking: Ranking, rankings: dict[str, Ranking], searched: Searched) -> Link:
    """Say at which rank the retriever finds the passage, and each half of it by itself."""
    name, n_chunks = searched.settings["retriever"], len(searched.index.chunks)

    def words(each: Ranking) -> str:
        return "does not find it" if each.rank is None else f"ranks it {each.rank:,}"

    figures: dict[str, Any] = {f"{half}_rank": rankings[half].rank for half in ("dense", "bm25")}
    cosine = round(float(rankings["dense"].scores[ranking.row]), 4)
    figures |= {"rank": ranking.rank, "chunks": n_chunks, "cosine": cosine}
    halves = f" By vectors only: {words(rankings['dense'])}; by words only: {words(rankings['bm25'])}."
    if ranking.rank is not None:
        figures["score"] = round(float(ranking.scores[ranking.row]), 4)
    said = f"{RETRIEVERS[name].label} {words(ranking)} of {n_chunks:,}."
    return Link("found", ranking.rank is not None, said + halves, figures)


def given_link(hit: int | None, n_given: int, ranking: Ranking, searched: Searched) -> Link:
    """Say whether the passage is among those that are read."""
    k = searched.settings["k"]
    if hit is not None:
        words = f"It is number {hit + 1} of {counted(n_given, 'passage')} that are read."
        return Link("given", True, words, {"k": k})
    above = [searched.index.chunks[row] for row in ranking.above[:k]]
    taken = "; ".join(f"“{beginning(chunk.text, SHOWN)}” ({chunk.document})" for chunk in above[:2])
    return Link("given", False, f"Only {k:,} are read, and others rank above it: {taken}.", {"k": k})


def reader_link(answer: Answer, own: AnswerSpan | None, place: Location, wanted: ShortAnswer) -> Link:
    """Say which words the reader takes, and its best ones in the passage."""
    taken = answer.spans[0] if answer.spans else None
    if taken is None or not answers_in_words(answer.question, taken):
        reason = "The question is not one that a few words answer, so sentences are quoted."
        if not answer.retrieved.relevant:
            reason = "Nothing is read, as no passage is close enough to the question."
        elif not answer.spans:
            reason = "There is no reader for these passages, so sentences are quoted."
        return Link("reader", None, reason)
    figures = {"taken": taken.text, "score": round(taken.score, 4), "document": taken.document}
    took = f"It takes “{beginning(taken.text, SHOWN)}” (score {taken.score:.1f}) of {taken.document}"
    best = ""
    if own is not None:
        best = f"; its best words in the passage are “{beginning(own.text, SHOWN)}” ({own.score:.1f})"
        figures |= {"own": own.text, "own_score": round(own.score, 4)}
    if touches(taken, place) and are_right(taken, wanted, place):
        return Link("reader", True, f"{took}, from the passage.", figures)
    return Link("reader", False, f"{took}{best}.", figures)


def quoted_link(answer: Answer, place: Location) -> Link:
    """Say whether a sentence of the passage is quoted."""
    if not answer.quotes:
        return Link("quoted", None, "Nothing is quoted.")
    if any(touches(quote, place) for quote in answer.quotes):
        return Link("quoted", True, "A sentence of it is quoted.")
    first = answer.quotes[0]
    words = f"Others are quoted, first “{beginning(first.text, SHOWN)}” ({first.document})."
    return Link("quoted", False, words)


def sure_link(answer: Answer, searched: Searched) -> Link:
    """Say whether the answer passes the thresholds, and by which it is refused."""
    found, values = answer.retrieved, searched.settings
    nearest = max((hit.score for hit in found.hits), default=0.0)
    relevance = found.null_scores.relevance(nearest)
    confidence, status = 100 * answer.judged.confidence, answer.judged.status
    figures = {"relevance": round(relevance, 2), "confidence": round(confidence, 2), "status": status}
    if not found.relevant:
        words = (
            f"Refused: the relevance of the nearest passage is {relevance:.0f}, and the threshold "
            f"{values['min_relevance']:.0f}."
        )
        return Link("sure", False, words, figures | {"threshold": "min_relevance"})
    if answer.judged.status == "refused":
        least = values["refuse_threshold"]
        words = f"Refused: {confidence:.0f} % sure, and below {least:.0f} % nothing is shown."
        return Link("sure", False, words, figures | {"threshold": "refuse_threshold"})
    return Link("sure", True, f"{confidence:.0f} % sure: shown as {answer.judged.status}.", figures)


def ranking_of(question: str, place: Location, searched: Searched, retriever: str) -> Ranking:
    """Rank a passage's best chunk by one of `RETRIEVERS`."""
    index = searched.index
    model = index.encoder(searched.model)
    query = embed_query(question, model, index.spec.pooling, index.spec.max_tokens)
    scores = index_scores(retriever, question, query, index, model.as_encoder)  # (n_chunks,)
    order = best_first(scores[None])[0].tolist()
    own = set(matching_rows(place, index.chunks))
    rank = next(rank for rank, row in enumerate(order, 1) if row in own)
    row = order[rank - 1]
    return Ranking(tuple(order), scores, row, rank if scores[row] > -np.inf else None)


def given_hit(answer: Answer, place: Location) -> int | None:
    """Return the place among the hits of the first that holds some of the passage's middle half."""
    own = matching_rows(place, [hit.chunk for hit in answer.retrieved.hits])
    return own[0] if own else None


def own_span(answer: Answer, place: Location, searched: Searched, hit: int | None) -> AnswerSpan | None:
    """Return the reader's best words within the passage."""
    if hit is None or searched.reader is None or not answer.spans:
        return None
    hits: list[Hit] = [answer.retrieved.hits[hit]]
    spans = read_passages(answer.question, hits, searched.reader, answer.evidence)
    return next((span for span in spans if touches(span, place)), None)


def unread_spans(
    place: Location, index: Index, overlaps: Sequence[ChunkOverlap], ends: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    """Return the parts of a passage that chunks hold but all beyond their token limit."""
    chunks = [(index.chunks[each.row], ends[each.row]) for each in overlaps]
    whole = span_mask([(chunk.start, chunk.end) for chunk, _ in chunks], place.end)
    read = span_mask([(chunk.start, end) for chunk, end in chunks], place.end)
    unread = (whole & ~read)[place.start :]
    borders = np.flatnonzero(np.diff(unread, prepend=False, append=False))  # start and end of each run
    return tuple((place.start + start, place.start + end) for start, end in borders.reshape(-1, 2).tolist())
