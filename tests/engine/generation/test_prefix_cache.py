import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ContextLengthError, InputError
from engine.generation import decoder as decoder_module
from engine.generation.prefix_cache import PrefixCache, common_prefix
from engine.models import decoders
from engine.models.kv_cache import KVCache, kv_bytes

START = "The harbour of Vardholm was begun in 1891. "
FIRST = START + "Forty masons finished it in"
SECOND = START + "Its keeper kept bees and"
OTHER = "Knead the dough for ten minutes and let it"
N_NEW = 6
ROUNDING = 1e-2  # what keys and values of 16 bits make of a log-probability


class Sizes:
    n_layers, n_kv_heads, d_head = 2, 3, 4


def first_layers(decoder, n_layers=10):
    """A decoder of fewer layers, which takes less time."""
    weights = replace(decoder.weights, layers=decoder.weights.layers[:n_layers])
    return replace(decoder, weights=weights, config=replace(decoder.config, n_layers=n_layers))


@pytest.fixture(scope="module")
def decoder(decoder):
    return first_layers(decoder)


@pytest.fixture(scope="module")
def readable_decoder(readable_decoder):
    return first_layers(readable_decoder)


@pytest.fixture
def read(monkeypatch):
    """The number of tokens of every pass through the layers."""
    counts, forward, next_logits = [], decoder_module.decoder_forward, decoder_module.next_logits

    def counted(ids, *arguments):
        counts.append(len(ids))
        return forward(ids, *arguments)

    def counted_few(ids, *arguments):
        counts.append(len(ids))
        return next_logits(ids, *arguments)

    monkeypatch.setattr(decoder_module, "decoder_forward", counted)
    monkeypatch.setattr(decoder_module, "next_logits", counted_few)
    return counts


@pytest.fixture(scope="module")
def alone(decoder):
    """Steps of each prompt without any reuse."""
    return {prompt: list(decoder.generate(prompt, max_new_tokens=N_NEW)) for prompt in (FIRST, SECOND, OTHER)}


def generate(decoder, prompt, cache, **settings):
    return list(decoder.generate(prompt, max_new_tokens=N_NEW, reuse=cache, prompt_lookup=False, **settings))


def assert_same(steps, expected):
    assert [step.token_id for step in steps] == [step.token_id for step in expected]
    assert [step.text for step in steps] == [step.text for step in expected]
    found, wanted = ([step.log_probability for step in some] for some in (steps, expected))
    np.testing.assert_allclose(found, wanted, atol=ROUNDING)


def shared(decoder, *prompts):
    """How many tokens two prompts have in common at their beginning."""
    first, second = map(decoder.prompt_ids, prompts)
    return next(n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)


def test_the_same_prompt_is_read_once_but_for_its_last_token(decoder, alone, read):
    cache, n_prompt = PrefixCache(), len(decoder.prompt_ids(FIRST))
    assert_same(generate(decoder, FIRST, cache), alone[FIRST])
    assert cache.reused_tokens == 0
    assert read == [n_prompt] + [1] * (N_NEW - 1)
    read.clear()
    assert_same(generate(decoder, FIRST, cache), alone[FIRST])
    assert cache.reused_tokens == n_prompt - 1
    assert read == [1] * N_NEW


def test_a_prompt_that_begins_alike_is_read_from_where_it_differs(decoder, alone, read):
    cache, n_shared = PrefixCache(), shared(decoder, FIRST, SECOND)
    generate(decoder, FIRST, cache)
    read.clear()
    assert_same(generate(decoder, SECOND, cache), alone[SECOND])
    assert cache.reused_tokens == n_shared > 5
    assert read == [len(decoder.prompt_ids(SECOND)) - n_shared] + [1] * (N_NEW - 1)
    assert_same(generate(decoder, FIRST, cache), alone[FIRST])
    assert cache.reused_tokens == n_shared


def test_a_prompt_that_shares_nothing_is_read_whole(decoder, alone, read):
    cache = PrefixCache()
    generate(decoder, FIRST, cache)
    read.clear()
    assert_same(generate(decoder, OTHER, cache), alone[OTHER])
    assert cache.reused_tokens == 0
    assert read == [len(decoder.prompt_ids(OTHER))] + [1] * (N_NEW - 1)


