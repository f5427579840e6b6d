"""Projections of chunk vectors to two dimensions, clusters, and cosines with a question."""

import math
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Literal

import numpy as np
import regex

from ...errors import InputError
from ...layers.norm import l2_normalize
from ...layers.tracing import Array

MIN_CHUNKS = 3
MAX_CLUSTERS = 12
UMAP_NEIGHBORS = 15  # the vector itself among them
ONE_UMAP = Lock()  # numba's threads must not be started by two threads at once
WORD = regex.compile(r"[^\W\d_]{3,}")


@dataclass(frozen=True)
class Projection:
    """Vectors projected to two dimensions."""

    points: Array  # ``(n, 2)``
    method: Literal["PCA", "UMAP"]  # the projection
    # the share of the vectors' variance that each axis explains, ``(2,)``; None for UMAP, whose axes have no
    # meaning
    explained: Array | None = None
    # the mean vector ``(d_model,)`` and the two principal axes ``(2, d_model)``; None for UMAP
    mean: Array | None = None
    axes: Array | None = None

    def project(self, vector: Array) -> Array | None:
        """Project another vector ``(d_model,)`` to a point ``(2,)``; None for UMAP, which cannot."""
        if self.mean is None or self.axes is None:
            return None
        return (vector - self.mean) @ self.axes.T


def pca_projection(vectors: Array) -> Projection:
    """Project vectors ``(n, d_model)`` on two principal components (Pearson 1901), signs as scikit-learn."""
    check_vectors(vectors)
    mean = vectors.mean(axis=0, dtype=np.float64)
    centred = vectors - mean
    # The covariance is (d_model, d_model) however many vectors there are.
    _, variances, axes = np.linalg.svd(centred.T @ centred, hermitian=True)
    axes = axes[:2] * np.sign(axes[[0, 1], np.abs(axes[:2]).argmax(axis=1)])[:, None]
    total = variances.sum()
    explained = variances[:2] / total if total > 1e-12 * len(vectors) else np.zeros(2)
    return Projection(centred @ axes.T, "PCA", explained, mean, axes)


def umap_projection(vectors: Array, seed: int = 0) -> Projection:
    """Project vectors so that neighbours by cosine stay together (McInnes, Healy & Melville 2018).

    This is umap-learn, initialised with PCA, with exact neighbours by FAISS. The same seed gives the same
    points on the same machine; errors are those of `pca_projection`.
    """
    flat = pca_projection(vectors)
    if not np.any(flat.explained):  # equal vectors: umap-learn would divide by their spread
        return Projection(flat.points, "UMAP")
    from umap import UMAP

    unit = np.ascontiguousarray(l2_normalize(vectors), np.float32)
    n_neighbors = min(UMAP_NEIGHBORS, len(unit) - 1)
    model = UMAP(
        n_neighbors,
        metric="cosine",
        init="pca",
        random_state=seed,
        n_jobs=1,
        precomputed_knn=nearest_vectors(unit, n_neighbors),
    )
    with ONE_UMAP, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that other vectors cannot be projected with given neighbours
        return Projection(model.fit_transform(unit), "UMAP")


def nearest_vectors(unit: Array, n_neighbors: int) -> tuple[Array, Array]:
    """Return rows and cosine distances of each vector's neighbours, itself first: ``(n, n_neighbors)``."""
    import faiss

    index = faiss.IndexFlatIP(unit.shape[1])
    index.add(unit)
    cosines, rows = index.search(unit, n_neighbors)
    # Equal vectors come in arbitrary order: exchange the vector itself with the first.
    self_row = np.arange(len(unit))[:, None]
    place = np.where((rows == self_row).any(axis=1), (rows == self_row).argmax(axis=1), n_neighbors - 1)
    np.put_along_axis(rows, place[:, None], rows[:, :1], axis=1)
    np.put_along_axis(cosines, place[:, None], cosines[:, :1], axis=1)
    rows[:, 0], cosines[:, 0] = self_row[:, 0], 1
    return rows, np.maximum(1 - cosines, 0)


def default_clusters(n_chunks: int) -> int:
    """Return the default number of clusters: ``sqrt(n / 2)`` (Mardia 1979), from 2 to `MAX_CLUSTERS`."""
    return min(max(round(math.sqrt(n_chunks / 2)), 2), MAX_CLUSTERS)


def cluster(vectors: Array, n_clusters: int, seed: int = 0) -> Array:
    """Cluster vectors by spherical k-means, the best of 3 starts (Dhillon & Modha 2001).

    ``(n, d_model)`` to the cluster of each vector ``(n,)``, counted from 0, the largest first; fewer clusters
    than requested where there are fewer distinct vectors. The same seed gives the same clusters.
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
    """Return the distinctive words of each group, best first: class-based TF-IDF (Grootendorst 2022).

    The score of a word is its share of the group's words times ``log(n_groups / groups with the word)``. So a
    word of all groups is never chosen, and lists can be shorter than ``n_words``.
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


def question_cosines(vectors: Array, question: Array) -> Array:
    """Cosine of each vector ``(n, d_model)`` and the question's ``(d_model,)``: ``(n,)``."""
    return np.clip(l2_normalize(vectors) @ l2_normalize(question), -1, 1)


def check_vectors(vectors: Array) -> None:
    """Raise `InputError` for vectors that cannot be projected."""
    if vectors.ndim != 2 or len(vectors) < MIN_CHUNKS or vectors.shape[1] < 2:
        raise InputError(
            f"a map of vectors of shape {vectors.shape}: give {MIN_CHUNKS} chunks or more, "
            "each a vector of 2 numbers or more"
        )
    if not np.isfinite(vectors).all():
        raise InputError("a vector is not finite: it holds NaN or infinity; embed the chunks again")
