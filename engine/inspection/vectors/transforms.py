"""Affine maps fitted on a corpus: centring, all-but-the-top, PCA and whitening.

Each follows from the corpus' mean and principal axes, which are computed once.
"""

from dataclasses import dataclass

import numpy as np

from engine.layers.tracing import Array

# Below this share of the largest variance, the variance of float32 vectors is rounding.
ROUNDING = float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class Transform:
    """A map of vectors, ``(x - mean) @ matrix``: ``mean`` is ``(d_model,)``, ``matrix (d_model, d_new)``."""

    mean: Array
    matrix: Array

    def __call__(self, vectors: Array) -> Array:
        """``(n, d_model) -> (n, d_new)``, in the precision of the vectors."""
        return (vectors - self.mean.astype(vectors.dtype)) @ self.matrix.astype(vectors.dtype)


@dataclass(frozen=True)
class PrincipalAxes:
    """Mean and principal axes of a corpus, in float64.

    ``mean (d_model,)``; ``variances (d_model,)``, the largest first; ``axes (d_model, d_model)``, their
    directions in columns, orthonormal.
    """

    mean: Array
    variances: Array
    axes: Array


def principal_axes(vectors: Array) -> PrincipalAxes:
    """Eigenvectors of the covariance ``X^T X / n`` of ``(n, d_model)`` vectors."""
    mean = vectors.mean(axis=0, dtype=np.float64)
    centred = vectors - mean
    variances, axes = np.linalg.eigh(centred.T @ centred / len(vectors))
    return PrincipalAxes(mean, np.maximum(variances[::-1], 0), axes[:, ::-1])


def centring(corpus: PrincipalAxes) -> Transform:
    """Subtract the mean."""
    return Transform(corpus.mean, np.eye(len(corpus.mean)))


def all_but_the_top(corpus: PrincipalAxes, n_removed: int) -> Transform:
    """Subtract the mean and remove the first principal components (Mu and Viswanath 2018)."""
    top = corpus.axes[:, :n_removed]  # (d_model, n_removed)
    return Transform(corpus.mean, np.eye(len(top)) - top @ top.T)


def principal_components(corpus: PrincipalAxes, n_kept: int) -> Transform:
    """Subtract the mean and keep the first principal components (PCA)."""
    return Transform(corpus.mean, corpus.axes[:, :n_kept])


def whitening(corpus: PrincipalAxes, shrinkage: float = 0.0) -> Transform:
    """Make the corpus' covariance the identity (Su et al. 2021).

    Parameters
    ----------
    corpus
        Its mean and axes.
    shrinkage
        From 0 to 1, how far the covariance is first moved towards ``mean variance * identity`` (see
        `ledoit_wolf`). At 0, directions without variance, which exist with fewer vectors than dimensions,
        are left out: no finite factor would make them vary.
    """
    variances = (1 - shrinkage) * corpus.variances + shrinkage * corpus.variances.mean()
    varies = variances > max(ROUNDING * variances[0], ROUNDING**2)
    return Transform(corpus.mean, corpus.axes[:, varies] / np.sqrt(variances[varies]))


def ledoit_wolf(vectors: Array) -> float:
    """Return the shrinkage that brings a sample's covariance nearest to the true one (Ledoit and Wolf 2004).

    Equal to ``sklearn.covariance.ledoit_wolf_shrinkage``; 0 for vectors that do not vary.
    """
    n, d_model = vectors.shape
    centred = vectors - vectors.mean(axis=0, dtype=np.float64)
    covariance = centred.T @ centred / n
    size = np.square(covariance).sum()
    distance = size - np.trace(covariance) ** 2 / d_model  # to mean variance * identity, squared
    noise = (np.square(np.square(centred).sum(axis=1)).sum() / n - size) / n
    return float(np.clip(noise / distance, 0, 1)) if distance > 0 else 0.0
