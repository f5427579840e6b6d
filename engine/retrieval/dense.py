"""Chunks whose vectors point where the question's does."""

import numpy as np

from engine.errors import InputError
from engine.layers.tracing import Array


def dense_scores(question_vectors: Array, chunk_vectors: Array) -> Array:
    """Inner products of all questions and chunks, which are cosines of vectors of length 1.

    They are what an exact FAISS index (IndexFlatIP) gives for the chunks it finds, here for all of them.

    Parameters
    ----------
    question_vectors, chunk_vectors
        ``(n_questions, d_model)`` and ``(n_chunks, d_model)``.

    Returns
    -------
    Array
        float32 ``(n_questions, n_chunks)``.

    Raises
    ------
    InputError
        The vectors are of different lengths.
    """
    if question_vectors.shape[1:] != chunk_vectors.shape[1:]:
        raise InputError(
            f"the vectors have shapes {question_vectors.shape} and {chunk_vectors.shape}: embed questions "
            f"and chunks with one model"
        )
    return (question_vectors @ chunk_vectors.T).astype(np.float32)
