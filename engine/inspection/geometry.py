"""How vectors lie, and what moving, cutting or rounding them does to a search.

Every change is fitted on the chunks' vectors alone, and made to chunks and questions alike.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from engine.errors import InputError
from engine.evaluation.metrics import ndcg, recall, reciprocal_rank
from engine.inspection.quantization import Int8, binary_codes, signs
from engine.inspection.transforms import (
    Transform,
    all_but_the_top,
    centring,
    ledoit_wolf,
    principal_axes,
    principal_components,
    whitening,
)
from engine.layers.norm import l2_normalize
from engine.layers.tracing import Array
from engine.weights.fetch import Progress

Map = Callable[[Array], Array]

DIMENSIONS = (256, 128, 64, 32)
REMOVED = (1, 3, 10)  # principal components; Mu and Viswanath take about d_model / 100
TOP = 10  # hits that are compared with those of plain cosine
FLOAT32 = 4  # bytes


@dataclass(frozen=True)
class Space:
    """How vectors of length 1 are searched: the score is the inner product of what they are mapped to.

    Attributes
    ----------
    name
        What is done to the vectors.
    kind
        Spaces of one kind differ in how much of it is done.
    bytes_per_vector
        What a chunk takes.
    chunk_map, question_map
        ``(n, d_model) -> (n, d)``.
    """

    name: str
    kind: str
    bytes_per_vector: int
    chunk_map: Map
    question_map: Map


@dataclass(frozen=True)
class GeometryRow:
    """What became of a search in one space.

    Attributes
    ----------
    name, kind, bytes_per_vector
        As of the `Space`.
    mean_cosine
        The anisotropy of the chunks.
    overlap
        Share of the first `TOP` hits that is among those of plain cosine too, ``(n_questions,)``.
    reciprocal_ranks, recalls, ndcgs
        Reciprocal rank, recall in the first 5 and nDCG in the first 10, ``(n_questions,)`` each; None where
        nothing says what is relevant.
    """

    name: str
    kind: str
    bytes_per_vector: int
    mean_cosine: float
    overlap: Array
    reciprocal_ranks: Array | None = None
    recalls: Array | None = None
    ndcgs: Array | None = None

    @property
    def mrr(self) -> float | None:
        """Mean reciprocal rank."""
        return None if self.reciprocal_ranks is None else float(self.reciprocal_ranks.mean())

    @property
    def recall_at_5(self) -> float | None:
        """Mean recall in the first 5."""
        return None if self.recalls is None else float(self.recalls.mean())

    @property
    def ndcg_at_10(self) -> float | None:
        """Mean nDCG in the first 10."""
        return None if self.ndcgs is None else float(self.ndcgs.mean())


def norms(vectors: Array) -> Array:
    """Lengths of vectors, ``(n,)``."""
    return np.linalg.norm(vectors, axis=1)


def anisotropy(vectors: Array) -> float:
    """Mean cosine of two different vectors (Ethayarajh 2019), here of all pairs; 0 for a single vector.

    It is 0 where vectors lie in all directions alike, and the nearer to 1, the narrower their cone. Pairs
    need not be drawn at random: ``|sum of u|^2`` is the sum of the cosines of them all.
    """
    unit = l2_normalize(vectors.astype(np.float64))
    pairs = np.square(unit.sum(axis=0)).sum() - np.square(unit).sum()
    return float(pairs / max(len(unit) * (len(unit) - 1), 1))


def spaces(unit: Array) -> list[Space]:
    """Return the ways to search chunks ``(n_chunks, d_model)`` of length 1; plain cosine comes first."""
    d_model = unit.shape[1]
    corpus = principal_axes(unit)
    whole = FLOAT32 * d_model
    sizes = [size for size in DIMENSIONS if size < d_model]
    return [
        Space("cosine", "cosine", whole, unchanged, unchanged),
        moved("centred", "centred", centring(corpus)),
        *(
            moved(f"centred, top {n} removed", "centred", all_but_the_top(corpus, n))
            for n in REMOVED
            if n < d_model
        ),
        moved("whitened", "whitened", whitening(corpus)),
        moved("whitened, shrunk covariance", "whitened", whitening(corpus, ledoit_wolf(unit))),
        *(cut(size) for size in sizes),
        *(
            moved(f"first {n} principal components", "principal components", principal_components(corpus, n))
            for n in sizes
        ),
        *quantized(unit),
    ]


def unchanged(vectors: Array) -> Array:
    """Return the vectors."""
    return vectors


def moved(name: str, kind: str, transform: Transform) -> Space:
    """Cosine after a transform; what it leaves of a vector takes as many float32 numbers, zeros too."""

    def both(vectors: Array) -> Array:
        return l2_normalize(transform(vectors))

    return Space(name, kind, FLOAT32 * transform.matrix.shape[1], both, both)


def cut(n_kept: int) -> Space:
    """Cosine of the first dimensions, as they are."""

    def both(vectors: Array) -> Array:
        return l2_normalize(vectors[:, :n_kept])

    return Space(f"first {n_kept} dimensions", "first dimensions", FLOAT32 * n_kept, both, both)


def quantized(unit: Array) -> list[Space]:
    """Search by int8 and binary codes, with questions rounded too, and with questions as they are."""
    d_model = unit.shape[1]
    int8 = Int8.of(unit)
    n_bytes = -(-d_model // 8)

    def as_codes(vectors: Array) -> Array:
        return int8.codes(vectors).astype(np.float32)  # their inner products are whole numbers, exact

    def as_values(vectors: Array) -> Array:
        return int8.values(int8.codes(vectors))

    def as_signs(vectors: Array) -> Array:
        return signs(binary_codes(vectors), d_model)

    return [
        Space("int8, question as it is", "int8", d_model, as_values, unchanged),
        Space("int8, both", "int8", d_model, as_codes, as_codes),
        Space("binary, question as it is", "binary", n_bytes, as_signs, unchanged),
        Space("binary, both (Hamming)", "binary", n_bytes, as_signs, as_signs),
    ]


def geometry_rows(
    chunk_vectors: Array,
    question_vectors: Array,
    relevant: Array | None = None,
    on_progress: Progress | None = None,
) -> list[GeometryRow]:
    """Search the same chunks in every space: plain cosine first, at last without normalisation.

    Parameters
    ----------
    chunk_vectors, question_vectors
        As pooled, before normalisation: ``(n_chunks, d_model)`` and ``(n_questions, d_model)``.
    relevant
        Whether a chunk answers a question, bool ``(n_questions, n_chunks)``, where that is known.
    on_progress
        Called with spaces done and spaces in all.

    Raises
    ------
    InputError
        There are no chunks or no questions.
    """
    if not len(chunk_vectors) or not len(question_vectors):
        counts = f"{len(chunk_vectors)} chunks and {len(question_vectors)} questions"
        raise InputError(f"{counts} cannot be compared: give at least one of each")
    unit, asked = l2_normalize(chunk_vectors), l2_normalize(question_vectors)
    cosine_hits = first_hits(asked @ unit.T)
    whole = FLOAT32 * unit.shape[1]
    raw = Space("not normalised (inner product)", "not normalised", whole, unchanged, unchanged)
    searches = [(space, unit, asked) for space in spaces(unit)] + [(raw, chunk_vectors, question_vectors)]
    rows = []
    for space, chunks, questions in searches:
        mapped = space.chunk_map(chunks)
        scores = space.question_map(questions) @ mapped.T  # (n_questions, n_chunks)
        rows.append(row_of(space, mapped, scores, cosine_hits, relevant))
        if on_progress is not None:
            on_progress(len(rows), len(searches))
    return rows


def row_of(
    space: Space, mapped: Array, scores: Array, cosine_hits: Array, relevant: Array | None
) -> GeometryRow:
    """Judge the scores ``(n_questions, n_chunks)`` of a space."""
    hits = first_hits(scores)  # (n_questions, top)
    overlap = (hits[:, :, None] == cosine_hits[:, None, :]).any(axis=2).mean(axis=1)
    about = (space.name, space.kind, space.bytes_per_vector, anisotropy(mapped), overlap)
    if relevant is None:
        return GeometryRow(*about)
    judged = reciprocal_rank(scores, relevant), recall(scores, relevant, 5), ndcg(scores, relevant, 10)
    return GeometryRow(*about, *judged)


def first_hits(scores: Array) -> Array:
    """Return the `TOP` chunks of each question; of equal scores the first comes first."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :TOP]
