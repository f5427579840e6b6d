"""What a word is worth to the similarity of two texts: how far it falls without the word.

Every token's vector has read all the others, so that a word does more than its own token's share says.
Leaving it out and encoding the text again shows all of it (occlusion, Zeiler & Fergus 2014; by words,
Li et al. 2016).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from engine.generation.correlation import Correlation, correlation, ranks
from engine.inspection.similarity import Contributions, Unit, units
from engine.layers.tracing import Array
from engine.models.encoder import Encoder
from engine.retrieval.maxsim import MAXSIM, maxsim_of_ids
from engine.weights.fetch import Progress

Side = Literal["first", "second"]


@dataclass(frozen=True)
class Occlusion:
    """The words of a text by two measures.

    Attributes
    ----------
    words
        The words that were left out in turn, without [CLS] and [SEP].
    shares
        What each contributes to the similarity by its own vectors, ``(n_words,)``.
    falls
        How far the similarity falls without it, ``(n_words,)``; below 0 where it rises.
    agreement
        How the two correlate; None for too few words, or all alike.
    """

    words: tuple[Unit, ...]
    shares: Array = field(repr=False)
    falls: Array = field(repr=False)
    agreement: Correlation | None

    @property
    def ranks(self) -> tuple[Array, Array]:
        """Ranks of the words by share and by fall, 1 for the largest; equal ones have the mean of theirs."""
        return ranks(-self.shares), ranks(-self.falls)

    @property
    def rank_differences(self) -> Array:
        """How many ranks higher each word stands by its fall than by its share, ``(n_words,)``."""
        by_share, by_fall = self.ranks
        return by_share - by_fall


def occlusion(
    encoder: Encoder, found: Contributions, side: Side = "second", on_progress: Progress | None = None
) -> Occlusion:
    """Leave out each word of one of two texts, and compare the fall of their similarity to its share.

    A word's tokens are taken out of those that the model reads, and the others close up: what is beyond
    the limit stays beyond it.

    Parameters
    ----------
    encoder
        The encoder that made the contributions.
    found
        The two texts and what their similarity is made of.
    side
        The text whose words are left out.
    on_progress
        Called with texts encoded and texts in all.
    """
    text = found.first if side == "first" else found.second
    words = tuple(word for word in units(text, "words") if not word.special)
    ids = text.encoding.ids
    sequences = [ids, *([*ids[: word.first], *ids[word.last :]] for word in words)]
    if side == "first":
        scores = similarities(encoder, sequences, [found.second.encoding.ids], found.strategy, on_progress)
    else:
        scores = similarities(encoder, [found.first.encoding.ids], sequences, found.strategy, on_progress)
    complete, *without = scores.ravel()
    falls = complete - np.array(without, np.float64)  # (n_words,)
    by_token = found.matrix.sum(axis=1 if side == "first" else 0)  # (n_tokens,)
    shares = np.array([by_token[word.first : word.last].sum() for word in words], np.float64)  # (n_words,)
    return Occlusion(words, shares, falls, correlation(shares, falls))


def similarities(
    encoder: Encoder,
    firsts: Sequence[Sequence[int]],
    seconds: Sequence[Sequence[int]],
    strategy: str,
    on_progress: Progress | None = None,
) -> Array:
    """Similarity of tokenized texts by a pooling or `MAXSIM`: float64 ``(n_firsts, n_seconds)``."""
    if strategy == MAXSIM:
        return maxsim_of_ids(firsts, seconds, encoder, on_progress).astype(np.float64)
    vectors = encoder.encode_ids([*firsts, *seconds], strategy, on_progress=on_progress).astype(np.float64)
    return vectors[: len(firsts)] @ vectors[len(firsts) :].T
