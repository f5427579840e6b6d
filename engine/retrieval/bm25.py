"""BM25: scores by the words that chunk and question share, the rarer the better.

Robertson and Zaragoza 2009, in Lucene's variant (Kamphuis et al. 2020), by bm25s (Lù 2024). A word w that
occurs tf times in a chunk of l words, among N chunks of which df have it, adds

    ln(1 + (N - df + 0.5) / (df + 0.5)) · tf / (tf + k1 · (1 - b + b · l / average l))

once for each time it occurs in the question. Words are runs of two or more letters, digits or underscores in
lower case, without Lucene's 33 English stop words, and reduced to their stems (Porter 2001, the English
Snowball stemmer): "inventories" and "inventory" are one word.
"""

from collections.abc import Sequence
from math import log

import numpy as np
from Stemmer import Stemmer

from engine.errors import InputError
from engine.layers.tracing import Array
from engine.models.encoder import check_several


class Bm25:
    """An index of texts by their words.

    Parameters
    ----------
    texts
        The chunks' texts; a text without words is never found.
    k1
        How much more a word counts that occurs several times in a chunk; 0 for not at all.
    b
        How much longer chunks are penalised, 0 to 1.

    Raises
    ------
    InputError
        A bare string instead of several, or ``k1`` or ``b`` outside its range.
    """

    def __init__(self, texts: Sequence[str], k1: float = 1.5, b: float = 0.75) -> None:
        from bm25s import BM25

        check_several(texts)
        if not 0 <= k1 < float("inf"):
            raise InputError(f"k1 is {k1}: give 0 or more, such as 1.5")
        if not 0 <= b <= 1:
            raise InputError(f"b is {b}: give 0 to 1, such as 0.75")
        tokens = words(texts)
        self._n_texts, self._index = len(texts), BM25(k1=k1, b=b)
        self._has_words = any(tokens)
        if self._has_words:
            self._index.index(tokens, show_progress=False)

    def scores(self, questions: Sequence[str]) -> Array:
        """Score every text for every question: float32 ``(n_questions, n_texts)``.

        The score is 0 where they share no word: for every text, if a question has only stop words or none.
        """
        check_several(questions)
        scores = np.zeros((len(questions), self._n_texts), np.float32)
        if self._has_words:
            for row, tokens in zip(scores, words(questions), strict=True):
                row[:] = self._index.get_scores_from_ids(self._index.get_tokens_ids(tokens))
        return scores

    def idf(self, stem: str) -> float:
        """Return the weight of a word, given by its stem: the first factor of the formula above."""
        n_with = 0
        if self._has_words and stem in self._index.vocab_dict:
            column = self._index.vocab_dict[stem]
            first, last = self._index.scores["indptr"][column : column + 2]
            n_with = int(last - first)
        return word_idf(n_with, self._n_texts)


def word_idf(n_with: int, n_texts: int) -> float:
    """Return the weight of a word that ``n_with`` of ``n_texts`` texts hold, as in the formula above."""
    return log(1 + (n_texts - n_with + 0.5) / (n_with + 0.5))


def words(texts: Sequence[str], stopwords: str = "english") -> list[list[str]]:
    """Split texts into the stems of the words that count; ``"english_plus"`` leaves out more of them."""
    from bm25s import tokenize

    return tokenize(list(texts), stopwords=stopwords, return_ids=False, show_progress=False, stemmer=stems)


def stems(words: Sequence[str]) -> list[str]:
    """Return the stem of each word in lower case, by the English Snowball stemmer."""
    return Stemmer("english").stemWords(list(words))
