import pytest

from engine.errors import InputError
from engine.generation.cache_cost import cache_bytes, measure_cache
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


def test_a_length_outside_the_text_is_refused(decoder):
    for length in (0, 11):
        with pytest.raises(InputError, match=f"length {length} is not within the text: give 1 to 10"):
            measure_cache(decoder, list(range(10)), (5, length))
