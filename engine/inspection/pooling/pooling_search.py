"""Search by several poolings, for one question or for many with known answers."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...errors import InputError
from ...evaluation.metrics import hit_rate, reciprocal_rank
from ...layers.tracing import Array


@dataclass(frozen=True)
class PoolingRankings:
    """The ranks under each strategy of all chunks that any strategy has among its first ``k``."""

    strategies: tuple[str, ...]
    k: int  # ranks that count as found; at most the number of chunks
    # the chunks, ``(n_rows,)``: in the first strategy's order, then those added by the second, and so on
    rows: Array
    # their ranks among all chunks, from 1, ``(n_strategies, n_rows)``. Of equal scores the first chunk comes
    # first.
    ranks: Array
    scores: Array  # their scores, ``(n_strategies, n_rows)``

    @property
    def found(self) -> Array:
        """Whether each strategy has each chunk among its first ``k``: bool ``(n_strategies, n_rows)``."""
        return self.ranks <= self.k


@dataclass(frozen=True)
class PoolingQuality:
    """Search quality for questions with known answers."""

    strategies: tuple[str, ...]
    reciprocal_ranks: Array  # of the first relevant chunk, ``(n_strategies, n_questions)``
    hits: Array  # 1 where a relevant chunk is among the first ``k``, ``(n_strategies, n_questions)``


def rankings(scores: Mapping[str, Array], k: int) -> PoolingRankings:
    """Rank chunks by the scores ``(n_chunks,)`` of each strategy."""
    if k < 1:
        raise InputError(f"k is {k}: ask for 1 passage or more")
    if not scores:
        raise InputError("no strategy was given: choose one or more")
    all_scores = np.stack(list(scores.values()))  # (n_strategies, n_chunks)
    if not all_scores.shape[1]:
        raise InputError("there are no chunks to rank: load a document with text")
    order = np.argsort(-all_scores, axis=1, kind="stable")
    ranks = np.argsort(order, axis=1) + 1  # the inverse of each permutation, from 1
    rows = np.array(list(dict.fromkeys(order[:, :k].ravel().tolist())))
    return PoolingRankings(tuple(scores), min(k, order.shape[1]), rows, ranks[:, rows], all_scores[:, rows])


def only_found_by(compared: PoolingRankings) -> dict[str, Array]:
    """Chunks that only one strategy ranks among the first ``k``, best first: ``(n_only,)`` for each."""
    single = compared.found & (compared.found.sum(axis=0) == 1)  # (n_strategies, n_rows)
    return {
        strategy: compared.rows[np.flatnonzero(own)[np.argsort(ranks[own])]]
        for strategy, own, ranks in zip(compared.strategies, single, compared.ranks, strict=True)
    }


def pooling_quality(
    question_vectors: Mapping[str, Array], chunk_vectors: Mapping[str, Array], relevant: Array, k: int
) -> PoolingQuality:
    """Search with every pooling of questions ``(n_questions, d_model)`` and chunks ``(n_chunks, d_model)``.

    ``relevant`` chunks are bool ``(n_questions, n_chunks)``, and the first ``k`` count as a hit.
    """
    if not len(relevant):
        raise InputError("there is no labelled question to judge by: give one or more")
    strategies = tuple(question_vectors)
    scores = [question_vectors[one] @ chunk_vectors[one].T for one in strategies]
    ranks = np.array([reciprocal_rank(own, relevant) for own in scores])
    return PoolingQuality(strategies, ranks, np.array([hit_rate(own, relevant, k) for own in scores]))
