import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.generation.prefix_cache import PrefixCache
from engine.generation.prompt_lookup import GUESSED_TOKENS, PromptLookup
from engine.generation.steps import Steps

MOST = max(GUESSED_TOKENS.values())
IDS = st.lists(st.integers(0, 3), max_size=40)

# What a small model continues by saying it again, word for word.
REFRAIN = "The river rises in the hills. The river runs to the sea. " * 3 + "The river"
DRAWN = {"temperature": 0.5, "top_p": 0.9, "repetition_penalty": 1.01, "seed": 7}


def searched(ids):
    """What followed where as many of the last tokens as possible occurred last, found by looking at all."""
    for n, n_guessed in GUESSED_TOKENS.items():
        for place in range(len(ids) - 1, n - 1, -1):
            if ids[place - n : place] == ids[len(ids) - n :]:
                return ids[place : place + n_guessed]
    return []


@given(IDS, st.lists(st.integers(1, 5), max_size=10), st.integers(0, MOST))
def test_as_much_of_what_followed_last_time_is_guessed_as_is_of_use(ids, pieces, most):
    lookup = PromptLookup()
    for end in [*np.cumsum(pieces).tolist(), len(ids)]:
        assert lookup.guess(ids[:end], most) == searched(ids[:end])[:most]


@pytest.fixture
def passes(monkeypatch):
    """The number of tokens of every pass after the prompt's."""
    counts, read = [], Steps._read

    def counted(own, texts, *arguments):
        counts.extend(len(ids) for ids, _ in texts)
        return read(own, texts, *arguments)

    monkeypatch.setattr(Steps, "_read", counted)
    return counts


def contents(steps):
    """All fields of steps but whether they were guessed."""
    return [(s.token_id, s.text, s.log_probability, s.finish_reason, s.entropy, s.candidates) for s in steps]


@pytest.mark.parametrize("settings", [{}, DRAWN, {"n_candidates": 3}, {"stop": "the sea"}], ids=str)
def test_an_answer_is_the_same_to_the_last_bit_with_guesses_and_without(decoder, passes, settings):
    with_guesses = list(decoder.generate(REFRAIN, max_new_tokens=24, **settings))
    n_passes, most_tokens = len(passes), max(passes)
    without = list(decoder.generate(REFRAIN, max_new_tokens=24, prompt_lookup=False, **settings))
    assert contents(with_guesses) == contents(without)
    assert not any(step.guessed for step in without)
    assert sum(step.guessed for step in with_guesses) > 0
    assert n_passes < len(passes) - n_passes
    assert most_tokens == 1 + MOST


@pytest.mark.parametrize("n_taken", [1, 3, MOST + 2])  # places in a pass of guesses
def test_a_generation_that_is_left_keeps_only_what_it_yielded(decoder, n_taken):
    reuse = PrefixCache()
    ids = decoder.prompt_ids(REFRAIN)
    steps = decoder.generate(ids, max_new_tokens=24, reuse=reuse)
    said = [next(steps).token_id for _ in range(n_taken)]
    steps.close()
    again = list(decoder.generate([*ids, *said], max_new_tokens=6, reuse=reuse))
    assert reuse.reused_tokens >= len(ids) + n_taken - 2
    fresh = list(decoder.generate([*ids, *said], max_new_tokens=6))
    assert [step.token_id for step in again] == [step.token_id for step in fresh]
    np.testing.assert_allclose(
        [step.log_probability for step in again], [step.log_probability for step in fresh], atol=1e-2
    )
