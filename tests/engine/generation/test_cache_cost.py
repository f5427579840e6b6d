import pytest

from engine.errors import InputError
from engine.generation.cache_cost import cache_bytes, measure_cache
from engine.models.decoders import new_cache


def test_the_cache_saves_more_the_longer_the_text(decoder):
    seen = []
    ids = list(range(300))
    cost = measure_cache(decoder, ids, (8, 300), lambda done, total: seen.append((done, total)))
    assert cost.lengths == (8, 300)
    assert seen == [(1, 2), (2, 2)]
    assert cost.uncached_s[1] > 3 * cost.cached_s[1]
    assert cost.uncached_s[1] > 2 * cost.uncached_s[0]


def test_the_bytes_are_those_of_all_keys_and_values(decoder):
    number = new_cache(decoder.weights, decoder.config, 1).keys.itemsize
    # SmolLM2-135M: 30 layers, 3 heads of keys and values, 64 dimensions
    assert cache_bytes(decoder, 640) == 2 * 30 * 3 * 64 * number * 640


@pytest.mark.parametrize("length", [0, 11])
def test_a_length_outside_the_text_is_refused(decoder, length):
    with pytest.raises(InputError, match=f"length {length} is not within the text: give 1 to 10"):
        measure_cache(decoder, list(range(10)), (5, length))
