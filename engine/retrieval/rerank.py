"""A second, closer look at the best chunks: their tokens against the question's, by MaxSim.

A chunk's one vector is quickly compared; that of its tokens takes a pass through the model, so only the
best chunks are ordered by it (Nogueira and Cho 2019 set up two stages so, with a cross-encoder).
"""

from collections.abc import Sequence

import numpy as np

from engine.layers.tracing import Array
from engine.models.encoder import Encoder, check_several
from engine.retrieval.maxsim import maxsim_scores
from engine.retrieval.ranking import best_first, candidates, check_depth, ordered_scores
from engine.weights.fetch import Progress

RERANK_DEPTH = 50


class MaxSim:
    """MaxSim of questions with chunks, each chunk read once, when it is first asked for.

    Arguments and errors are those of `maxsim_scores`. No token vectors are held, only the scores of chunks
    that were read: ``4 * n_questions`` bytes each.
    """

    def __init__(
        self,
        questions: Sequence[str],
        texts: Sequence[str],
        encoder: Encoder,
        max_tokens: int | None = None,
    ) -> None:
        check_several(questions)
        check_several(texts)
        self.questions, self.texts = tuple(questions), tuple(texts)
        self.encoder, self.max_tokens = encoder, max_tokens
        self._columns: dict[int, Array] = {}  # by chunk, (n_questions,) each

    def scores(self, chunks: Sequence[int], on_progress: Progress | None = None) -> Array:
        """Score some chunks, given by their places, for every question: float32 ``(n_questions, n)``."""
        new = [chunk for chunk in dict.fromkeys(chunks) if chunk not in self._columns]
        texts = [self.texts[chunk] for chunk in new]
        if texts:
            read = maxsim_scores(self.questions, texts, self.encoder, self.max_tokens, on_progress)
            self._columns.update(zip(new, read.T.copy(), strict=True))
        columns = [self._columns[chunk] for chunk in chunks]
        return np.array(columns, np.float32).reshape(len(chunks), len(self.questions)).T


def rerank(
    scores: Array, maxsim: MaxSim, depth: int = RERANK_DEPTH, on_progress: Progress | None = None
) -> Array:
    """Order the best chunks of each question by MaxSim; the others follow in their old order.

    Parameters
    ----------
    scores
        Scores of the first stage ``(n_questions, n_chunks)``.
    maxsim
        MaxSim of the same questions and chunks.
    depth
        How many chunks of each question are ordered anew.
    on_progress
        Called with chunks read and chunks to read.

    Returns
    -------
    Array
        Minus the new place, float32 ``(n_questions, n_chunks)``; ``-inf`` where the first stage has it.

    Raises
    ------
    InputError
        ``depth`` is below 1.
    """
    check_depth(depth)
    order = best_first(scores)  # (n_questions, n_chunks)
    near = [candidates(row, own, depth) for row, own in zip(order, scores, strict=True)]
    needed = np.unique(np.concatenate([np.empty(0, int), *near]))  # chunks, ascending
    closer = maxsim.scores(needed.tolist(), on_progress)  # (n_questions, n_needed)
    for row, chunks, own in zip(order, near, closer, strict=True):
        found = own[np.searchsorted(needed, chunks)]
        row[: len(chunks)] = chunks[np.argsort(-found, kind="stable")]
    return ordered_scores(order, scores)
