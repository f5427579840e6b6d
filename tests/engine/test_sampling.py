import numpy as np
import pytest
import torch
from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from engine.generation.sampling import keep_top_k, keep_top_p, sample


def random_logits(seed, n=50):
    return np.random.default_rng(seed).normal(size=n) * 3


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", [1, 7, 50, 80])
def test_top_k_equals_transformers(seed, k):
    logits = random_logits(seed)
    expected = TopKLogitsWarper(k)(None, torch.tensor(logits)[None])[0].numpy()
    np.testing.assert_array_equal(keep_top_k(logits, k), expected)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("p", [0.01, 0.3, 0.9, 1.0])
def test_top_p_equals_transformers(seed, p):
    logits = random_logits(seed)
    expected = torch.tensor(logits)[None] if p == 1 else TopPLogitsWarper(p)(None, torch.tensor(logits)[None])
    np.testing.assert_array_equal(keep_top_p(logits, p), expected[0].numpy())


def test_draws_follow_the_distribution_of_transformers_warpers():
    logits = random_logits(0, n=8)
    warped = TemperatureLogitsWarper(0.7)(None, torch.tensor(logits)[None])
    expected = TopPLogitsWarper(0.9)(None, TopKLogitsWarper(4)(None, warped)).softmax(-1)[0].numpy()
    rng = np.random.default_rng(0)
    drawn = [sample(logits, 0.7, 4, 0.9, rng) for _ in range(4000)]
    np.testing.assert_allclose(np.bincount(drawn, minlength=8) / 4000, expected, atol=0.03)


def test_temperature_0_takes_the_largest_logit():
    logits = random_logits(3)
    assert sample(logits, 0, None, None, np.random.default_rng()) == int(logits.argmax())


def test_a_temperature_however_small_draws_the_largest_logit():
    rng = np.random.default_rng(0)
    for temperature in (1e-3, 1e-300, 1e-320):
        assert sample(np.array([1.0, 2.0, 30.0]), temperature, None, None, rng) == 2


def test_the_smallest_nucleus_and_top_1_draw_the_largest_logit():
    logits, rng = random_logits(4), np.random.default_rng(0)
    assert {sample(logits, 1.0, 1, None, rng) for _ in range(20)} == {int(logits.argmax())}
    assert {sample(logits, 1.0, None, 1e-9, rng) for _ in range(20)} == {int(logits.argmax())}