def test_an_answer_is_reused_by_the_prompt_that_goes_on_from_it(decoder, alone):
    cache = PrefixCache()
    ids = decoder.prompt_ids(FIRST) + [step.token_id for step in generate(decoder, FIRST, cache)]
    assert len(cache) == len(ids) - 1  # the last token was chosen, and never read
    further = [*ids, *decoder.prompt_ids(" Then")]
    expected = list(decoder.generate(further, max_new_tokens=N_NEW))
    assert_same(generate(decoder, further, cache), expected)
    assert cache.reused_tokens == len(ids) - 1


def test_a_shorter_prompt_rolls_the_cache_back(decoder, alone):
    cache, ids = PrefixCache(), decoder.prompt_ids(FIRST)
    generate(decoder, FIRST, cache)
    expected = list(decoder.generate(ids[:8], max_new_tokens=N_NEW))
    assert_same(generate(decoder, ids[:8], cache), expected)
    assert cache.reused_tokens == 7
    assert_same(generate(decoder, FIRST, cache), alone[FIRST])
    assert cache.reused_tokens >= 8


@pytest.mark.parametrize("n_taken", [0, 1, 3])
def test_a_generation_given_up_midway_leaves_what_it_read(decoder, alone, n_taken):
    cache, n_prompt = PrefixCache(), len(decoder.prompt_ids(FIRST))
    steps = decoder.generate(FIRST, max_new_tokens=N_NEW, reuse=cache)
    for _ in range(n_taken):
        next(steps)
    steps.close()
    assert len(cache) == (n_prompt + n_taken - 1 if n_taken else 0)
    assert_same(generate(decoder, FIRST, cache), alone[FIRST])
    assert cache.reused_tokens == (n_prompt - 1 if n_taken else 0)


def test_a_forgotten_generation_gives_the_cache_back(decoder):
    cache = PrefixCache()
    next(decoder.generate(FIRST, reuse=cache))
    gc.collect()
    assert len(cache) == len(decoder.prompt_ids(FIRST))


def test_a_pass_that_fails_leaves_what_was_read_before_it(readable_decoder, alone, monkeypatch):
    decoder = readable_decoder
    cache, n_prompt = PrefixCache(), len(decoder.prompt_ids(FIRST))
    steps = decoder.generate(FIRST, max_new_tokens=N_NEW, reuse=cache)
    next(steps)
    with monkeypatch.context() as patch:
        extend, calls = KVCache.extend, []

        def fail_midway(self, layer, key, value):
            calls.append(layer)
            if layer == 7:
                raise MemoryError
            return extend(self, layer, key, value)

        patch.setattr(KVCache, "extend", fail_midway)
        with pytest.raises(MemoryError):
            next(steps)
        assert calls == list(range(8))
    assert len(cache) == n_prompt
    assert_same(generate(decoder, SECOND, cache), alone[SECOND])
    assert_same(generate(decoder, FIRST, cache), alone[FIRST])


def test_two_generations_taken_in_turns_do_not_mix(decoder, alone):
    cache = PrefixCache()
    generate(decoder, FIRST, cache)
    prompts = (FIRST, SECOND)
    running = [decoder.generate(prompt, max_new_tokens=N_NEW, reuse=cache) for prompt in prompts]
    taken = list(zip(*running, strict=True))
    for prompt, steps in zip(prompts, zip(*taken, strict=True), strict=True):
        assert_same(steps, alone[prompt])
    assert cache.reused_tokens == 0  # the second went without
    assert_same(generate(decoder, FIRST, cache), alone[FIRST])


def test_generations_in_several_threads_do_not_mix(decoder, alone):
    cache, prompts = PrefixCache(), [FIRST, SECOND, OTHER] * 2
    with ThreadPoolExecutor(3) as threads:
        found = list(threads.map(lambda prompt: generate(decoder, prompt, cache), prompts))
    for prompt, steps in zip(prompts, found, strict=True):
        assert_same(steps, alone[prompt])


