"""All chunks of a corpus as points in a plane, in groups, and by how near they are to a question."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from engine.errors import InputError
from engine.inspection.umap import umap
from engine.layers.norm import l2_normalize
from engine.layers.tracing import Array
from engine.weights.fetch import Progress

MIN_CHUNKS = 3
MAX_CLUSTERS = 12
WORD = re.compile(r"[^\W\d_]{3,}")


@dataclass(frozen=True)
class Plane:
    """Vectors as points in a plane.

    Attributes
    ----------
    points
        ``(n, 2)``.
    method
        How they were laid out.
    explained
        The share of the vectors' variance that each axis holds, ``(2,)``; None for UMAP, whose axes
        mean nothing.
    mean, axes
        The middle of the vectors ``(d_model,)`` and the two directions ``(2, d_model)``; None for UMAP.
    """

    points: Array
    method: Literal["PCA", "UMAP"]
    explained: Array | None = None
    mean: Array | None = None
    axes: Array | None = None

    def place(self, vector: Array) -> Array | None:
        """Return where a vector ``(d_model,)`` that is not of the corpus lies; UMAP has no such place."""
        if self.mean is None or self.axes is None:
            return None
        return (vector - self.mean) @ self.axes.T


def pca_plane(vectors: Array) -> Plane:
    """Lay vectors out along the two directions in which they vary most (Pearson 1901).

    Signs are those of scikit-learn: the largest entry of each direction is positive.

    Parameters
    ----------
    vectors
        ``(n, d_model)``, 3 or more.

    Raises
    ------
    InputError
        Fewer than 3 vectors, fewer than 2 dimensions, or a vector that is not finite.
    """
    check_vectors(vectors)
    mean = vectors.mean(axis=0, dtype=np.float64)
    centred = vectors - mean
    # The covariance is (d_model, d_model) however many vectors there are.
    _, variances, axes = np.linalg.svd(centred.T @ centred, hermitian=True)
    axes = axes[:2] * np.sign(axes[[0, 1], np.abs(axes[:2]).argmax(axis=1)])[:, None]
    total = variances.sum()
    explained = variances[:2] / total if total > 1e-12 * len(vectors) else np.zeros(2)
    return Plane(centred @ axes.T, "PCA", explained, mean, axes)


def umap_plane(vectors: Array, seed: int = 0, on_progress: Progress | None = None) -> Plane:
    """Lay vectors out so that neighbours stay together, beginning from their PCA; see `umap`."""
    start = pca_plane(vectors).points
    return Plane(umap(l2_normalize(vectors), start, seed=seed, on_progress=on_progress), "UMAP")


def default_clusters(n_chunks: int) -> int:
    """Return how many groups to look for: ``sqrt(n / 2)`` (Mardia 1979), from 2 to `MAX_CLUSTERS`."""
    return min(max(round(math.sqrt(n_chunks / 2)), 2), MAX_CLUSTERS)


def cluster(vectors: Array, n_clusters: int, seed: int = 0) -> Array:
    """Put vectors into groups by spherical k-means, the best of 3 starts (Dhillon & Modha 2001).

    Parameters
    ----------
    vectors
        ``(n, d_model)``.
    n_clusters
        Groups to look for, at most as many as vectors.
    seed
        The same seed gives the same groups.

    Returns
    -------
    Array
        Each vector's group ``(n,)``, counted from 0, the largest first; fewer groups than asked for
        where there are fewer different vectors.

    Raises
    ------
    InputError
        No group, more groups than vectors, or vectors unfit for `pca_plane`.
    """
    import faiss

    check_vectors(vectors)
    if not 1 <= n_clusters <= len(vectors):
        raise InputError(f"{n_clusters} clusters of {len(vectors)} chunks: ask for 1 to {len(vectors)}")
    unit = np.ascontiguousarray(l2_normalize(vectors), np.float32)
    means = faiss.Kmeans(
        unit.shape[1], n_clusters, spherical=True, nredo=3, seed=seed, min_points_per_centroid=1
    )
    means.train(unit)
    _, nearest = means.index.search(unit, 1)
    names, members = np.unique(nearest[:, 0], return_inverse=True)
    sizes = np.bincount(members, minlength=len(names))
    return np.argsort(np.argsort(-sizes, kind="stable"))[members]


def cluster_words(texts: Sequence[str], groups: Array, n_words: int = 3) -> list[list[str]]:
    """Return the words that set each group apart, best first: class-based TF-IDF (Grootendorst 2022).

    A word of a group counts for its share of the group's words, times the logarithm of how few groups
    have it. So a word that all groups have is never chosen; where there is no other, the list is short.
    """
    n_groups = int(groups.max()) + 1
    counts = [Counter[str]() for _ in range(n_groups)]
    for text, group in zip(texts, groups, strict=True):
        counts[group].update(WORD.findall(text.lower()))
    spread = Counter(word for count in counts for word in count)
    chosen = []
    for count in counts:
        total = max(count.total(), 1)
        scores = {word: n / total * math.log(n_groups / spread[word]) for word, n in count.items()}
        best = sorted((word for word in scores if scores[word] > 0), key=lambda word: (-scores[word], word))
        chosen.append(best[:n_words])
    return chosen


def similarities(vectors: Array, question: Array) -> Array:
    """Cosine of each vector ``(n, d_model)`` and the question's ``(d_model,)``: ``(n,)``."""
    return np.clip(l2_normalize(vectors) @ l2_normalize(question), -1, 1)


def check_vectors(vectors: Array) -> None:
    """Raise `InputError` for vectors that no map can be made of."""
    if vectors.ndim != 2 or len(vectors) < MIN_CHUNKS or vectors.shape[1] < 2:
        raise InputError(
            f"a map of vectors of shape {vectors.shape}: give {MIN_CHUNKS} chunks or more, "
            "each a vector of 2 numbers or more"
        )
    if not np.isfinite(vectors).all():
        raise InputError("a vector is not finite: it holds NaN or infinity; embed the chunks again")
