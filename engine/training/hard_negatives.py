"""Which chunks make hard negatives: those that a search finds though they answer nothing."""

import numpy as np

from engine.layers.tracing import Array


def hard_negatives(rankings: list[Array], relevant: Array, depth: int) -> list[Array]:
    """Return for each question the chunks that score best though they are not relevant.

    Parameters
    ----------
    rankings
        Score matrices ``(n_questions, n_chunks)``, such as cosines and BM25; what scores 0 or less, or
        ``-inf``, in all of them is no hard negative.
    relevant
        Bool ``(n_questions, n_chunks)``.
    depth
        How many of each ranking are taken.

    Returns
    -------
    list of Array
        Numbers of chunks, ascending, for each question; none where all that score are relevant.
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
