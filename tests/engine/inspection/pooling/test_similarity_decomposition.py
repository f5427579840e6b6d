import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import Encoder
from engine.errors import InputError
from engine.inspection.pooling.similarity_decomposition import (
    decompose_similarity,
    dimensions_won,
    read_text,
    sum_by_unit,
    text_units,
)
from engine.layers.norm import l2_normalize
from engine.layers.pooling import POOLINGS
from engine.retrieval.maxsim import MAXSIM
from tests.engine.models.test_encoder_families import save

CORPUS = ["How do cats sleep?", "A feline rests curled up.", "Interest rates rose again.", "The end."]
QUESTION = "How do cats sleep?"
PASSAGE = "A feline rests curled up. It naps through unbelievably warm afternoons, 東京!"
PARTS = [strategy for strategy in POOLINGS if strategy != "pooler"]
LEVELS = ("tokens", "words", "sentences")
TEXTS = st.text(st.sampled_from("cat naps unbelievably. É東,'\n-3[]한"), max_size=40)


@pytest.fixture(scope="module")
def weighing(encoder):
    return encoder.with_idf(CORPUS)


@pytest.mark.parametrize("strategy", PARTS)
def test_contributions_add_up_to_the_cosine(weighing, strategy):
    u, v = weighing.encode([QUESTION, PASSAGE], strategy)
    found = decompose_similarity(weighing, QUESTION, PASSAGE, strategy)
    assert found.matrix.dtype == np.float64
    assert found.matrix.shape == (len(found.first.encoding), len(found.second.encoding))
    assert found.score == pytest.approx(float(u @ v), abs=1e-6)
    back = decompose_similarity(weighing, PASSAGE, QUESTION, strategy)
    np.testing.assert_allclose(found.matrix, back.matrix.T, rtol=0, atol=1e-6)


@given(TEXTS, TEXTS, st.sampled_from([*PARTS, MAXSIM]))
def test_any_two_texts_add_up_whatever_is_summed_first(weighing, first, second, strategy):
    found = decompose_similarity(weighing, first, second, strategy, max_tokens=24)
    assert found.matrix.sum() == pytest.approx(found.score, abs=1e-6)
    assert decompose_similarity(weighing, first, first, strategy).score == pytest.approx(1, abs=1e-6)
    for level in LEVELS:
        rows, columns = text_units(found.first, level), text_units(found.second, level)
        summed = sum_by_unit(found.matrix, rows, columns)
        assert summed.shape == (len(rows), len(columns))
        assert summed.sum() == pytest.approx(found.score, abs=1e-6)


def test_a_mean_by_the_official_model_is_taken_apart_the_same(torch, encoder, official):
    tokens = []
    for text in (QUESTION, PASSAGE):
        batch = official.tokenizer(text, return_tensors="pt")
        with torch.inference_mode():
            tokens.append(official[0].auto_model(**batch).last_hidden_state[0].numpy().astype(np.float64))
    x, y = tokens
    lengths = np.linalg.norm(x.mean(0)) * np.linalg.norm(y.mean(0))
    expected = x @ y.T / (len(x) * len(y) * lengths)
    found = decompose_similarity(encoder, QUESTION, PASSAGE).matrix
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_each_dimension_of_max_goes_to_the_tokens_that_won_it(encoder):
    found = decompose_similarity(encoder, QUESTION, PASSAGE, "max")
    x, y = encoder.token_states([found.first.encoding.ids, found.second.encoding.ids])
    u, v = l2_normalize(x.vectors.max(axis=0)), l2_normalize(y.vectors.max(axis=0))
    expected = np.zeros(found.matrix.shape)
    for dimension in range(encoder.config.d_model):
        i = list(x.vectors[:, dimension]).index(max(x.vectors[:, dimension]))  # the first of equals
        j = list(y.vectors[:, dimension]).index(max(y.vectors[:, dimension]))
        assert (found.winners[0][dimension], found.winners[1][dimension]) == (i, j)
        expected[i, j] += u[dimension] * v[dimension]
    np.testing.assert_allclose(found.matrix, expected, rtol=0, atol=1e-6)
    for winners, text in zip(found.winners, (found.first, found.second), strict=True):
        for level in LEVELS:
            won = dimensions_won(winners, text_units(text, level))
            assert won.sum() == encoder.config.d_model
            assert len(won) == len(text_units(text, level))


def test_maxsim_gives_each_token_of_the_question_to_its_match(encoder):
    found = decompose_similarity(encoder, QUESTION, PASSAGE, MAXSIM)
    n_question = len(found.first.encoding)
    assert (np.count_nonzero(found.matrix, axis=1) == 1).all()
    x, y = encoder.token_states([found.first.encoding.ids, found.second.encoding.ids])
    cosines = l2_normalize(x.vectors) @ l2_normalize(y.vectors).T
    np.testing.assert_allclose(found.matrix.sum(axis=1) * n_question, cosines.max(axis=1), rtol=0, atol=1e-6)
    assert found.matrix.argmax(axis=1).tolist() == cosines.argmax(axis=1).tolist()


@given(TEXTS)
def test_units_cover_all_tokens_in_order_with_special_ones_alone(encoder, text):
    read = read_text(encoder, text)
    for level in LEVELS:
        cut = text_units(read, level)
        places = [place for each in cut for place in range(each.first, each.last)]
        assert places == list(range(len(read.special)))
        for each in cut:
            assert not read.special[each.first : each.last].any() or each.last == each.first + 1
            assert each.special == read.special[each.first]
            if not each.special and level != "tokens":
                assert each.label == text[each.start : each.end]


def test_what_is_no_sum_is_refused(encoder):
    for strategy, message in (
        ("pooler", "no sum over tokens"),
        ("idf", "with_idf"),
        ("median", "is not one of"),
    ):
        with pytest.raises(InputError, match=message):
            decompose_similarity(encoder, QUESTION, PASSAGE, strategy)


@pytest.mark.parametrize("family", ["roberta", "xlm-roberta", "qwen3"])
def test_words_are_those_of_tokenizers_that_mark_their_beginnings(tmp_path, family):
    save(tmp_path, family)
    read = read_text(Encoder.load(tmp_path), "a baffled beagle 東京")
    words = [unit.label.strip() for unit in text_units(read, "words") if not unit.special]
    assert " ".join(words) == "a baffled beagle 東京"
    assert len(text_units(read, "tokens")) > len(words) + 3
