"""Occlusion: the drop of two texts' similarity when a word is left out.

Source: Zeiler & Fergus 2014; for words, Li et al. 2016. Token vectors are contextual, so a word has more
effect than the share of its own tokens. Encoding the text again without the word shows all of it.
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ...generation.correlation import PairCorrelation, correlation
from ...layers.tracing import Array
from ...models.encoder import Encoder
from ...retrieval.maxsim import MAXSIM, maxsim_of_ids
from ...weights.fetch import Progress
from .similarity_decomposition import Decomposition, TextUnit, text_units

Side = Literal["first", "second"]


@dataclass(frozen=True)
class Occlusion:
    """The importance of a text's words by two measures."""

    words: tuple[TextUnit, ...]  # the words left out in turn, without [CLS] and [SEP]
    # contribution of each word's own token vectors to the similarity, ``(n_words,)``
    shares: Array = field(repr=False)
    # drop of the similarity without it, ``(n_words,)``; below 0 where it rises
    drops: Array = field(repr=False)
    agreement: PairCorrelation | None  # correlation of the two; None for too few words or no variation

    @property
    def ranks(self) -> tuple[Array, Array]:
        """Ranks of the words by share and by drop, 1 for the largest; ties have the mean of their ranks."""
        from scipy.stats import rankdata  # slow to import

        return rankdata(-self.shares), rankdata(-self.drops)

    @property
    def rank_differences(self) -> Array:
        """Rank by share minus rank by drop, ``(n_words,)``: above 0 where occlusion ranks the word higher."""
        by_share, by_fall = self.ranks
        return by_share - by_fall


def occlusion(
    encoder: Encoder, found: Decomposition, side: Side = "second", on_progress: Progress | None = None
) -> Occlusion:
    """Leave out each word of one of two texts, and compare the drop of their similarity with its share.

    A word's tokens are removed from those that the model reads; text beyond the limit stays unread.
    """
    text = found.first if side == "first" else found.second
    words = tuple(word for word in text_units(text, "words") if not word.special)
    ids = text.encoding.ids
    sequences = [ids, *([*ids[: word.first], *ids[word.last :]] for word in words)]
    other = found.second.encoding.ids if side == "first" else found.first.encoding.ids
    firsts, seconds = (sequences, [other]) if side == "first" else ([other], sequences)
    if found.strategy == MAXSIM:
        scores = maxsim_of_ids(firsts, seconds, encoder, on_progress)
    else:
        vectors = encoder.encode_ids([*firsts, *seconds], found.strategy, on_progress=on_progress)
        u, v = np.split(vectors.astype(np.float64), [len(firsts)])
        scores = u @ v.T  # (n_firsts, n_seconds), one of them 1
    complete, *without = scores.astype(np.float64).ravel()
    falls = complete - np.array(without)  # (n_words,)
    by_token = found.matrix.sum(axis=1 if side == "first" else 0)  # (n_tokens,)
    shares = np.array([by_token[word.first : word.last].sum() for word in words], np.float64)  # (n_words,)
    return Occlusion(words, shares, falls, correlation(shares, falls))
