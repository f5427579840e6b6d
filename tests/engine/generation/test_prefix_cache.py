import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ContextLengthError, InputError
from engine.generation.prefix_cache import PrefixCache, common_prefix
from engine.models.kv_cache import KVCache

START = "The harbour of Vardholm was begun in 1891. "
FIRST = START + "Forty masons finished it in"
SECOND = START + "Its keeper kept bees and"
OTHER = "Knead the dough for ten minutes and let it"
N_NEW = 6
ROUNDING = 1e-2  # what keys and values of 16 bits make of a log-probability


class Sizes:
    n_layers, n_kv_heads, d_head = 2, 3, 4


def first_layers(decoder, n_layers=4):
    """A decoder of fewer layers, which takes less time."""
    weights = replace(decoder.weights, layers=decoder.weights.layers[:n_layers])
    return replace(decoder, weights=weights, config=replace(decoder.config, n_layers=n_layers))


@pytest.fixture(scope="module")
def decoder(decoder):
    return first_layers(decoder)


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


def test_only_what_differs_is_read_again(decoder, alone):
    first, second = map(decoder.prompt_ids, (FIRST, SECOND))
    n_shared = next(n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)
    cache, n_first = PrefixCache(), len(first)
    assert n_shared > 5
    for prompt, n_reused in (
        (FIRST, 0),
        (FIRST, n_first - 1),  # the prediction after the last token is needed anew
        (SECOND, n_shared),
        (FIRST, n_shared),
        (OTHER, 0),
    ):
        assert_same(generate(decoder, prompt, cache), alone[prompt])
        assert cache.reused_tokens == n_reused


def test_an_answer_is_reused_by_the_prompt_that_goes_on_from_it_and_a_shorter_one_rolls_back(decoder, alone):
    cache = PrefixCache()
    prompt = decoder.prompt_ids(FIRST)
    ids = prompt + [step.token_id for step in generate(decoder, FIRST, cache)]
    assert len(cache) == len(ids) - 1  # the last token was chosen, and never read
    for further, n_reused in (([*ids, *decoder.prompt_ids(" Then")], len(ids) - 1), (prompt[:8], 7)):
        expected = list(decoder.generate(further, max_new_tokens=N_NEW))
        assert_same(generate(decoder, further, cache), expected)
        assert cache.reused_tokens == n_reused
    assert_same(generate(decoder, FIRST, cache), alone[FIRST])
    assert cache.reused_tokens >= 8


@pytest.mark.parametrize("n_taken", [0, 3])
def test_a_generation_given_up_midway_leaves_what_it_read(decoder, alone, n_taken):
    cache, n_prompt = PrefixCache(), len(decoder.prompt_ids(FIRST))
    steps = decoder.generate(FIRST, max_new_tokens=N_NEW, reuse=cache)
    for _ in range(n_taken):
        next(steps)
    steps.close()
    assert len(cache) == (n_prompt + n_taken - 1 if n_taken else 0)
    assert_same(generate(decoder, FIRST, cache), alone[FIRST])
    assert cache.reused_tokens == (n_prompt - 1 if n_taken else 0)
    cache.clear()
    next(decoder.generate(FIRST, reuse=cache))  # a forgotten one gives the cache back, too
    gc.collect()
    assert len(cache) == n_prompt


def test_generations_in_turns_and_in_threads_do_not_mix(decoder, alone):
    cache = PrefixCache()
    generate(decoder, FIRST, cache)
    running = [decoder.generate(prompt, max_new_tokens=N_NEW, reuse=cache) for prompt in (FIRST, SECOND)]
    taken = zip(*zip(*running, strict=True), strict=True)
    for prompt, steps in zip((FIRST, SECOND), taken, strict=True):
        assert_same(steps, alone[prompt])
    assert cache.reused_tokens == 0  # the second went without
    prompts = [FIRST, SECOND, OTHER] * 2
    with ThreadPoolExecutor(3) as threads:
        found = list(threads.map(lambda prompt: generate(decoder, prompt, cache), prompts))
    for prompt, steps in zip(prompts, found, strict=True):
        assert_same(steps, alone[prompt])


def test_another_decoder_starts_the_cache_anew_and_is_not_kept_alive(decoder):
    cache = PrefixCache()
    norm = decoder.weights.final_norm[::-1].copy()
    other = replace(decoder, weights=replace(decoder.weights, final_norm=norm))
    gone = [weakref.ref(other.weights), weakref.ref(norm)]
    expected = list(other.generate(FIRST, max_new_tokens=N_NEW))
    generate(decoder, FIRST, cache)
    for is_reused in (False, True):
        assert_same(generate(other, FIRST, cache), expected)
        assert (cache.reused_tokens > 0) is is_reused
    del other, norm
    gc.collect()
    assert [reference() for reference in gone] == [None, None]
    generate(decoder, FIRST, cache)
    assert cache.reused_tokens == 0


def test_without_a_kv_cache_nothing_is_reused(decoder, alone):
    cache = PrefixCache()
    generate(decoder, FIRST, cache)
    assert_same(generate(decoder, FIRST, cache, kv_cache=False), alone[FIRST])
    assert cache.reused_tokens == 0


def test_the_cache_has_the_bytes_of_its_keys_and_values(decoder):
    cache, config, n_prompt = PrefixCache(), decoder.config, len(decoder.prompt_ids(FIRST))
    assert (len(cache), cache.n_bytes, cache.reused_tokens) == (0, 0, 0)
    generate(decoder, FIRST, cache)
    assert len(cache) == n_prompt + N_NEW - 1
    assert cache.n_bytes == (n_prompt + N_NEW) * 2 * config.n_layers * config.n_kv_heads * 2 * config.d_head


@given(st.lists(st.integers(0, 2)), st.lists(st.integers(0, 2)))
def test_the_common_beginning_is_all_that_is_equal_and_no_more(first, second):
    n = common_prefix(first, second)
    assert first[:n] == second[:n]
    assert first[: n + 1] != second[: n + 1] or n == len(first) == len(second)


@given(
    st.lists(st.tuples(st.sampled_from(["extend", "rollback"]), st.integers(0, 9)), max_size=30),
    st.integers(0, 8),
)
def test_keys_and_values_are_those_written_whatever_grew_or_was_rolled_back(actions, capacity):
    cache, written = KVCache(Sizes, capacity, 10_000), []  # the numbers of the tokens that count
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
    assert cache.n_bytes == 2 * 4 * Sizes.n_layers * Sizes.n_kv_heads * cache.capacity * Sizes.d_head
    assert cache.capacity <= max(capacity, 2 * (9 * 30))


def test_what_does_not_fit_and_what_was_never_read_are_refused():
    cache = KVCache(Sizes, 4)  # without a limit it keeps its size
    new = np.zeros((Sizes.n_kv_heads, 5, Sizes.d_head))
    with pytest.raises(ContextLengthError, match="5 tokens do not fit into a cache of 4"):
        cache.extend(0, new, new)
    cache.length = 3
    for length in (-1, 4):
        with pytest.raises(InputError, match=f"cannot roll back to {length} tokens: give 0 to 3"):
            cache.rollback(length)
    assert cache.length == 3
