import numpy as np
import pytest
from scipy.stats import rankdata, spearmanr

from engine.inspection.pooling.occlusion import occlusion
from engine.inspection.pooling.similarity_decomposition import decompose_similarity, text_units
from engine.layers.norm import l2_normalize
from engine.retrieval.maxsim import MAXSIM, max_sim

QUESTION = "How do cats sleep?"
PASSAGE = "A feline rests curled up. It naps through unbelievably warm afternoons."
# Each word of the passage left out by hand.
WITHOUT = {
    "feline": "A rests curled up. It naps through unbelievably warm afternoons.",
    "unbelievably": "A feline rests curled up. It naps through warm afternoons.",
    "naps": "A feline rests curled up. It through unbelievably warm afternoons.",
}


@pytest.mark.parametrize("strategy", ["mean", "max", "cls"])
def test_the_fall_is_that_of_the_text_without_the_word(encoder, strategy):
    left_out = occlusion(encoder, decompose_similarity(encoder, QUESTION, PASSAGE, strategy))
    falls = {word.label: fall for word, fall in zip(left_out.words, left_out.drops, strict=True)}
    question, complete, *others = encoder.encode([QUESTION, PASSAGE, *WITHOUT.values()], strategy)
    for word, vector in zip(WITHOUT, others, strict=True):
        assert falls[word] == pytest.approx(float(question @ complete - question @ vector), abs=1e-6)


def test_maxsim_falls_as_it_does_by_hand(encoder):
    left_out = occlusion(encoder, decompose_similarity(encoder, QUESTION, PASSAGE, MAXSIM), "first")

    def by_hand(question, passage):
        states = encoder.token_states([encoder.tokenizer.encode(text).ids for text in (question, passage)])
        return max_sim(*(l2_normalize(each.vectors) for each in states))

    drops = {word.label: drop for word, drop in zip(left_out.words, left_out.drops, strict=True)}
    expected = by_hand(QUESTION, PASSAGE) - by_hand("How do sleep?", PASSAGE)
    assert drops["cats"] == pytest.approx(expected, abs=1e-6)


def test_shares_are_those_of_the_words_own_vectors_without_special_tokens(encoder):
    found = decompose_similarity(encoder, QUESTION, PASSAGE)
    left_out = occlusion(encoder, found)
    assert not any(word.special for word in left_out.words)
    special = float(found.matrix[:, found.second.special].sum())
    assert left_out.shares.sum() + special == pytest.approx(found.score, abs=1e-6)
    assert [word.label for word in left_out.words] == [
        each.label for each in text_units(found.second, "words") if not each.special
    ]
    by_share, by_fall = rankdata(-left_out.shares), rankdata(-left_out.drops)
    np.testing.assert_array_equal(left_out.ranks, (by_share, by_fall))
    np.testing.assert_array_equal(left_out.rank_differences, by_share - by_fall)
    assert left_out.agreement.spearman == pytest.approx(spearmanr(left_out.shares, left_out.drops).statistic)


def test_texts_of_no_word_or_one_and_progress_counts_texts(encoder):
    for text, n_words in (("", 0), ("cat", 1)):
        seen = []
        found = decompose_similarity(encoder, QUESTION, text)
        left_out = occlusion(encoder, found, on_progress=lambda *step, seen=seen: seen.append(step))
        assert len(left_out.words) == len(left_out.drops) == len(left_out.rank_differences) == n_words
        assert left_out.agreement is None
        assert seen[-1] == (n_words + 2, n_words + 2)  # the complete text and the other one
