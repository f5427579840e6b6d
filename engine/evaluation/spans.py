"""Recall, precision and IoU of retrieved text, in characters.

A long chunk with a short answer is relevant, but most of its text is not needed, which these metrics show.
They are those of Smith and Troynikov 2024, "Evaluating Chunking Strategies for Retrieval", and equal to the
package chunking_evaluation, which calls them token metrics but counts characters. For the passages that
answer a question and the retrieved chunks:

- recall: characters of passages that are in a chunk, over characters of passages;
- precision: the same, over characters of chunks;
- IoU: the same, over characters of chunks and of passages in no chunk.

Text in several overlapping chunks counts once in the numerator and several times in the denominator. So
overlap costs precision, and the IoU of overlapping chunks is not that of sets. 0 over 0 counts as 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..documents.document import Chunk
from ..errors import InputError
from ..layers.tracing import Array
from .questions import Question

Range = tuple[int, int]


@dataclass(frozen=True)
class SpanMetrics:
    """Metrics of the retrieved chunks of one question, each from 0 to 1."""

    recall: float
    precision: float
    iou: float


NOTHING = SpanMetrics(0.0, 0.0, 0.0)


def span_metrics(answering: Sequence[Chunk], n_read: int, question: Question) -> SpanMetrics:
    """Compare the chunks with part of an answer, of ``n_read`` characters in all, with its passages."""
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
