"""Scores by the cosine of vectors."""

import numpy as np

from engine.errors import InputError
from engine.layers.tracing import Array


def dense_scores(question_vectors: Array, chunk_vectors: Array) -> Array:
    """Inner products of all questions and chunks: cosines, for vectors of length 1.

    Equal to the scores of an exact FAISS index (IndexFlatIP), but for all chunks.

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
        The vectors have different lengths.
    """
    if question_vectors.shape[1:] != chunk_vectors.shape[1:]:
        raise InputError(
            f"the vectors have shapes {question_vectors.shape} and {chunk_vectors.shape}: embed questions "
            f"and chunks with one model"
        )
    return (question_vectors @ chunk_vectors.T).astype(np.float32)
