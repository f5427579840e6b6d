import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from transformers import (
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from engine.errors import InputError
from engine.generation.sampling import (
    Sampling,
    chances,
    entropy,
    keep_min_p,
    keep_top_k,
    keep_top_p,
    log_probability,
    most_probable,
    penalize_repetition,
    sample,
)

SIZE = 50
SEEDS = st.integers(0, 2**32)
SPREAD = st.builds(lambda seed: random_logits(seed), SEEDS)
TIED = st.lists(st.integers(-4, 4), min_size=SIZE, max_size=SIZE).map(lambda values: np.array(values) / 2)
LOGITS = SPREAD | TIED
SHARES = st.floats(1e-6, 1)
PENALTIES = st.floats(0.1, 10)
IDS = st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=30)


def random_logits(seed, n=SIZE):
    return np.random.default_rng(seed).normal(size=n) * 3


def processed(processor, logits, ids=None):
    """What a logits processor of transformers makes of one row."""
    return processor(ids and torch.tensor([ids]), torch.tensor(logits)[None])[0].numpy()


@pytest.fixture(scope="module")
def official_processors():
    """A function giving the processors that transformers' own generate puts together for settings."""
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=SIZE, **sizes))

    def processors(**settings):
        settings = {"top_k": 0, **{name: value for name, value in settings.items() if value is not None}}
        config = GenerationConfig(do_sample=True, pad_token_id=0, eos_token_id=1, **settings)
        model._prepare_special_tokens(config)
        return model._get_logits_processor(config, input_ids_seq_length=1)

    return processors


@given(logits=LOGITS, k=st.integers(1, 2 * SIZE))
def test_top_k_equals_transformers(logits, k):
    np.testing.assert_array_equal(keep_top_k(logits, k), processed(TopKLogitsWarper(k), logits))


def away_from_border(logits, p):
    """Whether no sum of probabilities is so near to ``p`` that rounding decides."""
    mass = torch.tensor(np.sort(logits)).softmax(-1).cumsum(-1)
    return p == 1 or float((mass - (1 - p)).abs().min()) > 1e-9


@given(logits=SPREAD, p=SHARES)
def test_top_p_equals_transformers(logits, p):
    assume(away_from_border(logits, p))
    np.testing.assert_array_equal(keep_top_p(logits, p), processed(TopPLogitsWarper(p), logits))


@given(logits=TIED, p=SHARES)
def test_top_p_keeps_as_many_of_equal_logits_as_transformers_the_first_ones(logits, p):
    assume(away_from_border(logits, p))
    kept = keep_top_p(logits, p)
    np.testing.assert_array_equal(np.sort(kept), np.sort(processed(TopPLogitsWarper(p), logits)))
    border = np.flatnonzero(logits == logits[kept > -np.inf].min())
    assert sorted(kept[border] > -np.inf, reverse=True) == (kept[border] > -np.inf).tolist()


@pytest.mark.parametrize(("p", "n_kept"), [(0.499, 1), (0.501, 2), (0.511, 3), (0.985, 49), (0.9999, 50)])
def test_a_nucleus_reaches_into_the_many_that_are_equally_improbable(p, n_kept):
    logits = np.log([0.5, *[0.5 / 49] * 49])
    assert np.flatnonzero(keep_top_p(logits, p) > -np.inf).tolist() == list(range(n_kept))
    assert np.count_nonzero(processed(TopPLogitsWarper(p), logits) > -np.inf) == n_kept


@pytest.mark.parametrize("p", [0.05, 0.5, 0.9, 0.999])
def test_the_nucleus_of_a_whole_vocabulary_equals_transformers(p):
    logits = random_logits(1, n=49152)
    np.testing.assert_array_equal(keep_top_p(logits, p), processed(TopPLogitsWarper(p), logits))


@given(logits=LOGITS, p=st.floats(0, 1))
def test_min_p_equals_transformers(logits, p):
    np.testing.assert_array_equal(keep_min_p(logits, p), processed(MinPLogitsWarper(p), logits))


@given(logits=LOGITS, seen=IDS, penalty=PENALTIES)
def test_the_repetition_penalty_equals_transformers(logits, seen, penalty):
    before = logits.copy()
    expected = processed(RepetitionPenaltyLogitsProcessor(penalty), logits, seen)
    np.testing.assert_array_equal(penalize_repetition(logits, seen, penalty), expected)
    np.testing.assert_array_equal(logits, before)


@given(
    logits=SPREAD,
    seen=IDS,
    temperature=st.floats(0.05, 5),
    top_k=st.none() | st.integers(1, 2 * SIZE),
    top_p=st.none() | SHARES,
    min_p=st.none() | st.floats(0, 1),
    repetition_penalty=PENALTIES,
)
def test_all_settings_together_equal_those_of_transformers_generate(
    official_processors, logits, seen, **settings
):
    expected = torch.tensor(processed(official_processors(**settings), logits, seen)).softmax(-1).numpy()
    found = chances(logits, Sampling(**settings), seen)
    np.testing.assert_array_equal(found > 0, expected > 0)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-300)


