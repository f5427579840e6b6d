from dataclasses import replace

import numpy as np
import pytest

from engine.errors import InputError
from engine.generation.cache_cost import cache_bytes, measure_cache, measure_precision
from engine.generation.sampling import divergence
from engine.models.decoders import new_cache


def test_each_length_is_measured_with_the_cache_and_without(decoder):
    seen = []
    cost = measure_cache(decoder, list(range(40)), (4, 40), lambda done, total: seen.append((done, total)))
    assert cost.lengths == (4, 40)
    assert seen == [(1, 2), (2, 2)]
    assert 600 > cost.uncached_s[1] > cost.cached_s[1] > 0


def test_the_bytes_are_those_of_all_keys_and_values(decoder):
    number = new_cache(decoder.weights, decoder.config, 1).keys.itemsize
    # SmolLM2-135M: 30 layers, 3 heads of keys and values, 64 dimensions
    assert cache_bytes(decoder, 640) == 2 * 30 * 3 * 64 * number * 640


def test_8_bits_are_compared_with_16(decoder):
    text = "Vardholm's harbour was begun in 1891, and forty masons finished it three years later. " * 4
    ids, seen = decoder.prompt_ids(text)[:70], []
    small = replace(decoder, kv_bits=8)
    of_16, of_8 = measure_precision(decoder, ids, 66, lambda done, total: seen.append((done, total)))
    assert (of_16.kv_bits, of_16.divergence, of_16.same_greedy) == (16, 0, 1)
    assert of_8.kv_bits == 8
    assert (of_16.n_bytes, of_8.n_bytes) == (cache_bytes(decoder, 70), cache_bytes(small, 70))
    assert of_8.n_bytes / of_16.n_bytes == (64 + 4) / (2 * 64)
    logits = [each.logits(ids)[-66:] for each in (decoder, small)]
    np.testing.assert_allclose(of_8.divergence, divergence(*logits).mean(), rtol=1e-3)
    assert 1e-7 < of_8.divergence < 0.01
    assert of_8.same_greedy == np.equal(*(each.argmax(axis=1) for each in logits)).mean()
    assert seen == [(64, 66), (66, 66)]
    with pytest.raises(InputError, match="n_compared is 0: give 1 or more"):
        measure_precision(decoder, ids, 0)


def test_a_length_outside_the_text_is_refused(decoder):
    for length in (0, 11):
        with pytest.raises(InputError, match=f"length {length} is not within the text: give 1 to 10"):
            measure_cache(decoder, list(range(10)), (5, length))
