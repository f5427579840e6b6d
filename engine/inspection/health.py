"""What ails a corpus: chunks that repeat, crowd, say little or do not fit."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from engine.documents.document import Chunk
from engine.errors import InputError
from engine.inspection.health_neighbors import Neighborhood, neighborhood, question_occurrence, skewness
from engine.inspection.health_texts import boilerplate, exact_leaders, letters
from engine.layers.norm import l2_normalize
from engine.layers.tracing import Array
from engine.weights.fetch import Progress

Kind = Literal["exact duplicate", "near duplicate", "hub", "near empty", "oversized", "boilerplate"]
KINDS: tuple[Kind, ...] = (
    "exact duplicate",
    "near duplicate",
    "boilerplate",
    "near empty",
    "oversized",
    "hub",
)

NEAR = 0.90  # cosine above which two chunks nearly repeat each other
NEIGHBORS = 10  # length of the lists that hubs are counted over, as in Radovanović et al.
HUB_DEVIATIONS, HUB_FACTOR = 2, 3  # a hub lies this far beyond the mean, and is this many times the mean
HUB_QUESTIONS, HUB_SHARE = 5, 0.5  # or is found by this many questions, and by this share of them
MIN_LETTERS, MIN_LETTER_SHARE = 20, 0.4


@dataclass(frozen=True)
class Finding:
    """Something wrong with one or more chunks.

    Attributes
    ----------
    kind
        What.
    rows
        The chunks it is about; of duplicates, the one that is repeated comes first.
    removable
        Those of them that a corpus can do without; none where the text would be lost.
    measure
        How much: copies, cosine, lists, letters, tokens or documents, by ``kind``.
    reason
        The same in words.
    """

    kind: Kind
    rows: tuple[int, ...]
    removable: tuple[int, ...]
    measure: float
    reason: str


@dataclass(frozen=True)
class HealthReport:
    """What was found.

    Attributes
    ----------
    findings
        Everything found, kind by kind, the worst first.
    n_chunks
        How many chunks were looked at.
    occurrence
        How often each is among the nearest of another chunk (N_k), ``(n_chunks,)``.
    skewness
        How lopsided that is: 0 where every chunk is found as often as any other.
    """

    findings: tuple[Finding, ...]
    n_chunks: int
    occurrence: Array
    skewness: float

    def of(self, kind: Kind) -> tuple[Finding, ...]:
        """Return the findings of one kind."""
        return tuple(finding for finding in self.findings if finding.kind == kind)


def health_report(
    chunks: Sequence[Chunk],
    vectors: Array,
    max_tokens: int,
    questions: Array | None = None,
    k: int = NEIGHBORS,
    on_progress: Progress | None = None,
) -> HealthReport:
    """Look for chunks that a corpus would be better without, or that should be cut otherwise.

    Hubs are those of Radovanović, Nanopoulos & Ivanović (2010): chunks among the ``k`` nearest of very
    many others, which therefore come up whatever is asked.

    Parameters
    ----------
    chunks
        The chunks.
    vectors
        Their vectors, ``(n_chunks, d_model)``.
    max_tokens
        What the encoder reads of a chunk.
    questions
        Vectors of questions, ``(n_questions, d_model)``, over which hubs are counted too.
    k
        Length of the lists that hubs are counted over.
    on_progress
        Called with chunks compared and chunks in all.

    Raises
    ------
    InputError
        Not one finite vector a chunk, questions of another width, or ``k`` below 1.
    """
    check_vectors(chunks, vectors, questions, k)
    if not chunks:
        return HealthReport((), 0, np.zeros(0), 0.0)
    unit = l2_normalize(vectors.astype(np.float32))
    same = exact_leaders(chunks)
    first = np.flatnonzero(same == np.arange(len(chunks)))  # one of every text
    found = neighborhood(unit[first], NEAR, k, on_progress)
    occurrence = np.zeros(len(chunks))
    occurrence[first] = found.occurrence
    findings = [
        *exact_duplicates(same),
        *near_duplicates(chunks, found, first),
        *boilerplate_findings(chunks),
        *near_empty(chunks),
        *oversized(chunks, max_tokens),
        *hubs(found.occurrence, first, k),
    ]
    if questions is not None and len(questions):
        by_questions = question_occurrence(unit[first], l2_normalize(questions.astype(np.float32)), k)
        findings += question_hubs(by_questions, first, k, len(questions))
    findings.sort(key=lambda finding: KINDS.index(finding.kind))
    return HealthReport(tuple(findings), len(chunks), occurrence, skewness(found.occurrence))


def exact_duplicates(leaders: Array) -> Iterator[Finding]:
    """Yield the groups of chunks with the same text, the largest first; ``leaders`` is ``(n,)``."""
    texts, counts = np.unique(leaders, return_counts=True)
    for text in texts[np.argsort(-counts, kind="stable")][: (counts > 1).sum()]:
        rows = tuple(np.flatnonzero(leaders == text).tolist())
        yield Finding(
            "exact duplicate", rows, rows[1:], len(rows), f"the same text {len(rows)} times, blanks aside"
        )


def near_duplicates(chunks: Sequence[Chunk], found: Neighborhood, first: Array) -> list[Finding]:
    """Return the chunks that nearly repeat an earlier one, the most alike first; ``first`` are their rows."""
    findings = []
    followers = np.flatnonzero(found.leader != np.arange(len(first)))
    for leader in np.unique(found.leader[followers]):
        group = followers[found.leader[followers] == leader]
        rows = tuple(first[group].tolist())
        least, most = found.likeness[group].min(), found.likeness[group].max()
        measured = f"{most:.3f}" if len(group) == 1 else f"{least:.3f} to {most:.3f}"
        reason = f"cosine {measured} with the first, above {NEAR:.2f}"
        first_chunk = chunks[first[leader]]
        if shared := max(overlap(first_chunk, chunks[row]) for row in rows):
            reason += f"; they share up to {shared:,} characters of one document"
        findings.append(Finding("near duplicate", (int(first[leader]), *rows), rows, float(most), reason))
    return sorted(findings, key=lambda finding: -finding.measure)


def overlap(a: Chunk, b: Chunk) -> int:
    """Characters of a document that two chunks share."""
    return max(min(a.end, b.end) - max(a.start, b.start), 0) if a.document == b.document else 0


def boilerplate_findings(chunks: Sequence[Chunk]) -> Iterator[Finding]:
    """Yield the lines that many documents repeat; chunks made up mostly of such lines can go."""
    for line in boilerplate(chunks):
        reason = f"in {line.n_documents} of {line.of_documents} documents: “{line.text}”"
        yield Finding("boilerplate", line.rows, line.mostly, line.n_documents, reason)


def near_empty(chunks: Sequence[Chunk]) -> list[Finding]:
    """Return the chunks that say next to nothing, the emptiest first."""
    findings = []
    for row, chunk in enumerate(chunks):
        n_letters, n_signs = letters(chunk.text)
        if n_letters < MIN_LETTERS:
            reason = f"{n_letters} letters and digits, fewer than {MIN_LETTERS}"
        elif n_letters < MIN_LETTER_SHARE * n_signs:
            reason = f"{n_letters / n_signs:.0%} letters and digits, less than {MIN_LETTER_SHARE:.0%}"
        else:
            continue
        findings.append(Finding("near empty", (row,), (row,), n_letters, reason))
    return sorted(findings, key=lambda finding: finding.measure)


def oversized(chunks: Sequence[Chunk], max_tokens: int) -> list[Finding]:
    """Return the chunks whose end the encoder never reads, the longest first."""
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
    return sorted(findings, key=lambda finding: -finding.measure)


def hubs(occurrence: Array, first: Array, k: int) -> Iterator[Finding]:
    """Yield the chunks near to very many others; ``occurrence`` and their rows ``first`` are ``(n,)``."""
    mean = occurrence.mean()
    limit = max(mean + HUB_DEVIATIONS * occurrence.std(), HUB_FACTOR * mean)
    for place in np.argsort(-occurrence, kind="stable"):
        n_lists = occurrence[place]
        if n_lists <= limit or mean == 0:
            return
        row = int(first[place])
        reason = (
            f"among the {k} nearest of {n_lists:.0f} other chunks, {n_lists / mean:.1f} times the mean "
            f"of {mean:.1f}"
        )
        yield Finding("hub", (row,), (row,), float(n_lists), reason)


def question_hubs(occurrence: Array, first: Array, k: int, n_questions: int) -> Iterator[Finding]:
    """Yield the chunks that half of the questions find, where chance would give them far fewer."""
    k = min(k, len(first))
    by_chance = k / len(first)  # share of the questions that finds a chunk
    limit = max(HUB_QUESTIONS, HUB_SHARE * n_questions, HUB_FACTOR * by_chance * n_questions)
    for place in np.argsort(-occurrence, kind="stable"):
        n_lists = occurrence[place]
        if n_lists < limit:
            return
        row = int(first[place])
        reason = f"among the {k} nearest of {n_lists:.0f} of the {n_questions} questions"
        yield Finding("hub", (row,), (row,), float(n_lists), reason)


def check_vectors(chunks: Sequence[Chunk], vectors: Array, questions: Array | None, k: int) -> None:
    """Raise `InputError` for vectors that do not go with the chunks or the questions, or no lists."""
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
    if k < 1:
        raise InputError(f"lists of {k} neighbours: ask for 1 or more")
