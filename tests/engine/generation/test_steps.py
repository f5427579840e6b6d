from concurrent.futures import ThreadPoolExecutor

import pytest

from engine.generation import decoder as decoder_module
from engine.generation.steps import MOST_WAITING, Steps, steps_of
from tests.engine.generation.test_prefix_cache import first_layers
from tests.engine.generation.test_prompt_lookup import DRAWN, REFRAIN, contents

PROMPTS = [f"{start} {REFRAIN[: 20 * n]}" for n, start in enumerate(("One", "Two", "Six", "Ten", "All"), 1)]


@pytest.fixture(scope="module")
def decoder(decoder):
    return first_layers(decoder)


@pytest.fixture
def sizes(monkeypatch):
    """How many texts each step has."""
    found, read = [], Steps._read
    monkeypatch.setattr(
        Steps, "_read", lambda own, texts, *rest: found.append(len(texts)) or read(own, texts, *rest)
    )
    return found


def test_texts_of_many_threads_are_to_the_last_bit_what_each_is_alone(decoder, sizes):
    """They begin and end at different times, more of them than a step has room for."""
    jobs = [
        (p, {"max_new_tokens": 5 + 5 * n, "seed": n, **own})
        for n, p in enumerate(PROMPTS)
        for own in ({}, DRAWN)
    ]

    def write(job):
        return contents(decoder.generate(job[0], **(job[1] | {"n_candidates": 2})))

    alone = list(map(write, jobs))
    assert set(sizes) == {1}
    with ThreadPoolExecutor(len(jobs)) as threads:
        assert list(threads.map(write, jobs)) == alone
    assert max(sizes) > 1


def test_a_text_that_is_left_fails_or_is_not_read_does_not_hold_up_the_others(decoder, monkeypatch):
    expected = contents(decoder.generate(PROMPTS[0], max_new_tokens=MOST_WAITING + 20))
    left, unread, failing = (decoder.generate(p, max_new_tokens=200) for p in PROMPTS[1:4])
    for text in (left, unread, failing):
        next(text)
    sample, own = decoder_module.sample, decoder.prompt_ids(PROMPTS[3])

    def broken(logits, sampling, ids, rng):
        if ids[: len(own)] == own:
            raise ValueError("no token")
        return sample(logits, sampling, ids, rng)

    monkeypatch.setattr(decoder_module, "sample", broken)
    written = decoder.generate(PROMPTS[0], max_new_tokens=MOST_WAITING + 20)
    begun = contents([next(written)])
    left.close()
    assert begun + contents(written) == expected
    steps = steps_of(decoder.weights)
    assert MOST_WAITING <= max(len(row.said) for row in steps._rows) < MOST_WAITING + 8
    with pytest.raises(ValueError, match="no token"):
        list(failing)
    unread.close()
    assert not steps._rows
