"""The inverted index of a learned sparse model: of each word the texts that have it, and its weights."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ..layers.tracing import Array
from ..models.sparse_encoder import SparseEncoder
from ..weights.fetch import Progress
from .index_kinds import require_whole

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix


@dataclass(frozen=True)
class SparseIndex:
    """Weights of the words of texts ``(n_texts, vocab_size)``, stored by word, and their model."""

    weights: "csc_matrix" = field(repr=False)
    fingerprint: str

    @classmethod
    def of(
        cls, texts: Sequence[str], model: SparseEncoder, on_progress: Progress | None = None
    ) -> "SparseIndex":
        """Index texts; ``on_progress`` is called with texts done and in all."""
        from scipy.sparse import csc_matrix  # slow to import

        return cls(csc_matrix(model.encode(texts, "document", on_progress)), model.fingerprint)

    @property
    def arrays(self) -> tuple[Array, ...]:
        """Those that may be mapped from files."""
        return self.weights.indptr, self.weights.indices, self.weights.data

    def scores(self, questions: Sequence[str], model: SparseEncoder) -> Array:
        """Score every text for every question by their inner product: float32 ``(n_questions, n_texts)``."""
        require_whole(*self.arrays)
        from scipy.sparse import csr_matrix  # slow to import

        asked = csr_matrix(model.encode(questions, "query"))
        # As of words: each of a question adds its weight to the texts of its list.
        found: Array = (asked @ self.weights.T).toarray()
        return found.astype(np.float32, copy=False)

    def subset(self, rows: Sequence[int]) -> "SparseIndex":
        """Return the index of some texts, in their order."""
        return SparseIndex(self.weights[list(rows)], self.fingerprint)
