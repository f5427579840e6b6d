"""Hard negatives: chunks that score high for a question although they are not relevant."""

import numpy as np

from engine.layers.tracing import Array


def hard_negatives(rankings: list[Array], relevant: Array, depth: int) -> list[Array]:
    """Return for each question the chunks that score best among those that are not relevant.

    Parameters
    ----------
    rankings
        Score matrices ``(n_questions, n_chunks)``, such as cosines and BM25; only scores above 0 make a
        hard negative.
    relevant
        Bool ``(n_questions, n_chunks)``.
    depth
        How many chunks of each ranking are taken.

    Returns
    -------
    list of Array
        Places of chunks for each question, ascending; may be empty.
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
