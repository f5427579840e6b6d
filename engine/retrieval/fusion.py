"""Fusion of several rankings: by ranks, or by scores on one scale."""

from collections.abc import Sequence

import numpy as np

from ..layers.tracing import Array
from .ranking import blocks, min_ranks

# From the pilot study of Cormack, Clarke and Büttcher, where its value hardly matters.
RRF_CONSTANT = 60
# The best nDCG@10 on every other question of Cranfield (0.449 there); on the other half it has 0.421, where
# reciprocal rank fusion has 0.409.
DENSE_WEIGHT = 0.7


def reciprocal_rank_fusion(scores: Sequence[Array], constant: float = RRF_CONSTANT) -> Array:
    """Add 1 / (constant + rank) over several rankings (Cormack, Clarke and Büttcher 2009).

    Ranks are over all chunks, and chunks with equal scores share the best of their ranks: those that BM25
    does not find, all with 0, are not ordered by their place in the corpus. A chunk with ``-inf`` has no rank
    and adds nothing to the sum.

    One or more matrices ``(n_questions, n_chunks)`` to float32 of that shape. The larger the constant, the
    smaller the difference between places.
    """
    fused = np.empty(scores[0].shape, np.float32)
    for rows in blocks(len(fused)):
        parts = [np.where(np.isneginf(one[rows]), 0, 1 / (constant + min_ranks(one[rows]))) for one in scores]
        fused[rows] = np.sum(parts, axis=0)
    return fused


def weighted_fusion(dense: Array, by_words: Array, weight: float = DENSE_WEIGHT) -> Array:
    """Add scores scaled to 0 … 1 for each question: the dense ones have the weight, those by words the rest.

    Two matrices ``(n_questions, n_chunks)`` to float32 of that shape.
    """
    fused = np.empty(dense.shape, np.float32)
    for rows in blocks(len(fused)):
        fused[rows] = weight * min_max(dense[rows]) + (1 - weight) * min_max(by_words[rows])
    return fused


def min_max(scores: Array) -> Array:
    """Scale each question's scores to 0 for the lowest and 1 for the best: ``(n_questions, n_chunks)``.

    ``-inf`` (not found) becomes 0 like the lowest; if all are equal, all are 0.
    """
    scores = scores.astype(np.float64)  # differences of any float32 are finite
    found = np.isfinite(scores)
    low = scores.min(axis=1, keepdims=True, where=found, initial=np.inf)  # (n_questions, 1)
    high = scores.max(axis=1, keepdims=True, where=found, initial=-np.inf)
    spread = np.where(high > low, high - low, 1)
    return np.where(found & (high > low), (scores - low) / spread, 0)