def test_another_decoder_starts_the_cache_anew(decoder, alone):
    cache = PrefixCache()
    weights = replace(decoder.weights, final_norm=decoder.weights.final_norm[::-1])
    other = replace(decoder, weights=weights)
    generate(decoder, FIRST, cache)
    expected = list(other.generate(FIRST, max_new_tokens=N_NEW))
    assert_same(generate(other, FIRST, cache), expected)
    assert cache.reused_tokens == 0
    assert_same(generate(other, FIRST, cache), expected)
    assert cache.reused_tokens > 0
    assert_same(generate(decoder, FIRST, cache), alone[FIRST])
    assert cache.reused_tokens == 0


def test_a_decoder_that_is_gone_is_not_kept_alive(decoder):
    cache = PrefixCache()
    norm = decoder.weights.final_norm.copy()
    other = replace(decoder, weights=replace(decoder.weights, final_norm=norm))
    gone = [weakref.ref(other.weights), weakref.ref(norm)]
    generate(other, FIRST, cache)
    del other, norm
    gc.collect()
    assert [reference() for reference in gone] == [None, None]
    generate(decoder, FIRST, cache)
    assert cache.reused_tokens == 0


def test_the_way_through_a_decoder_is_written_down_once_for_all_prompts(decoder, monkeypatch):
    cache, written, record = PrefixCache(), [], decoders.record_pass
    monkeypatch.setattr(decoders, "record_pass", lambda *given: written.append(given) or record(*given))
    generate(decoder, FIRST, cache)
    generate(decoder, SECOND, cache)
    assert len(written) == 1
    generate(decoder, FIRST, PrefixCache())
    assert len(written) == 2


def test_without_a_kv_cache_nothing_is_reused(decoder, alone, read):
    cache, n_prompt = PrefixCache(), len(decoder.prompt_ids(FIRST))
    generate(decoder, FIRST, cache)
    read.clear()
    assert_same(generate(decoder, FIRST, cache, kv_cache=False), alone[FIRST])
    assert cache.reused_tokens == 0
    assert read == [n_prompt + number for number in range(N_NEW)]


def test_draws_are_the_same_with_reuse(decoder):
    cache, settings = PrefixCache(), {"temperature": 1.0, "seed": 5, "top_k": 20}
    generate(decoder, SECOND, cache)
    found = generate(decoder, FIRST, cache, **settings)
    assert cache.reused_tokens > 0
    assert_same(found, list(decoder.generate(FIRST, max_new_tokens=N_NEW, **settings)))


def test_log_probabilities_reuse_what_comes_before_the_first_token_asked_for(decoder, read):
    cache, ids = PrefixCache(), decoder.prompt_ids(FIRST)
    expected = decoder.log_probabilities(ids, 12)
    generate(decoder, FIRST, cache)
    read.clear()
    np.testing.assert_allclose(decoder.log_probabilities(ids, 12, reuse=cache), expected, atol=ROUNDING)
    assert cache.reused_tokens == 11  # the prediction of token 12 is needed anew
    assert read == [len(ids) - 1 - 11]
    assert len(cache) == len(ids) - 1
    read.clear()
    changed = [*ids[:5], *decoder.prompt_ids(" a"), *ids[6:]]
    expected = decoder.log_probabilities(changed, 12)
    read.clear()
    np.testing.assert_allclose(decoder.log_probabilities(changed, 12, reuse=cache), expected, atol=ROUNDING)
    assert cache.reused_tokens == 5
    assert read == [6, len(ids) - 1 - 11]


def test_the_cache_tells_its_size(decoder):
    cache = PrefixCache()
    assert (len(cache), cache.n_bytes, cache.reused_tokens) == (0, 0, 0)
    steps = generate(decoder, FIRST, cache)
    config, n_tokens = decoder.config, len(decoder.prompt_ids(FIRST)) + len(steps)
    assert len(cache) == n_tokens - 1
    float16_bytes = 2
    numbers = n_tokens * 2 * config.n_layers * config.n_kv_heads * config.d_head
    assert cache.n_bytes == numbers * float16_bytes