def test_the_filters_see_what_the_ones_before_them_left():
    logits = np.log([0.4, 0.3, 0.2, 0.1])
    # Of the two best, 0.4 is more than half: with top-p alone the second would stay.
    assert np.count_nonzero(chances(logits, Sampling(1.0, top_p=0.5), [])) == 2
    assert np.count_nonzero(chances(logits, Sampling(1.0, top_k=2, top_p=0.5), [])) == 1
    # At temperature 2 the last is half as probable as the first, not a quarter.
    assert np.count_nonzero(chances(logits, Sampling(1.0, min_p=0.4), [])) == 3
    assert np.count_nonzero(chances(logits, Sampling(2.0, min_p=0.4), [])) == 4


@given(logits=LOGITS, seen=IDS, penalty=PENALTIES)
def test_temperature_0_takes_the_largest_penalized_logit(logits, seen, penalty):
    sampling = Sampling(0, top_k=3, top_p=0.5, min_p=0.5, repetition_penalty=penalty)
    token = sample(logits, sampling, seen, np.random.default_rng())
    assert token == processed(RepetitionPenaltyLogitsProcessor(penalty), logits, seen).argmax()
    assert chances(logits, sampling, seen).tolist() == [float(number == token) for number in range(SIZE)]


def test_draws_follow_the_chances():
    logits = random_logits(0, n=8)
    sampling = Sampling(0.7, top_k=4, top_p=0.9)
    rng = np.random.default_rng(0)
    drawn = [sample(logits, sampling, [], rng) for _ in range(4000)]
    np.testing.assert_allclose(
        np.bincount(drawn, minlength=8) / 4000, chances(logits, sampling, []), atol=0.03
    )


@given(logits=LOGITS, seed=SEEDS)
def test_a_draw_is_where_the_seeds_number_falls_among_the_summed_chances(logits, seed):
    sampling = Sampling(1.5, top_k=20)
    upto = np.cumsum(chances(logits, sampling, []))
    number = np.random.default_rng(seed).random()
    assume(np.abs(upto - number).min() > 1e-9)
    assert sample(logits, sampling, [], np.random.default_rng(seed)) == int((upto <= number).sum())


def test_a_temperature_however_small_draws_the_largest_logit():
    rng = np.random.default_rng(0)
    for temperature in (1e-3, 1e-300, 1e-320):
        assert sample(np.array([1.0, 2.0, 30.0]), Sampling(temperature), [], rng) == 2


@pytest.mark.parametrize("setting", [{"top_k": 1}, {"top_p": 1e-9}, {"top_p": 1e-20}, {"min_p": 1.0}])
def test_the_narrowest_filters_leave_the_largest_logit(setting):
    for seed in range(20):
        logits = random_logits(seed).astype(np.float32)
        assert np.flatnonzero(chances(logits, Sampling(1.0, **setting), [])) == [logits.argmax()]


@pytest.mark.parametrize("setting", [{}, {"top_k": SIZE}, {"top_p": 1.0}, {"min_p": 0.0}])
def test_the_widest_filters_leave_the_softmax(setting):
    logits = random_logits(3)
    expected = torch.tensor(logits).softmax(-1).numpy()
    np.testing.assert_allclose(chances(logits, Sampling(1.0, **setting), []), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        *(("temperature", value) for value in (-0.1, float("nan"), float("inf"))),
        *(("top_k", value) for value in (0, -1)),
        *(("top_p", value) for value in (0, -0.5, 1.5, float("nan"))),
        *(("min_p", value) for value in (-0.1, 1.1, float("nan"))),
        *(("repetition_penalty", value) for value in (0, -1, float("nan"), float("inf"))),
    ],
)
def test_a_setting_outside_its_range_is_refused(setting, value):
    with pytest.raises(InputError, match=f"{setting} is {value}: give"):
        Sampling(**{setting: value})


def test_settings_do_not_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Sampling().temperature = 1.0


@given(logits=LOGITS, tokens=IDS)
def test_log_probabilities_equal_pytorch(logits, tokens):
    rows = np.stack([logits + number for number in range(len(tokens))])
    expected = torch.tensor(logits).log_softmax(-1).numpy()[tokens]
    np.testing.assert_allclose(log_probability(rows, np.array(tokens)), expected, atol=1e-9)


def test_log_probabilities_of_far_logits_do_not_overflow():
    logits = np.array([[1e4, -1e4], [-1e4, 1e4]], np.float32)
    assert log_probability(logits, np.array([0, 0])).tolist() == [0, -2e4]


@given(logits=LOGITS)
def test_the_entropy_equals_pytorch(logits):
    expected = torch.distributions.Categorical(logits=torch.tensor(logits)).entropy()
    assert entropy(logits) == pytest.approx(float(expected), abs=1e-9)


def test_the_entropy_lies_between_certainty_and_all_alike():
    assert entropy(np.array([0.0, -np.inf, -2000.0])) == 0
    assert entropy(np.zeros(49152, np.float32)) == pytest.approx(np.log(49152))


@given(logits=LOGITS, n=st.integers(0, SIZE))
def test_the_most_probable_tokens_come_in_order(logits, n):
    best = most_probable(logits, n)
    assert len(set(best.tolist())) == n
    np.testing.assert_array_equal(logits[best], np.sort(logits)[::-1][:n])
