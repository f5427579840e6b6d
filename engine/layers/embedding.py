"""Embedding: rows of a table, and their gradient."""

import numpy as np

from .tracing import Array


def embedding(table: Array, ids: Array) -> Array:
    """Row of each id: of ``(n_rows, d_model)``, ids ``(..., n_tokens)`` to ``(..., n_tokens, d_model)``."""
    return table[ids]


def embedding_backward(d_out: Array, ids: Array, n_rows: int) -> Array:
    """Gradient of the table, ``(n_rows, d_model)``, from ``d_out (..., n_tokens, d_model)`` and the ids.

    A row's gradient is the sum over all tokens with its id, and 0 if there is none.
    """
    d_table = np.zeros((n_rows, d_out.shape[-1]), d_out.dtype)
    if ids.size == 0:
        return d_table
    order = np.argsort(ids, axis=None, kind="stable")  # tokens of the same id, side by side
    rows, starts = np.unique(ids.reshape(-1)[order], return_index=True)
    d_table[rows] = np.add.reduceat(d_out.reshape(-1, d_out.shape[-1])[order], starts, axis=0)
    return d_table
