"""A cross-encoder's score is taken apart by leaving out words, and by its attention between the two texts."""

import numpy as np
import pytest

from engine.errors import InputError
from engine.inspection.model.reranking import read_pair, word_effects
from engine.models.reranker import Reranker

QUESTION, PASSAGE = "ab cd?", "the bead, a: ab!"


@pytest.fixture(scope="module")
def reranker(reranker_folder):
    return Reranker.load(reranker_folder)


def test_the_pair_is_read_as_it_is_scored(reranker):
    pair = read_pair(reranker, QUESTION, PASSAGE)
    [score] = reranker.score(QUESTION, [PASSAGE])
    assert pair.score == pytest.approx(score, abs=1e-5)
    assert pair.logit == pytest.approx(np.log(score / (1 - score)), abs=1e-3)
    tokens = pair.encoding.tokens
    assert tokens[pair.question][0] == "a"
    assert tokens[pair.question.stop] == "[SEP]"
    assert pair.passage.stop == len(tokens) - 1
    weights = pair.attention(1, 2)
    assert weights.shape == (pair.question.stop - 1, pair.passage.stop - pair.passage.start)
    whole = pair.trace["layers.1.attention.weights"][2]
    np.testing.assert_array_equal(weights, whole[pair.question, pair.passage])


def test_a_word_is_left_out_with_all_its_tokens(reranker):
    effects = word_effects(reranker, QUESTION, PASSAGE)
    assert [(each.side, each.word) for each in effects] == [
        ("question", "ab"),
        ("question", "cd"),
        ("passage", "the"),
        ("passage", "bead"),
        ("passage", "a"),
        ("passage", "ab"),
    ]
    complete = read_pair(reranker, QUESTION, PASSAGE).logit
    without = read_pair(reranker, QUESTION, "the , a: ab!").logit
    assert effects[3].drop == pytest.approx(complete - without, abs=1e-4)
    assert PASSAGE[effects[3].start : effects[3].end] == "bead"


def test_words_beyond_the_limit_are_not_left_out(reranker):
    effects = word_effects(reranker, "ab", "bead " * 20)
    assert 0 < len(effects) < 10


@pytest.mark.parametrize(("question", "passage"), [("", "ab"), ("ab", " ")])
def test_both_texts_are_needed(reranker, question, passage):
    with pytest.raises(InputError, match="both needed"):
        read_pair(reranker, question, passage)