def test_a_cache_of_8_bits_is_about_half_as_large_and_is_not_taken_for_one_of_16(decoder):
    cache, small = PrefixCache(), replace(decoder, kv_bits=8)
    generate(small, FIRST, cache)
    scale_bytes, n_tokens = 4, len(decoder.prompt_ids(FIRST)) + N_NEW
    vectors = n_tokens * 2 * decoder.config.n_layers * decoder.config.n_kv_heads
    assert cache.n_bytes == vectors * (decoder.config.d_head + scale_bytes)
    again = generate(small, FIRST, cache)
    assert cache.reused_tokens == len(decoder.prompt_ids(FIRST)) - 1
    assert_same(again, generate(small, FIRST, PrefixCache()))
    assert_same(generate(decoder, FIRST, cache), generate(decoder, FIRST, PrefixCache()))
    assert cache.reused_tokens == 0


@given(st.lists(st.integers(0, 2)), st.lists(st.integers(0, 2)))
def test_the_common_beginning_is_all_that_is_equal_and_no_more(first, second):
    n = common_prefix(first, second)
    assert first[:n] == second[:n]
    assert first[: n + 1] != second[: n + 1] or n == len(first) == len(second)


@given(
    st.lists(st.tuples(st.sampled_from(["extend", "rollback"]), st.integers(0, 9)), max_size=30),
    st.integers(0, 8),
    st.sampled_from([np.float32, np.int8]),
)
def test_keys_and_values_are_those_written_whatever_grew_or_was_rolled_back(actions, capacity, dtype):
    cache, written = KVCache(Sizes, capacity, 10_000, dtype), []  # the numbers of the tokens that count
    for number, (action, size) in enumerate(actions):
        if action == "rollback":
            size = min(size, len(written))
            cache.rollback(size)
            written = written[:size]
            continue
        written += [100 * number + token for token in range(size)]
        for layer in range(Sizes.n_layers):
            new = np.array(written[len(written) - size :], np.float32)
            key = np.tile(new[:, None], (Sizes.n_kv_heads, 1, Sizes.d_head)) + layer
            keys, values = cache.extend(layer, key, -key)
            np.testing.assert_allclose(keys[0, :, 0], np.array(written) + layer, rtol=1e-6)
            np.testing.assert_array_equal(values, -keys)
            assert keys.shape == (Sizes.n_kv_heads, len(written), Sizes.d_head)
        cache.length = len(written)
    assert cache.n_bytes == kv_bytes(Sizes, cache.capacity, dtype)
    assert cache.capacity <= max(capacity, 2 * (9 * 30))


def test_room_doubles_so_that_few_tokens_are_ever_copied():
    cache, capacities = KVCache(Sizes, 4, limit=1000), []
    for _ in range(1000):
        for layer in range(Sizes.n_layers):
            cache.extend(layer, *np.zeros((2, Sizes.n_kv_heads, 1, Sizes.d_head)))
        cache.length += 1
        capacities.append(cache.capacity)
    assert sorted(set(capacities)) == [4, 8, 16, 32, 64, 128, 256, 512, 1000]


def test_room_can_be_made_ahead():
    cache = KVCache(Sizes, 4, limit=100)
    cache.reserve(50)
    assert cache.capacity == 50
    cache.reserve(10)
    assert cache.capacity == 50
    cache.reserve(60)
    assert cache.capacity == 100


def test_a_cache_without_a_limit_keeps_its_size():
    cache = KVCache(Sizes, 4)
    new = np.zeros((Sizes.n_kv_heads, 5, Sizes.d_head))
    with pytest.raises(ContextLengthError, match="5 tokens do not fit into a cache of 4"):
        cache.extend(0, new, new)


@pytest.mark.parametrize("length", [-1, 4])
def test_rolling_back_to_what_was_never_read_is_refused(length):
    cache = KVCache(Sizes, 8)
    cache.length = 3
    with pytest.raises(InputError, match=f"cannot roll back to {length} tokens: give 0 to 3"):
        cache.rollback(length)
    assert cache.length == 3
