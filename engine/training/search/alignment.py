"""Alignment and uniformity of unit vectors (Wang and Isola 2020); lower is better for both."""

import numpy as np

from engine.layers.tracing import Array


def alignment(question_vectors: Array, chunk_vectors: Array, relevant: Array) -> float:
    """Mean of ``|q - c|^2`` over all pairs of a question and a relevant chunk, 0 to 4; NaN without a pair.

    ``align_loss`` of the paper with exponent 2. Vectors are ``(n_questions, d_model)`` and
    ``(n_chunks, d_model)``, rows of length 1; ``relevant`` is bool ``(n_questions, n_chunks)``.
    """
    questions, chunks = np.nonzero(relevant)
    if not len(questions):
        return float("nan")
    apart = question_vectors[questions] - chunk_vectors[chunks]  # (n_pairs, d_model)
    return float(np.square(apart).sum(axis=1).mean())


def uniformity(vectors: Array) -> float:
    """Log of the mean of ``exp(-2 |x - y|^2)`` over all pairs: 0 if all vectors are equal, -4 at best.

    ``uniform_loss`` of the paper with t = 2, of ``(n, d_model)``, rows of length 1; NaN for fewer than two.
    """
    first, second = np.triu_indices(len(vectors), 1)
    if not len(first):
        return float("nan")
    squares = 2 - 2 * (vectors @ vectors.T)[first, second]  # |x - y|^2
    return float(np.log(np.exp(-2 * squares).mean()))
