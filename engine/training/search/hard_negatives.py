"""Hard negatives: chunks that score high for a question although they are not relevant."""

import numpy as np

from engine.layers.tracing import Array


def hard_negatives(rankings: list[Array], relevant: Array, depth: int) -> list[Array]:
    """Return the places of the best chunks of each question that are not relevant, ascending.

    They are the first ``depth`` by each of the score matrices ``rankings``, ``(n_questions, n_chunks)``, such
    as cosines and BM25, with scores above 0; a question may have none. ``relevant`` is bool
    ``(n_questions, n_chunks)``.
    """
    found = []
    for row, right in enumerate(relevant):
        best: set[int] = set()
        for scores in rankings:
            wrong = np.where(right, -np.inf, scores[row])
            first = np.argsort(-wrong, kind="stable")[:depth]
            best.update(first[wrong[first] > 0].tolist())
        found.append(np.array(sorted(best), np.int64))
    return found
