"""UMAP: a projection that keeps the neighbours of each vector (McInnes, Healy & Melville 2018)."""

from functools import cache
from math import log2
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from engine.layers.tracing import Array
from engine.weights.fetch import Progress

if TYPE_CHECKING:
    from scipy.sparse import coo_array

N_NEIGHBORS = 15  # the vector itself among them, as umap-learn counts
NEGATIVES = 5  # negative samples for each edge
# 1 / (1 + A d^(2B)) fits the curve 1 up to a distance of 0.1, then exp(0.1 - d). Umap-learn's defaults.
A, B = 1.576943460405378, 0.8950608781227859
LARGEST_STEP = 4.0


class Neighbors(NamedTuple):
    """The nearest of each vector, itself first: rows and cosine distances, both ``(n, n_neighbors)``."""

    rows: Array
    distances: Array


def umap(vectors: Array, start: Array, seed: int = 0, on_progress: Progress | None = None) -> Array:
    """Project vectors to two dimensions so that neighbours stay together.

    The steps and defaults are those of umap-learn 0.5.12 with ``metric="cosine", init="pca"``; only the
    random numbers differ.

    Vectors ``(n, d_model)`` of length 1, and the initial points ``start (n, 2)``, their PCA, to points
    ``(n, 2)``, without unit. The same seed gives the same points; ``on_progress`` is called with epochs done
    and epochs in all.
    """
    rng = np.random.default_rng(seed)
    n_epochs = 500 if len(vectors) <= 10_000 else 200
    points = 10 * start / max(float(np.abs(start).max()), 1e-12)
    points = points + rng.normal(scale=1e-4, size=points.shape)  # separates equal vectors
    graph = fuzzy_graph(nearest(vectors, min(N_NEIGHBORS, len(vectors))))
    share = graph.data / graph.data.max()  # of the epochs in which an edge is pulled
    pull = compiled_pull()
    for epoch in range(n_epochs):
        due = np.floor(share * (epoch + 1)) > np.floor(share * epoch)
        heads, tails = graph.row[due], graph.col[due]
        others = rng.integers(len(points), size=(len(heads), NEGATIVES))
        pull(points, heads, tails, others, 1 - epoch / n_epochs)
        if on_progress is not None:
            on_progress(epoch + 1, n_epochs)
    return points


def nearest(vectors: Array, n_neighbors: int) -> Neighbors:
    """Return the nearest vectors of each, itself first, at cosine distance ``1 - cosine``."""
    import faiss

    vectors = np.ascontiguousarray(vectors, np.float32)
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    cosines, rows = index.search(vectors, n_neighbors)
    # Equal vectors come in arbitrary order: move the vector itself to the front.
    own = np.arange(len(vectors))[:, None]
    place = np.where((rows == own).any(axis=1), (rows == own).argmax(axis=1), n_neighbors - 1)[:, None]
    np.put_along_axis(rows, place, rows[:, :1], axis=1)
    np.put_along_axis(cosines, place, cosines[:, :1], axis=1)
    rows[:, 0] = own[:, 0]
    distances = np.maximum(1 - cosines.astype(np.float64), 0)
    distances[distances < 1e-6] = 0  # rounding
    distances[:, 0] = 0
    return Neighbors(rows, distances)


def bandwidths(distances: Array) -> tuple[Array, Array]:
    """Return rho, the distance of the nearest neighbour, and sigma, the bandwidth: ``(n,)`` each.

    Sigma is such that the memberships ``exp(-max(0, d - rho) / sigma)`` of a vector's neighbours add up
    to ``log2(n_neighbors)``; it is found by bisection.
    """
    others = distances[:, 1:]  # (n, n_neighbors - 1)
    rho = np.where(others > 0, others, np.inf).min(axis=1)
    rho[np.isinf(rho)] = 0  # equal vectors all around
    beyond = np.maximum(others - rho[:, None], 0)
    low, high = np.zeros(len(rho)), np.full(len(rho), np.inf)
    sigma = np.ones(len(rho))
    for _ in range(64):
        too_many = np.exp(-beyond / sigma[:, None]).sum(axis=1) > log2(distances.shape[1])
        high, low = np.where(too_many, sigma, high), np.where(too_many, low, sigma)
        sigma = np.where(np.isinf(high), 2 * sigma, (low + high) / 2)
    floor = 1e-3 * np.where(rho > 0, distances.mean(axis=1), distances.mean())
    return rho, np.maximum(sigma, np.maximum(floor, 1e-12))


def fuzzy_graph(neighbors: Neighbors) -> "coo_array":
    """Return the fuzzy union of the memberships: ``W + W^T - W * W^T``, from 0 to 1, ``(n, n)``."""
    from scipy.sparse import csr_array

    rho, sigma = bandwidths(neighbors.distances)
    memberships = np.exp(-np.maximum(neighbors.distances - rho[:, None], 0) / sigma[:, None])
    n, n_neighbors = neighbors.rows.shape
    heads = np.repeat(np.arange(n), n_neighbors - 1)
    seen = csr_array((memberships[:, 1:].ravel(), (heads, neighbors.rows[:, 1:].ravel())), shape=(n, n))
    return (seen + seen.T - seen * seen.T).tocoo()


def pull_and_push(points: Array, heads: Array, tails: Array, others: Array, rate: float) -> None:
    """Attract head and tail of each edge and repel the head from negative samples, in order, in place.

    The gradients are those of the cross-entropy between the memberships and ``1 / (1 + A d^(2B))``.

    Parameters
    ----------
    points
        ``(n, 2)``.
    heads, tails
        The edges, ``(n_edges,)`` each.
    others
        The negative samples of each edge: ``(n_edges, n_negatives)``.
    rate
        The learning rate.
    """
    for edge in range(len(heads)):
        head, tail = heads[edge], tails[edge]
        square = np.square(points[head] - points[tail]).sum()
        if square > 0:
            slope = -2 * A * B * square ** (B - 1) / (1 + A * square**B)
            for axis in range(2):
                step = slope * (points[head, axis] - points[tail, axis])
                step = rate * min(max(step, -LARGEST_STEP), LARGEST_STEP)
                points[head, axis] += step
                points[tail, axis] -= step
        for other in others[edge]:
            square = np.square(points[head] - points[other]).sum()
            if square > 0:
                slope = 2 * B / ((0.001 + square) * (1 + A * square**B))
                for axis in range(2):
                    step = slope * (points[head, axis] - points[other, axis])
                    points[head, axis] += rate * min(max(step, -LARGEST_STEP), LARGEST_STEP)


@cache
def compiled_pull() -> Any:
    """Return `pull_and_push` as machine code, made at its first use and kept on disk."""
    import numba

    return numba.njit(cache=True)(pull_and_push)
