import re
from collections import Counter
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import InputError
from engine.retrieval.bm25 import Bm25

STOP_WORDS = (
    "a|an|and|are|as|at|be|but|by|for|if|in|into|is|it|no|not|of|on|or|such|that|the|their|then|there|these|"
    "they|this|to|was|will|with"
)
TEXTS = [
    "The bridge was built in 1891, and the bridge was long.",
    "A bridge over the river",
    "Rivers and rain; rain, RAIN!",
    "of the and",
    "",
]
TEXT = st.lists(
    st.sampled_from(["bridge", "bridges", "rain", "river", "Rivers", "Long", "the", "1891", "x", "naïve"]),
    max_size=12,
)


# Of the words here whose Porter2 stem is another: https://snowballstem.org/algorithms/english/stemmer.html
STEMS = {"bridge": "bridg", "bridges": "bridg", "rivers": "river", "naïve": "naïv"}


def tokens(text):
    words = re.findall(r"\b\w\w+\b", text.lower())
    return [STEMS.get(word, word) for word in words if not re.fullmatch(STOP_WORDS, word)]


def textbook(texts, question, k1, b):
    """Okapi BM25 as textbooks and rank_bm25 have it, with the idf that is never below 0."""
    chunks = [tokens(text) for text in texts]
    average = sum(map(len, chunks)) / len(chunks)
    scores = []
    for chunk in chunks:
        counts, score = Counter(chunk), 0.0
        for word in tokens(question):
            holding = sum(word in other for other in chunks)
            idf = log(1 + (len(chunks) - holding + 0.5) / (holding + 0.5))
            if counts[word]:
                length = k1 * (1 - b + b * len(chunk) / average)
                score += idf * counts[word] * (k1 + 1) / (counts[word] + length)
        scores.append(score)
    return scores


@given(
    st.lists(TEXT, min_size=1, max_size=6),
    TEXT,
    st.sampled_from([0.0, 0.9, 1.5]),
    st.sampled_from([0, 0.75, 1]),
)
def test_scores_are_the_textbook_formula_but_for_its_constant_factor(chunks, question, k1, b):
    texts, question = [" ".join(chunk) for chunk in chunks], " ".join(question)
    scores = Bm25(texts, k1, b).scores([question])
    assert scores.dtype == np.float32
    np.testing.assert_allclose((k1 + 1) * scores[0], textbook(texts, question, k1, b), rtol=1e-5)


@given(st.lists(TEXT, max_size=6), st.sampled_from(["bridg", "river", "1891", "zebra"]))
def test_the_weight_of_a_word_follows_from_how_many_texts_have_it(chunks, stem):
    texts = [" ".join(chunk) for chunk in chunks]
    n_with = sum(stem in tokens(text) for text in texts)
    expected = log(1 + (len(texts) - n_with + 0.5) / (n_with + 0.5))
    assert Bm25(texts).idf(stem) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("texts", [[], ["", "of the", "?"]])
def test_a_corpus_without_words_has_nothing_to_find(texts):
    scores = Bm25(texts).scores(["bridge", ""])
    assert scores.shape == (2, len(texts))
    assert not scores.any()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Bm25("bridge"), "list of texts"),
        (lambda: Bm25(TEXTS).scores("bridge"), "list of texts"),
        (lambda: Bm25(TEXTS, k1=-1), "k1 is -1"),
        (lambda: Bm25(TEXTS, b=1.5), "b is 1.5"),
    ],
)
def test_what_cannot_be_indexed_is_said(call, message):
    with pytest.raises(InputError, match=message):
        call()
