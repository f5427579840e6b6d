"""How close is close? Cosines of questions that have nothing to do with the documents.

A cosine alone says little: with all-MiniLM-L6-v2 two unrelated texts have 0.0 under mean pooling, 0.6 under
cls and 0.7 under max, and a larger corpus holds something nearer to whatever is asked. So everyday
questions are put to the very index that is searched, and a passage is judged by what those find. Speaker
verification normalises its scores by impostors in the same way (Auckenthaler, Carey and Lloyd-Thomas 2000).
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import exp, floor, inf, log

import numpy as np

from engine.documents.loaders import BUNDLED_CORPUS
from engine.errors import InputError
from engine.layers.tracing import Array
from engine.models.encoder import Encoder
from engine.retrieval.index import Index

EVERYDAY_QUESTIONS = BUNDLED_CORPUS.parent / "everyday.csv"
MAX_CHUNKS = 2_000  # of an index go into the pairs; the best passages are those of all its chunks
LOW = 0.1  # the quantile that the spread is read from, beside the median


@dataclass(frozen=True)
class Background:
    """What questions unrelated to an index score in it.

    Attributes
    ----------
    pairs
        Cosines of random pairs of a question and a chunk, ascending ``(n_pairs,)``.
    bests
        The best cosine that each question has with any chunk, ascending ``(n_questions,)``.
    """

    pairs: Array = field(repr=False)
    bests: Array = field(repr=False)

    def percentile(self, score: float) -> float:
        """Share of random pairs that score less, in percent."""
        return 100 * float(np.searchsorted(self.pairs, score)) / len(self.pairs)

    def relevance(self, score: float) -> float:
        """Share of unrelated questions of which even the best passage scores less, in percent.

        It is read off a Gumbel distribution, that of the largest of many scores. Counting the few largest
        of ``bests`` instead would go wrong where the documents do answer some of the questions.
        """
        location, scale = self.gumbel
        # Far below all scores the inner exponential is beyond any number, and the outer one is 0.
        return 100 * exp(-exp(min((location - score) / scale, 700.0)))

    def score_of(self, relevance: float) -> float:
        """Return the cosine of a relevance: the inverse of `relevance`, infinite at 0 and at 100."""
        if not 0 < relevance < 100:
            return inf if relevance >= 100 else -inf
        location, scale = self.gumbel
        return location - scale * log(-log(relevance / 100))

    @cached_property
    def gumbel(self) -> tuple[float, float]:
        """Location and scale of the Gumbel distribution with the median and low quantile of ``bests``."""
        low, median = np.quantile(self.bests, [LOW, 0.5])
        scale = float(median - low) / (log(-log(LOW)) - log(log(2)))
        scale = max(scale, 1e-6)  # where all scores are one
        return float(median) + scale * log(log(2)), scale


def closer_than(percentile: float) -> str:
    """Say a percentile in words, never more than it is: 99.996 is not 100."""
    if percentile == 100:
        return "closer than all random pairs"
    return f"closer than {floor(percentile * 100) / 100:.2f} % of random pairs"


def everyday_questions() -> list[str]:
    """Return the bundled questions of everyday life."""
    with EVERYDAY_QUESTIONS.open(encoding="utf-8", newline="") as file:
        return [row["question"] for row in csv.DictReader(file)]


def background_of(
    index: Index, encoder: Encoder, questions: Sequence[str] | None = None, seed: int = 0
) -> Background:
    """Put unrelated questions to an index, embedded as its chunks are.

    Parameters
    ----------
    index, encoder
        The index, and the encoder it was made with.
    questions
        Questions that the documents do not answer, at least one: those of everyday life, if none are
        given. It does little harm where one in ten of them is answered after all.
    seed
        Draws the chunks of the pairs where there are more than `MAX_CHUNKS`.

    Raises
    ------
    InputError
        ``questions`` is empty.
    """
    texts = everyday_questions() if questions is None else questions
    if not texts:
        raise InputError("there are no questions to compare with: give one or more, or None for the bundled")
    kind = index.kind
    vectors = index.encoder(encoder).encode(texts, kind.pooling, max_tokens=kind.max_tokens)
    vectors = vectors.astype(np.float32)  # (n_questions, d_model)
    bests, _ = index.faiss.search(vectors, 1)  # (n_questions, 1)
    rows = np.random.default_rng(seed).permutation(len(index.chunks))[:MAX_CHUNKS]
    pairs = vectors @ index.vectors[rows].T  # (n_questions, n_rows)
    return Background(np.sort(pairs, axis=None), np.sort(bests[:, 0]))
