"""How much of the answers was retrieved, and how much of what was retrieved answers, character by character.

A chunk that holds a short answer in a long text is relevant, and yet most of it is ballast; these metrics
see that. They are those of Smith and Troynikov 2024, "Evaluating Chunking Strategies for Retrieval", equal
to the package chunking_evaluation: it speaks of tokens, and counts characters. With the passages that
answer, and the chunks that were retrieved:

- recall: characters of passages that are in a chunk, over characters of passages;
- precision: the same, over characters of chunks;
- IoU: the same, over characters of chunks and of passages in no chunk;
- precision omega: the precision, had just the chunks with a part of a passage been retrieved, all of them.

What is found twice, in chunks that overlap, counts once above and twice below the line, except in precision
omega, where it counts once. So a chunk's overlap costs precision, and the IoU of overlapping chunks is not
what sets would have. What is 0 over 0 counts as 0.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np

from engine.documents.document import Chunk
from engine.errors import InputError
from engine.evaluation.questions import Question, stem
from engine.layers.tracing import Array

Range = tuple[int, int]


@dataclass(frozen=True)
class SpanMetrics:
    """What the retrieved chunks of one question are worth, each from 0 to 1."""

    recall: float
    precision: float
    iou: float


NOTHING = SpanMetrics(0.0, 0.0, 0.0)


def span_metrics(retrieved: Sequence[Chunk], question: Question) -> SpanMetrics:
    """Compare the chunks retrieved for a question, of any document, with the passages that answer it."""
    answering = [chunk for chunk in retrieved if question.is_answered_by(chunk)]
    return answered_share(answering, sum(chunk.end - chunk.start for chunk in retrieved), question)


def answered_share(answering: Sequence[Chunk], n_read: int, question: Question) -> SpanMetrics:
    """Take `span_metrics` of ``n_read`` retrieved characters and the chunks that hold part of an answer."""
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
    """Take `span_metrics` of the ``k`` best chunks of every question.

    Parameters
    ----------
    scores
        Of each question and chunk, ``(n_questions, n_chunks)``, larger is better; of equal ones the first
        comes first. A chunk with the score ``-inf`` or NaN was not found.
    chunks, questions
        What the scores are of.
    k
        How many chunks are retrieved; more than there are takes all.

    Returns
    -------
    dict
        Of ``"recall"``, ``"precision"`` and ``"iou"`` a value a question, ``(n_questions,)``.

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
    """Return the numbers of every question's ``k`` best chunks, best first; fewer where fewer are found."""
    if k < 1:
        raise InputError(f"k is {k}: retrieve 1 chunk or more")
    k = min(k, scores.shape[1])
    if k == 0:
        return [np.empty(0, np.int64)] * len(scores)
    negated = -scores
    thresholds = np.partition(negated, k - 1, axis=1)[:, k - 1]  # (n_questions,)
    best = []
    for row, threshold in zip(negated, thresholds, strict=True):
        candidates = np.flatnonzero(~(row > threshold))  # with all that tie, and all where it is NaN
        first = candidates[np.argsort(row[candidates], kind="stable")[:k]]
        best.append(first[row[first] < np.inf])
    return best


def precision_omega(chunks: Sequence[Chunk], questions: Sequence[Question]) -> Array:
    """Best precision that chunks allow at perfect recall, whatever retrieves them: ``(n_questions,)``.

    As in chunking_evaluation, a chunk that ends just where a passage begins, or begins where it ends,
    counts among those with a part of it, and so do characters of passages that are in no chunk.
    """
    stems = np.array([stem(chunk.document) for chunk in chunks], object)  # (n_chunks,)
    spans = np.array([(chunk.start, chunk.end) for chunk in chunks], np.int64).reshape(-1, 2)
    spans_of = {name: spans[stems == name] for name in {question.corpus_id for question in questions}}
    values = np.zeros(len(questions))
    for number, question in enumerate(questions):
        passages = [(reference.start, reference.end) for reference in question.references]
        touching = [span for passage in passages for span in touched(spans_of[question.corpus_id], passage)]
        matched = shared(union(touching), union(passages))
        values[number] = share(matched, length(union(touching + passages)))
    return values


def touched(spans: Array, passage: Range) -> list[Range]:
    """Return those of the spans ``(n_spans, 2)`` that share a character or an end with a passage."""
    start, end = passage
    return [(a, b) for a, b in spans[(spans[:, 0] <= end) & (start <= spans[:, 1])].tolist()]


def union(ranges: Sequence[Range]) -> list[Range]:
    """Merge ranges that overlap or touch: disjoint ones come out, in order."""
    merged: list[Range] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged


def shared(first: Sequence[Range], second: Sequence[Range]) -> int:
    """How many characters are in both; the ranges of either are disjoint."""
    return sum(max(0, min(end, to) - max(start, since)) for start, end in first for since, to in second)


def length(ranges: Sequence[Range]) -> int:
    """How many characters ranges have together; what several hold counts for each."""
    return sum(end - start for start, end in ranges)


def share(part: int, whole: int) -> float:
    """Part over whole; 0 of nothing."""
    return part / whole if whole else 0.0
