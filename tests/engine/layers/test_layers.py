import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from engine.layers.activation import log_softmax, softmax
from engine.layers.attention import attention, causal_mask, window_mask, windowed_attention
from engine.layers.norm import l2_normalize, rms_norm
from engine.layers.quantization import dequantize, quantize

X = np.random.default_rng(0).normal(size=(5, 8)).astype(np.float32) * 4


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def test_softmax_neither_overflows_nor_loses_mass():
    weights = softmax(np.float32([[1000, 1000, -1000], [0, -np.inf, 0]]))
    np.testing.assert_allclose(weights, [[0.5, 0.5, 0], [0.5, 0, 0.5]])
    np.testing.assert_allclose(log_softmax(X), np.log(softmax(X)), atol=1e-4)


def test_the_rms_norm_equals_torch(torch):
    weight = random(8)
    expected = torch.nn.functional.rms_norm(torch.tensor(X), (8,), torch.tensor(weight), 1e-5)
    np.testing.assert_allclose(rms_norm(X, weight, 1e-5), expected.numpy(), atol=2e-6)


def test_l2_normalisation_keeps_a_zero_vector():
    y = l2_normalize(np.array([[3.0, 4.0], [0.0, 0.0]]))
    np.testing.assert_allclose(y, [[0.6, 0.8], [0, 0]])


@pytest.mark.parametrize(("before", "after"), [(0, 0), (4, 4), (3, 200), (400, 0), (400, 400)])
def test_windowed_attention_in_blocks_equals_the_masked_one(before, after):
    for n_tokens in (1, 5, 128, 129, 300):
        query, key, value = random(3, 2, n_tokens, 6)
        places = np.arange(n_tokens)
        mask = window_mask(places, places, before, after, query.dtype)
        n_seen = 1 + np.minimum(places, before) + np.minimum(places[::-1], after)
        np.testing.assert_array_equal(np.isfinite(mask).sum(axis=1), n_seen)
        found = windowed_attention(query, key, value, before, after)
        np.testing.assert_allclose(found, attention(query, key, value, mask), atol=1e-6)


def test_a_causal_mask_hides_what_comes_after():
    np.testing.assert_array_equal(np.isinf(causal_mask(2, 4, np.float32)), [[0, 0, 0, 1], [0, 0, 0, 0]])


@given(arrays(np.float32, (3, 8), elements=st.floats(-(2.0**100), 2.0**100, width=32)))
def test_a_vector_in_8_bits_is_off_by_half_a_step_at_most(x):
    codes, scales = quantize(x)
    assert (codes.dtype, scales.dtype) == (np.int8, np.float32)
    step = np.abs(x).max(axis=1) / 127
    np.testing.assert_allclose(scales, step, rtol=1e-6, atol=1e-44)
    assert np.abs(codes).max() <= 127
    off = np.abs(dequantize(codes, scales) - x)
    assert (off <= 0.5001 * step[:, None] + np.finfo(np.float32).tiny * 127).all()


def test_codes_are_rounded_to_the_nearest_and_halves_to_even():
    codes, scales = quantize(np.float32([[254, 1, 3, 2, -5, -254], [0] * 6]))
    np.testing.assert_array_equal(codes, [[127, 0, 2, 1, -2, -127], [0] * 6])
    np.testing.assert_array_equal(scales, [2, 0])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_vector_with_a_number_that_is_not_finite_has_none_that_is(bad):
    codes, scales = quantize(np.float32([[1, bad, 2], [1, 2, 3]]))
    with np.errstate(invalid="ignore"):
        found = dequantize(codes, scales)
    assert not np.isfinite(found[0]).any()
    np.testing.assert_allclose(found[1], [1, 2, 3], atol=0.02)
