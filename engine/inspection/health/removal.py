"""How rankings change when chunks are removed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.layers.norm import l2_normalize
from engine.layers.tracing import Array


@dataclass(frozen=True)
class RankingChange:
    """How one question's ranking changes: rows of chunks, best first, before and after."""

    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def lost(self) -> tuple[int, ...]:
        """Hits of before that are no longer there."""
        return tuple(row for row in self.before if row not in self.after)

    @property
    def gained(self) -> tuple[int, ...]:
        """Hits that were not there before."""
        return tuple(row for row in self.after if row not in self.before)


def preview_removal(vectors: Array, removed: Sequence[int], questions: Array, k: int) -> list[RankingChange]:
    """Rank the first ``k`` chunks for each question with and without some of the chunks.

    ``vectors`` of chunks are ``(n_chunks, d_model)``, ``questions`` ``(n_questions, d_model)``, ``removed``
    rows of ``vectors``. Of equal scores the earlier chunk comes first.
    """
    kept = np.setdiff1d(np.arange(len(vectors)), np.array(removed, np.int64))
    unit, asked = l2_normalize(vectors), l2_normalize(questions)
    changes = []
    for question in asked:
        scores = unit @ question  # (n_chunks,)
        after = kept[np.argsort(-scores[kept], kind="stable")[:k]]
        before = np.argsort(-scores, kind="stable")[:k]
        changes.append(RankingChange(tuple(before.tolist()), tuple(after.tolist())))
    return changes
