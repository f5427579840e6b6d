"""BM25: scores by the words that chunk and question share, the rarer the better.

Robertson and Zaragoza 2009, in Lucene's variant (Kamphuis et al. 2020), over `words`. A word w that occurs tf
times in a chunk of l words, among N chunks of which df have it, adds

    ln(1 + (N - df + 0.5) / (df + 0.5)) · tf / (tf + k1 · (1 - b + b · l / average l))

once for each time it occurs in the question. These impacts are computed once, so that a question only adds
those of its own words. They are read in each language of the chunks, since a stem of one language is rarely
one of another's.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from math import log

import numpy as np

from ..documents.language import ENGLISH
from ..errors import InputError, check_several
from ..layers.tracing import Array
from .index_kinds import require_whole
from .words import words

BATCH, POSTINGS = 10_000, 1_000_000  # texts whose words are counted, and impacts that are computed, at a time


@dataclass(frozen=True)
class Postings:
    """The inverted index: of each word the texts that hold it, and what it adds to their scores."""

    vocabulary: dict[str, int] = field(repr=False)  # the number of each word, by its stem
    starts: Array = field(repr=False)  # of the postings of each word, and the end of all: ``(n_words + 1,)``
    rows: Array = field(repr=False)  # the text of each posting, int32 ``(n_postings,)``
    impacts: Array = field(repr=False)  # the formula above, float32 ``(n_postings,)``
    n_texts: int
    languages: tuple[str, ...] = (ENGLISH,)  # of the texts

    @property
    def arrays(self) -> tuple[Array, ...]:
        """Those that may be mapped from files."""
        return self.starts, self.rows, self.impacts

    @property
    def n_bytes(self) -> int:
        """Bytes of the index: score and text of a posting, and an offset per word, of 4 bytes each."""
        return 4 * (2 * len(self.rows) + len(self.vocabulary) + 1)

    def of(self, stem: str) -> slice:
        """Return where the postings of a word are, which are none of a word that no text holds."""
        require_whole(*self.arrays)
        number = self.vocabulary.get(stem)
        return slice(0, 0) if number is None else slice(*self.starts[number : number + 2].tolist())


class Bm25:
    """An index of texts by their words; a text without words is never found.

    ``k1`` says how much more a word counts that occurs several times in a chunk, 0 for not at all; ``b`` how
    much longer chunks are penalised, 0 to 1. ``languages`` are as in `words`.
    """

    def __init__(
        self, texts: Sequence[str], k1: float = 1.5, b: float = 0.75, languages: Sequence[str] = ()
    ) -> None:
        check_several(texts)
        if not 0 <= k1 < float("inf"):
            raise InputError(f"k1 is {k1}: give 0 or more, such as 1.5")
        if not 0 <= b <= 1:
            raise InputError(f"b is {b}: give 0 to 1, such as 0.75")
        self.postings = postings_of(texts, k1, b, languages)

    @classmethod
    def from_postings(cls, postings: Postings) -> "Bm25":
        """Return the index that has these postings, such as stored ones."""
        index = cls.__new__(cls)
        index.postings = postings
        return index

    def scores(self, questions: Sequence[str]) -> Array:
        """Score all texts for all questions, 0 without a common word: float32 ``(n_questions, n_texts)``."""
        check_several(questions)
        postings = self.postings
        scores = np.zeros((len(questions), postings.n_texts), np.float32)
        for row, question in zip(scores, questions, strict=True):
            for stem in question_stems(question, postings.languages):
                own = postings.of(stem)
                # ``row[rows] +=`` takes twice as long.
                np.add.at(row, postings.rows[own], postings.impacts[own])
        return scores

    def idf(self, stem: str) -> float:
        """Return the weight of a word, given by its stem: the first factor of the formula above."""
        own = self.postings.of(stem)
        return word_idf(own.stop - own.start, self.postings.n_texts)


def question_stems(question: str, languages: Sequence[str]) -> list[str]:
    """Return the stems of a question in each language, those that another one has, too, once."""
    found: list[str] = []
    for stems in words([question] * len(languages), languages):
        known = set(found)
        found += [stem for stem in stems if stem not in known]
    return found


def postings_of(texts: Sequence[str], k1: float, b: float, languages: Sequence[str]) -> Postings:
    """Index texts by their words: the parameters are those of `Bm25`."""
    vocabulary: dict[str, int] = defaultdict(count().__next__)
    batches, lengths = [np.empty((3, 0), np.int32)], [np.empty(0, int)]
    for start in range(0, len(texts), BATCH):
        stems = words(texts[start : start + BATCH], languages[start : start + BATCH])
        lengths.append(np.array([len(own) for own in stems]))
        numbers = map(vocabulary.__getitem__, chain.from_iterable(stems))
        found = np.fromiter(numbers, int, lengths[-1].sum())  # (n_words_of_batch,)
        n_words = max(1, len(vocabulary))
        pairs = np.repeat(np.arange(start, start + len(stems)), lengths[-1]) * n_words + found
        pairs, tf = np.unique(pairs, return_counts=True)  # (n_postings_of_batch,)
        batches.append(np.array([*np.divmod(pairs, n_words), tf], np.int32))
    rows, of_word, tf = np.concatenate(batches, axis=1)  # (n_postings,) each
    batches.clear()
    length = np.concatenate(lengths)  # (n_texts,)
    average = max(1, length.sum()) / max(1, len(texts))
    factor = k1 * ((1 - b) + b * length / average)
    n_with = np.bincount(of_word, minlength=len(vocabulary))  # (n_words,)
    idf = np.array([word_idf(n, len(texts)) for n in n_with.tolist()], np.float32)
    impacts = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), POSTINGS):
        own = slice(start, start + POSTINGS)
        impacts[own] = idf[of_word[own]] * (tf[own] / (factor[rows[own]] + tf[own]))
    from scipy.sparse import csc_matrix  # slow to import

    by_word = csc_matrix((impacts, (rows, of_word)), (len(texts), len(vocabulary)))
    found_in = tuple(dict.fromkeys(languages)) or (ENGLISH,)
    return Postings(dict(vocabulary), by_word.indptr, by_word.indices, by_word.data, len(texts), found_in)


def word_idf(n_with: int, n_texts: int) -> float:
    """Return the weight of a word that ``n_with`` of ``n_texts`` texts hold, as in the formula above."""
    return log(1 + (n_texts - n_with + 0.5) / (n_with + 0.5))
