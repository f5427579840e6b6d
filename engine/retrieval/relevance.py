"""The null distribution of cosines: scores of questions that have nothing to do with the documents.

A cosine says little by itself: with all-MiniLM-L6-v2 two unrelated texts have 0.0 under mean pooling, 0.6
under cls and 0.7 under max, and a larger corpus has something nearer to any question. So everyday questions
are searched for in the same index, and a passage's cosine is compared with theirs. Speaker verification
normalises its scores by impostors in the same way (Auckenthaler, Carey and Lloyd-Thomas 2000).
"""

from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, exp, floor, inf, log

import numpy as np

from ..installed import rows_of
from ..layers.tracing import Array
from .embedding_model import Model
from .index import Index
from .vector_cache import VectorCache, cached_encode

MAX_CHUNKS = 2_000  # of the random pairs; the best passages are among all chunks of an index
LOW = 0.1  # the quantile that the spread is fitted to, besides the median


@dataclass(frozen=True)
class NullScores:
    """Scores of questions that are unrelated to an index, both ascending."""

    pairs: Array = field(repr=False)  # cosines of random pairs of a question and a chunk ``(n_pairs,)``
    bests: Array = field(repr=False)  # best cosine of each question with any chunk ``(n_questions,)``

    def percentile(self, score: float) -> float:
        """Share of random pairs that score less, in percent."""
        return 100 * float(np.searchsorted(self.pairs, score)) / len(self.pairs)

    def relevance(self, score: float) -> float:
        """Share of unrelated questions whose best passage scores less, in percent.

        It comes from a Gumbel distribution, that of the largest of many scores. Counting the largest of
        ``bests`` instead would be wrong where the documents do answer some of the questions.
        """
        location, scale = self.gumbel
        # Far below all scores the inner exponential would overflow, and the outer one is 0.
        return 100 * exp(-exp(min((location - score) / scale, 700.0)))

    def score_of(self, relevance: float) -> float:
        """Return the cosine that has a relevance: the inverse of `relevance`, infinite at 0 and at 100."""
        if not 0 < relevance < 100:
            return inf if relevance >= 100 else -inf
        location, scale = self.gumbel
        return location - scale * log(-log(relevance / 100))

    @cached_property
    def gumbel(self) -> tuple[float, float]:
        """Location and scale of the Gumbel distribution with the median and low quantile of ``bests``."""
        low, median = np.quantile(self.bests, [LOW, 0.5])
        scale = float(median - low) / (log(-log(LOW)) - log(log(2)))
        scale = max(scale, 1e-6)  # if all scores are equal
        return float(median) + scale * log(log(2)), scale


def closer_than(null_scores: NullScores, score: float) -> str:
    """Describe the percentile of a score by the digits that so many pairs give, rounded down."""
    percentile, n_pairs = null_scores.percentile(score), len(null_scores.pairs)
    if percentile == 100:
        return "closer than all random pairs"
    digits = min(max(len(str(n_pairs)) - 3, 0), 2)  # of 100 pairs each is 1 %
    return f"closer than {floor(percentile * 10**digits) / 10**digits:.{digits}f} % of random pairs"


def chance_words(relevance: float) -> str:
    """Say how many of 100 unrelated questions find a passage as close, rounded up."""
    return f"of 100 unrelated questions, {ceil(100 - relevance)} find a passage as close"


def everyday_questions() -> list[str]:
    """Return the bundled everyday questions."""
    return [row["question"] for row in rows_of("everyday.csv")]


def null_scores_of(index: Index, encoder: Model, cache: VectorCache | None = None) -> NullScores:
    """Score everyday questions in an index, embedded as its chunks are.

    A cache keeps their vectors for other indexes of the same model and pooling.
    """
    return null_scores_by(index, embed_unrelated(index, encoder, cache))


def embed_unrelated(index: Index, encoder: Model, cache: VectorCache | None = None) -> Array:
    """Embed everyday questions as `null_scores_of`: float32 ``(n_questions, d_model)``."""
    spec, model, cache = index.spec, index.encoder(encoder), cache or VectorCache()
    return cached_encode(everyday_questions(), model, spec.pooling, spec.max_tokens, cache, role="query")


def null_scores_by(index: Index, vectors: Array) -> NullScores:
    """Score unrelated questions by their vectors ``(n_questions, d_model)``, as `null_scores_of`."""
    bests, _ = index.nearest(vectors, 1)  # (n_questions, 1)
    rows = np.random.default_rng(0).permutation(index.n_searched)[:MAX_CHUNKS]
    if index.allowed is not None:
        rows = index.allowed[rows]
    pairs = vectors @ index.vectors_of(rows).T  # (n_questions, n_rows)
    return NullScores(np.sort(pairs, axis=None), np.sort(bests[:, 0]))
