import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.errors import InputError
from engine.generation import sampling as rules
from engine.generation.sampling import chances
from engine.layers.activation import softmax
from tests.pytorch import transformers

SIZE = 50
SEEDS = st.integers(0, 2**32)
SPREAD = SEEDS.map(lambda seed: np.random.default_rng(seed).normal(size=SIZE) * 3)
TIED = st.lists(st.integers(-4, 4), min_size=SIZE, max_size=SIZE).map(lambda values: np.array(values) / 2)
LOGITS = SPREAD | TIED
SHARES = st.floats(1e-6, 1)
PENALTIES = st.floats(0.1, 10)
IDS = st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=30)


@pytest.fixture(scope="session")
def processed(torch):
    """A function giving what a logits processor of transformers, by its class, makes of one row."""

    def process(name, setting, logits, ids=None):
        processor = getattr(transformers, name)(setting)
        return processor(ids and torch.tensor([ids]), torch.tensor(logits)[None])[0].numpy()

    return process


@pytest.fixture(scope="session")
def official_chances(torch):
    """A function giving the chances of tokens by transformers' own generate, for settings by their names."""
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=SIZE, **sizes))

    def chances(logits, seen, **settings):
        settings = {"top_k": 0, **{name: value for name, value in settings.items() if value is not None}}
        config = transformers.GenerationConfig(do_sample=True, pad_token_id=0, eos_token_id=1, **settings)
        model._prepare_special_tokens(config)
        processors = model._get_logits_processor(config, input_ids_seq_length=1)
        return processors(torch.tensor([seen]), torch.tensor(logits)[None])[0].softmax(-1).numpy()

    return chances


@given(logits=LOGITS, k=st.integers(1, 2 * SIZE), p=st.floats(0, 1), seen=IDS, penalty=PENALTIES)
def test_top_k_min_p_and_the_repetition_penalty_equal_transformers(processed, logits, k, p, seen, penalty):
    before = logits.copy()
    np.testing.assert_array_equal(rules.keep_top_k(logits, k), processed("TopKLogitsWarper", k, logits))
    np.testing.assert_array_equal(rules.keep_min_p(logits, p), processed("MinPLogitsWarper", p, logits))
    expected = processed("RepetitionPenaltyLogitsProcessor", penalty, logits, seen)
    np.testing.assert_array_equal(rules.penalize_repetition(logits, seen, penalty), expected)
    np.testing.assert_array_equal(logits, before)


@given(logits=TIED, p=SHARES)
def test_top_p_keeps_as_many_of_equal_logits_as_transformers_the_first_ones(processed, logits, p):
    mass = np.cumsum(softmax(np.sort(logits)))
    assume(p == 1 or np.abs(mass - (1 - p)).min() > 1e-9)  # no sum so near to ``p`` that rounding decides
    kept = rules.keep_top_p(logits, p)
    np.testing.assert_array_equal(np.sort(kept), np.sort(processed("TopPLogitsWarper", p, logits)))
    border = np.flatnonzero(logits == logits[kept > -np.inf].min())
    assert sorted(kept[border] > -np.inf, reverse=True) == (kept[border] > -np.inf).tolist()


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
    official_chances, logits, seen, **settings
):
    expected = official_chances(logits, seen, **settings)
    found = chances(logits, rules.Sampling(**settings), seen)
    np.testing.assert_array_equal(found > 0, expected > 0)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-300)


@given(logits=LOGITS, seen=IDS, penalty=PENALTIES)
def test_temperature_0_takes_the_largest_penalized_logit(logits, seen, penalty):
    sampling = rules.Sampling(0, top_k=3, top_p=0.5, min_p=0.5, repetition_penalty=penalty)
    token = rules.sample(logits, sampling, seen, np.random.default_rng())
    assert token == rules.penalize_repetition(logits, seen, penalty).argmax()
    assert chances(logits, sampling, seen).tolist() == [float(number == token) for number in range(SIZE)]


@given(logits=LOGITS, seed=SEEDS)
def test_a_draw_is_where_the_seeds_number_falls_among_the_summed_chances(logits, seed):
    sampling = rules.Sampling(1.5, top_k=20)
    upto = np.cumsum(chances(logits, sampling, []))
    number = np.random.default_rng(seed).random()
    assume(np.abs(upto - number).min() > 1e-9)
    assert rules.sample(logits, sampling, [], np.random.default_rng(seed)) == int((upto <= number).sum())


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
        rules.Sampling(**{setting: value})


@given(logits=LOGITS, tokens=IDS)
def test_log_probabilities_and_entropy_equal_pytorch(torch, logits, tokens):
    rows = np.stack([logits + number for number in range(len(tokens))])
    expected = torch.tensor(logits).log_softmax(-1).numpy()[tokens]
    np.testing.assert_allclose(rules.log_probability(rows, np.array(tokens)), expected, atol=1e-9)
    spread = torch.distributions.Categorical(logits=torch.tensor(logits)).entropy()
    assert rules.entropy(logits) == pytest.approx(float(spread), abs=1e-9)


def test_far_logits_do_not_overflow():
    logits = np.array([[1e4, -1e4], [-1e4, 1e4]], np.float32)
    assert rules.log_probability(logits, np.array([0, 0])).tolist() == [0, -2e4]
    assert rules.entropy(np.array([0.0, -np.inf, -2000.0])) == 0
    assert rules.entropy(np.zeros(49152, np.float32)) == pytest.approx(np.log(49152))


@given(logits=LOGITS, n=st.integers(0, SIZE))
def test_the_most_probable_tokens_come_in_order(logits, n):
    best = rules.most_probable(logits, n)
    assert len(set(best.tolist())) == n
    np.testing.assert_array_equal(logits[best], np.sort(logits)[::-1][:n])
