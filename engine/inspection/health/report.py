"""Problems of a corpus: chunks that repeat others, are hubs, hold little text or do not fit."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from ...documents.document import Chunk
from ...errors import InputError
from ...layers.norm import l2_normalize
from ...layers.tracing import Array
from ...weights.fetch import Progress
from .neighbors import Neighborhood, neighborhood, question_occurrence, skewness
from .text_checks import count_letters, first_copies, repeated_lines

# In the order in which they are shown.
FindingKind = Literal[
    "exact duplicate", "near duplicate", "similar rows", "boilerplate", "near empty", "oversized", "hub"
]
FINDING_KINDS: tuple[FindingKind, ...] = get_args(FindingKind)

NEAR_DUPLICATE = 0.90  # cosine above which two chunks nearly repeat each other
NEIGHBORS = 10  # k of the k-occurrence that defines hubs, as in Radovanović et al.
HUB_DEVIATIONS, HUB_FACTOR = 2, 3  # a hub lies this far beyond the mean, and is this many times the mean
HUB_QUESTIONS, HUB_SHARE = 5, 0.5  # or is found by this many questions, and by this share of them
MIN_LETTERS, MIN_LETTER_SHARE = 20, 0.4


@dataclass(frozen=True)
class Finding:
    """A problem of one or more chunks."""

    kind: FindingKind
    rows: tuple[int, ...]  # the chunks concerned; of duplicates, the original comes first
    removable: tuple[int, ...]  # those that can be removed without losing text
    magnitude: float  # the number of copies, lists, letters, tokens or documents, or the cosine, by ``kind``
    reason: str  # the magnitude in words


@dataclass(frozen=True)
class HealthReport:
    """The findings in a corpus."""

    findings: tuple[Finding, ...]  # all findings, kind by kind, the worst first
    n_chunks: int
    # k-occurrence N_k of each chunk: how often it is among the nearest of another, ``(n_chunks,)``
    occurrence: Array
    skewness: float  # skewness of ``occurrence``: 0 where it is symmetric

    def of_kind(self, kind: FindingKind) -> tuple[Finding, ...]:
        """Return the findings of one kind."""
        return tuple(finding for finding in self.findings if finding.kind == kind)


def health_report(
    chunks: Sequence[Chunk],
    vectors: Array,
    max_tokens: int,
    questions: Array | None = None,
    on_progress: Progress | None = None,
    tables: Collection[str] = (),
) -> HealthReport:
    """Find chunks that should be removed or cut differently.

    Hubs are those of Radovanović, Nanopoulos & Ivanović (2010): chunks among the `NEIGHBORS` nearest of very
    many others, which therefore appear for any question.

    Vectors of chunks and of questions, over which hubs are counted too, are ``(n, d_model)``. The encoder
    reads ``max_tokens`` of a chunk. Rows of the documents named in ``tables`` are alike and short by nature.
    """
    check_vectors(chunks, vectors, questions)
    if not chunks:
        return HealthReport((), 0, np.zeros(0), 0.0)
    unit = l2_normalize(vectors.astype(np.float32))
    same = first_copies(chunks)
    first = np.flatnonzero(same == np.arange(len(chunks)))  # one of every text
    found = neighborhood(unit[first], NEAR_DUPLICATE, NEIGHBORS, on_progress)
    occurrence = np.zeros(len(chunks))
    occurrence[first] = found.occurrence
    findings = [
        *exact_duplicates(same),
        *near_duplicates(chunks, found, first, tables),
        *similar_rows(chunks, found, first, tables),
        *(
            Finding(
                "boilerplate",
                line.rows,
                line.mostly,
                line.n_documents,
                f"in {line.n_documents} of {line.of_documents} documents: “{line.text}”",
            )
            for line in repeated_lines(chunks)
        ),
        *near_empty(chunks, tables),
        *oversized(chunks, max_tokens),
        *hubs(found.occurrence, first),
    ]
    if questions is not None and len(questions):
        asked = l2_normalize(questions.astype(np.float32))
        by_questions = question_occurrence(unit[first], asked, NEIGHBORS)
        findings += question_hubs(by_questions, first, len(questions))
    findings.sort(key=lambda finding: FINDING_KINDS.index(finding.kind))
    return HealthReport(tuple(findings), len(chunks), occurrence, skewness(found.occurrence))


def exact_duplicates(leaders: Array) -> Iterator[Finding]:
    """Yield the groups of chunks with the same text, the largest first; ``leaders`` is ``(n,)``."""
    texts, counts = np.unique(leaders, return_counts=True)
    for text in texts[np.argsort(-counts, kind="stable")][: (counts > 1).sum()]:
        rows = tuple(np.flatnonzero(leaders == text).tolist())
        reason = f"the same text {len(rows)} times, blanks aside"
        yield Finding("exact duplicate", rows, rows[1:], len(rows), reason)


def near_duplicates(
    chunks: Sequence[Chunk], found: Neighborhood, first: Array, tables: Collection[str]
) -> list[Finding]:
    """Return the groups of compared chunks, but rows of one table, that nearly repeat an earlier one."""
    findings = []
    followers = np.array(
        [
            place
            for place in np.flatnonzero(found.leader != np.arange(len(first)))
            if not are_rows_of_one(chunks[first[place]], chunks[first[found.leader[place]]], tables)
        ],
        np.int64,
    )
    for leader in np.unique(found.leader[followers]):
        group = followers[found.leader[followers] == leader]
        rows = tuple(first[group].tolist())
        least, most = found.likeness[group].min(), found.likeness[group].max()
        measured = f"{most:.3f}" if len(group) == 1 else f"{least:.3f} to {most:.3f}"
        reason = f"cosine {measured} with the first, above {NEAR_DUPLICATE:.2f}"
        first_chunk = chunks[first[leader]]
        if shared := max(overlap(first_chunk, chunks[row]) for row in rows):
            reason += f"; they share up to {shared:,} characters of one document"
        findings.append(Finding("near duplicate", (int(first[leader]), *rows), rows, float(most), reason))
    return sorted(findings, key=lambda finding: -finding.magnitude)


def are_rows_of_one(chunk: Chunk, leader: Chunk, tables: Collection[str]) -> bool:
    """Whether both chunks are rows of one table."""
    return chunk.document == leader.document and chunk.document in tables


def similar_rows(
    chunks: Sequence[Chunk], found: Neighborhood, first: Array, tables: Collection[str]
) -> list[Finding]:
    """Return the tables with rows that are as similar as near duplicates, those with most of them first."""
    similar: dict[str, set[int]] = {}
    for place in np.flatnonzero(found.leader != np.arange(len(first))):
        row, leader = int(first[place]), int(first[found.leader[place]])
        if are_rows_of_one(chunks[row], chunks[leader], tables):
            similar.setdefault(chunks[row].document, set()).update((row, leader))
    return [
        Finding(
            "similar rows",
            tuple(sorted(rows)),
            (),
            len(rows),
            f"{len(rows):,} rows of {name} have a cosine above {NEAR_DUPLICATE:.2f} with another",
        )
        for name, rows in sorted(similar.items(), key=lambda item: -len(item[1]))
    ]


def overlap(a: Chunk, b: Chunk) -> int:
    """Characters of a document that two chunks share."""
    return max(min(a.end, b.end) - max(a.start, b.start), 0) if a.document == b.document else 0


def near_empty(chunks: Sequence[Chunk], tables: Collection[str]) -> list[Finding]:
    """Return the chunks with few letters, the emptiest first, but for the rows of tables."""
    findings = []
    for row, chunk in enumerate(chunks):
        if chunk.document in tables:
            continue
        n_letters, n_signs = count_letters(chunk.text)
        if n_letters < MIN_LETTERS:
            reason = f"{n_letters} letters and digits, fewer than {MIN_LETTERS}"
        elif n_letters < MIN_LETTER_SHARE * n_signs:
            reason = f"{n_letters / n_signs:.0%} letters and digits, less than {MIN_LETTER_SHARE:.0%}"
        else:
            continue
        findings.append(Finding("near empty", (row,), (row,), n_letters, reason))
    return sorted(findings, key=lambda finding: finding.magnitude)


def oversized(chunks: Sequence[Chunk], max_tokens: int) -> list[Finding]:
    """Return the chunks longer than the token limit, the longest first."""
    findings = [
        Finding(
            "oversized",
            (row,),
            (),
            chunk.n_tokens,
            f"{chunk.n_tokens:,} tokens: the last {chunk.n_tokens - max_tokens:,} are beyond {max_tokens:,}",
        )
        for row, chunk in enumerate(chunks)
        if chunk.n_tokens > max_tokens
    ]
    return sorted(findings, key=lambda finding: -finding.magnitude)


def hubs(occurrence: Array, first: Array) -> Iterator[Finding]:
    """Yield the chunks near to very many others; ``occurrence`` and chunk rows ``first`` are ``(n,)``."""
    mean = occurrence.mean()
    limit = max(mean + HUB_DEVIATIONS * occurrence.std(), HUB_FACTOR * mean)
    for place in np.argsort(-occurrence, kind="stable"):
        n_lists = occurrence[place]
        if n_lists <= limit or mean == 0:
            return
        row = int(first[place])
        reason = (
            f"among the {NEIGHBORS} nearest of {n_lists:.0f} other chunks, {n_lists / mean:.1f} times the "
            f"mean of {mean:.1f}"
        )
        yield Finding("hub", (row,), (row,), float(n_lists), reason)


def question_hubs(occurrence: Array, first: Array, n_questions: int) -> Iterator[Finding]:
    """Yield the chunks that at least half of the questions find, far more than by chance."""
    k = min(NEIGHBORS, len(first))
    by_chance = k / len(first)  # expected share of the questions that find a chunk
    limit = max(HUB_QUESTIONS, HUB_SHARE * n_questions, HUB_FACTOR * by_chance * n_questions)
    for place in np.argsort(-occurrence, kind="stable"):
        n_lists = occurrence[place]
        if n_lists < limit:
            return
        row = int(first[place])
        reason = f"among the {k} nearest of {n_lists:.0f} of the {n_questions} questions"
        yield Finding("hub", (row,), (row,), float(n_lists), reason)


def check_vectors(chunks: Sequence[Chunk], vectors: Array, questions: Array | None) -> None:
    """Raise `InputError` for vectors that do not fit the chunks or the questions."""
    if vectors.ndim != 2 or len(vectors) != len(chunks):
        raise InputError(
            f"{len(chunks)} chunks and vectors of shape {vectors.shape}: give one vector a chunk, "
            "(n_chunks, d_model)"
        )
    if questions is not None and len(questions) and questions.shape[1:] != vectors.shape[1:]:
        raise InputError(
            f"questions of shape {questions.shape} and chunks of {vectors.shape}: embed both with one model"
        )
    if not all(np.isfinite(array).all() for array in (vectors, questions) if array is not None):
        raise InputError("a vector is not finite: it holds NaN or infinity; embed the chunks again")


@dataclass(frozen=True)
class RankingChange:
    """How one question's ranking changes: rows of chunks, best first, before and after."""

    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def lost(self) -> tuple[int, ...]:
        """Hits of before that are no longer there."""
        return tuple(row for row in self.before if row not in self.after)

    @property
    def gained(self) -> tuple[int, ...]:
        """Hits that were not there before."""
        return tuple(row for row in self.after if row not in self.before)


def preview_removal(vectors: Array, removed: Sequence[int], questions: Array, k: int) -> list[RankingChange]:
    """Rank the first ``k`` chunks for each question with and without some of the chunks.

    ``vectors`` are ``(n_chunks, d_model)``, ``questions`` ``(n_questions, d_model)``, ``removed`` rows of
    ``vectors``.
    """
    kept = np.setdiff1d(np.arange(len(vectors)), np.array(removed, np.int64))
    unit, asked = l2_normalize(vectors), l2_normalize(questions)
    changes = []
    for question in asked:
        scores = unit @ question  # (n_chunks,)
        after = kept[np.argsort(-scores[kept], kind="stable")[:k]]
        before = np.argsort(-scores, kind="stable")[:k]
        changes.append(RankingChange(tuple(before.tolist()), tuple(after.tolist())))
    return changes
