"""Geometry of vectors, and the effect of transforming, truncating or quantising them on a search.

Every map is fitted on the chunks' vectors alone, and applied to chunks and questions.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from engine.errors import InputError
from engine.evaluation.metrics import ndcg, recall, reciprocal_rank
from engine.inspection.vectors.quantization import Int8Quantizer, binary_codes, signs
from engine.inspection.vectors.transforms import (
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

VectorMap = Callable[[Array], Array]

DIMENSIONS = (256, 128, 64, 32)
REMOVED = (1, 3, 10)  # principal components; Mu and Viswanath take about d_model / 100
TOP = 10  # hits compared with those of plain cosine
FLOAT32 = 4  # bytes


@dataclass(frozen=True)
class SearchSpace:
    """A way to search unit vectors: the score is the inner product of the mapped vectors.

    Attributes
    ----------
    name
        The map.
    kind
        Spaces of one kind differ only in a parameter.
    bytes_per_vector
        Memory of a chunk's vector.
    chunk_map, question_map
        ``(n, d_model) -> (n, d)``.
    """

    name: str
    kind: str
    bytes_per_vector: int
    chunk_map: VectorMap
    question_map: VectorMap


@dataclass(frozen=True)
class GeometryRow:
    """Search quality in one space.

    Attributes
    ----------
    name, kind, bytes_per_vector
        Those of the `SearchSpace`.
    mean_cosine
        The anisotropy of the chunks.
    overlap
        Share of the first `TOP` hits that plain cosine has too, ``(n_questions,)``.
    reciprocal_ranks, recalls, ndcgs
        Reciprocal rank, recall@5 and nDCG@10, ``(n_questions,)`` each; None without relevance labels.
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


def anisotropy(vectors: Array) -> float:
    """Mean cosine of all pairs of different vectors (Ethayarajh 2019); 0 for a single vector.

    0 for evenly spread directions, near 1 for a narrow cone. ``|sum of u|^2`` is the sum of the cosines of
    all pairs, so none need be sampled.
    """
    unit = l2_normalize(vectors.astype(np.float64))
    pairs = np.square(unit.sum(axis=0)).sum() - np.square(unit).sum()
    return float(pairs / max(len(unit) * (len(unit) - 1), 1))


def spaces(unit: Array) -> list[SearchSpace]:
    """Return the spaces fitted on unit vectors ``(n_chunks, d_model)``; plain cosine comes first."""
    d_model = unit.shape[1]
    corpus = principal_axes(unit)
    whole = FLOAT32 * d_model
    sizes = [size for size in DIMENSIONS if size < d_model]
    return [
        SearchSpace("cosine", "cosine", whole, unchanged, unchanged),
        transformed_space("centred", "centred", centring(corpus)),
        *(
            transformed_space(f"centred, top {n} removed", "centred", all_but_the_top(corpus, n))
            for n in REMOVED
            if n < d_model
        ),
        transformed_space("whitened", "whitened", whitening(corpus)),
        transformed_space("whitened, shrunk covariance", "whitened", whitening(corpus, ledoit_wolf(unit))),
        *(truncated_space(size) for size in sizes),
        *(
            transformed_space(
                f"first {n} principal components", "principal components", principal_components(corpus, n)
            )
            for n in sizes
        ),
        *quantized_spaces(unit),
    ]


def unchanged(vectors: Array) -> Array:
    """Identity map."""
    return vectors


def transformed_space(name: str, kind: str, transform: Transform) -> SearchSpace:
    """Cosine after a transform, kept in float32."""

    def both(vectors: Array) -> Array:
        return l2_normalize(transform(vectors))

    return SearchSpace(name, kind, FLOAT32 * transform.matrix.shape[1], both, both)


def truncated_space(n_kept: int) -> SearchSpace:
    """Cosine of the first dimensions."""

    def both(vectors: Array) -> Array:
        return l2_normalize(vectors[:, :n_kept])

    return SearchSpace(f"first {n_kept} dimensions", "first dimensions", FLOAT32 * n_kept, both, both)


def quantized_spaces(unit: Array) -> list[SearchSpace]:
    """Search by int8 and binary codes, with questions quantised too, and with questions unchanged."""
    d_model = unit.shape[1]
    int8 = Int8Quantizer.of(unit)
    n_bytes = -(-d_model // 8)

    def as_codes(vectors: Array) -> Array:
        return int8.codes(vectors).astype(np.float32)  # inner products are exact integers

    def as_values(vectors: Array) -> Array:
        return int8.values(int8.codes(vectors))

    def as_signs(vectors: Array) -> Array:
        return signs(binary_codes(vectors), d_model)

    return [
        SearchSpace("int8, question as it is", "int8", d_model, as_values, unchanged),
        SearchSpace("int8, both", "int8", d_model, as_codes, as_codes),
        SearchSpace("binary, question as it is", "binary", n_bytes, as_signs, unchanged),
        SearchSpace("binary, both (Hamming)", "binary", n_bytes, as_signs, as_signs),
    ]


def geometry_rows(
    chunk_vectors: Array,
    question_vectors: Array,
    relevant: Array | None = None,
    on_progress: Progress | None = None,
) -> list[GeometryRow]:
    """Search the same chunks in every space: plain cosine first, without normalisation last.

    Vectors are pooled, not normalised: ``(n_chunks, d_model)`` and ``(n_questions, d_model)``. ``relevant``
    tells whether a chunk answers a question, bool ``(n_questions, n_chunks)``; None where unknown.
    ``on_progress`` is called with spaces done and all spaces.

    Raises
    ------
    InputError
        There are no chunks or no questions.
    """
    if not len(chunk_vectors) or not len(question_vectors):
        counts = f"{len(chunk_vectors)} chunks and {len(question_vectors)} questions"
        raise InputError(f"{counts} cannot be compared: give at least one of each")
    unit, asked = l2_normalize(chunk_vectors), l2_normalize(question_vectors)
    cosine_hits = top_hits(asked @ unit.T)
    whole = FLOAT32 * unit.shape[1]
    raw = SearchSpace("not normalised (inner product)", "not normalised", whole, unchanged, unchanged)
    searches = [(space, unit, asked) for space in spaces(unit)] + [(raw, chunk_vectors, question_vectors)]
    rows = []
    for space, chunks, questions in searches:
        mapped = space.chunk_map(chunks)
        scores = space.question_map(questions) @ mapped.T  # (n_questions, n_chunks)
        rows.append(search_quality(space, mapped, scores, cosine_hits, relevant))
        if on_progress is not None:
            on_progress(len(rows), len(searches))
    return rows


def search_quality(
    space: SearchSpace, mapped: Array, scores: Array, cosine_hits: Array, relevant: Array | None
) -> GeometryRow:
    """Evaluate the scores ``(n_questions, n_chunks)`` of a space."""
    hits = top_hits(scores)  # (n_questions, top)
    overlap = (hits[:, :, None] == cosine_hits[:, None, :]).any(axis=2).mean(axis=1)
    about = (space.name, space.kind, space.bytes_per_vector, anisotropy(mapped), overlap)
    if relevant is None:
        return GeometryRow(*about)
    judged = reciprocal_rank(scores, relevant), recall(scores, relevant, 5), ndcg(scores, relevant, 10)
    return GeometryRow(*about, *judged)


def top_hits(scores: Array) -> Array:
    """Return the `TOP` chunks of each question; of equal scores the first comes first."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :TOP]
