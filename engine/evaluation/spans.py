"""Recall, precision and IoU of retrieved text, in characters.

A long chunk with a short answer is relevant, but most of its text is not needed, which these metrics show.
They are those of Smith and Troynikov 2024, "Evaluating Chunking Strategies for Retrieval", and equal to the
package chunking_evaluation, which calls them token metrics but counts characters. For the passages that
answer a question and the retrieved chunks:

- recall: characters of passages that are in a chunk, over characters of passages;
- precision: the same, over characters of chunks;
- IoU: the same, over characters of chunks and of passages in no chunk;
- precision omega: the precision if exactly the chunks with a part of a passage were retrieved.

Text in several overlapping chunks counts once in the numerator and several times in the denominator, except
in precision omega, where it counts once. So overlap costs precision, and the IoU of overlapping chunks is not
that of sets. 0 over 0 counts as 0.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np

from engine.documents.document import Chunk
from engine.errors import InputError
from engine.evaluation.questions import Question, chunk_places
from engine.layers.tracing import Array

Range = tuple[int, int]


@dataclass(frozen=True)
class SpanMetrics:
    """Metrics of the retrieved chunks of one question, each from 0 to 1."""

    recall: float
    precision: float
    iou: float


NOTHING = SpanMetrics(0.0, 0.0, 0.0)


def span_metrics(retrieved: Sequence[Chunk], question: Question) -> SpanMetrics:
    """Compare the chunks retrieved for a question, of any document, with the passages that answer it."""
    answering = [chunk for chunk in retrieved if question.is_answered_by(chunk)]
    return answered_share(answering, sum(chunk.end - chunk.start for chunk in retrieved), question)


def answered_share(answering: Sequence[Chunk], n_read: int, question: Question) -> SpanMetrics:
    """Compute `span_metrics` from ``n_read`` retrieved characters and the chunks with part of an answer."""
    if not answering:
        return NOTHING
    found = union([(chunk.start, chunk.end) for chunk in answering])
    passages = [(reference.start, reference.end) for reference in question.references]
    matched = shared(found, union(passages))
    n_missed = sum(length([passage]) - shared(found, [passage]) for passage in passages)
    return SpanMetrics(
        recall=share(matched, length(passages)),
        precision=share(matched, n_read),
        iou=share(matched, n_read + n_missed),
    )


def span_metrics_at(
    scores: Array, chunks: Sequence[Chunk], questions: Sequence[Question], k: int
) -> dict[str, Array]:
    """Compute `span_metrics` of the ``k`` best chunks of every question.

    Parameters
    ----------
    scores
        Of each question and chunk, ``(n_questions, n_chunks)``; equal scores keep the order of the chunks. A
        chunk with the score ``-inf`` or NaN was not found.
    chunks, questions
        The chunks and questions of the scores.
    k
        Number of chunks retrieved, at most all.

    Returns
    -------
    dict
        Values ``(n_questions,)`` of ``"recall"``, ``"precision"`` and ``"iou"``.

    Raises
    ------
    InputError
        ``k`` is below 1.
    """
    best = best_chunks(scores, k)
    metrics = [
        astuple(span_metrics([chunks[i] for i in rows], question))
        for rows, question in zip(best, questions, strict=True)
    ]
    recall, precision, iou = np.array(metrics, np.float64).reshape(-1, 3).T
    return {"recall": recall, "precision": precision, "iou": iou}


def best_chunks(scores: Array, k: int) -> list[Array]:
    """Return the numbers of every question's ``k`` best chunks, best first; fewer if fewer are found."""
    if k < 1:
        raise InputError(f"k is {k}: retrieve 1 chunk or more")
    k = min(k, scores.shape[1])
    if k == 0:
        return [np.empty(0, np.int64)] * len(scores)
    negated = -scores
    thresholds = np.partition(negated, k - 1, axis=1)[:, k - 1]  # (n_questions,)
    best = []
    for row, threshold in zip(negated, thresholds, strict=True):
        candidates = np.flatnonzero(~(row > threshold))  # with all ties, or all if it is NaN
        first = candidates[np.argsort(row[candidates], kind="stable")[:k]]
        best.append(first[row[first] < np.inf])
    return best


def precision_omega(chunks: Sequence[Chunk], questions: Sequence[Question]) -> Array:
    """Return the best precision possible at perfect recall, for any retriever: ``(n_questions,)``.

    As in chunking_evaluation, chunks that only touch a passage count as having a part of it, and characters
    of passages in no chunk count, too.
    """
    stems, *places = chunk_places(chunks)
    spans = np.column_stack(places)  # (n_chunks, 2)
    spans_of = {name: spans[stems == name] for name in {question.corpus_id for question in questions}}
    values = np.zeros(len(questions))
    for number, question in enumerate(questions):
        passages = [(reference.start, reference.end) for reference in question.references]
        touching = [span for passage in passages for span in touched(spans_of[question.corpus_id], passage)]
        matched = shared(union(touching), union(passages))
        values[number] = share(matched, length(union(touching + passages)))
    return values


def touched(spans: Array, passage: Range) -> list[Range]:
    """Return the spans, of ``(n_spans, 2)``, that share a character or an end with a passage."""
    start, end = passage
    return [(a, b) for a, b in spans[(spans[:, 0] <= end) & (start <= spans[:, 1])].tolist()]


def union(ranges: Sequence[Range]) -> list[Range]:
    """Merge ranges that overlap or touch; return disjoint ones in order."""
    merged: list[Range] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged


def shared(first: Sequence[Range], second: Sequence[Range]) -> int:
    """Return the number of characters in both; the ranges of each are disjoint."""
    return sum(max(0, min(end, to) - max(start, since)) for start, end in first for since, to in second)


def length(ranges: Sequence[Range]) -> int:
    """Return the total length of ranges, overlaps counted repeatedly."""
    return sum(end - start for start, end in ranges)


def share(part: int, whole: int) -> float:
    """Return part over whole, 0 for an empty whole."""
    return part / whole if whole else 0.0
