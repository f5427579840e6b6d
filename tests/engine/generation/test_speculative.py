import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine import Decoder
from engine.errors import InputError
from engine.generation import decoder as decoder_module
from engine.generation.sampling import Sampling, chances
from engine.generation.settings import DEFAULT_ANSWER
from engine.generation.speculative import DRAFT_TOKENS, DraftModel, Guess, chances_after_guess, choose
from engine.generation.writer import Writer
from tests.decoder_folders import make_model

PROMPT = [5, 6, 7, 8]
SIZES = {"hidden_size": 32, "num_attention_heads": 2, "num_key_value_heads": 1, "num_hidden_layers": 1}


@st.composite
def distributions(draw_from, n):
    """Probabilities of ``n`` tokens, some of them 0."""
    weights = np.array(draw_from(st.lists(st.just(0) | st.floats(1e-6, 1), min_size=n, max_size=n)))
    assume(weights.sum() > 0)
    return weights / weights.sum()


pairs = st.integers(1, 12).flatmap(lambda n: st.tuples(distributions(n), distributions(n)))


@given(pairs)
def test_over_all_guesses_a_token_is_as_probable_as_without_them(pair):
    p, q = pair
    found = sum(q[guess] * chances_after_guess(p, q, guess) for guess in np.flatnonzero(q))
    np.testing.assert_allclose(found, p, rtol=0, atol=1e-12)


@given(pairs)
def test_a_guess_is_accepted_by_the_ratio_of_its_probabilities(pair):
    p, q = pair
    for guess in np.flatnonzero(q):
        chance = chances_after_guess(p, q, guess)
        np.testing.assert_allclose(chance.sum(), 1)
        np.testing.assert_allclose(chance[guess], min(1, p[guess] / q[guess]), atol=1e-12)
        others = np.arange(p.size) != guess
        assert not chance[others & (p <= q)].any()  # what was guessed often enough replaces nothing


@given(pairs, st.integers(0, 11))
def test_what_is_guessed_without_a_draw_changes_nothing(pair, guess):
    p, _ = pair
    certain = np.eye(p.size)[guess % p.size]
    np.testing.assert_allclose(chances_after_guess(p, certain, guess % p.size), p, rtol=0, atol=1e-12)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_guess_without_chances_is_chosen_as_if_there_were_none(temperature):
    logits, sampling = np.float32([0.5, 2, 1, 0]), Sampling(temperature)
    for seed in range(20):
        found = [
            choose(logits, guess, 0, sampling, [], np.random.default_rng(seed))
            for guess in (Guess(), Guess([1]), Guess([3]))
        ]
        assert found[0] == found[1] == found[2]


@pytest.fixture(scope="module")
def make_small(tmp_path_factory):
    """A function that saves and loads a small random decoder."""

    def make(name="model", compiled=True, **sizes):
        folder = make_model(tmp_path_factory.mktemp(name), "llama", **sizes)
        return replace(Decoder.load(folder, compiled=compiled), end_ids=frozenset())

    return make


@pytest.fixture(scope="module")
def target(make_small):
    return make_small()


@pytest.fixture(scope="module")
def shallow(target):
    """The first of the target's two layers, which guess some of its tokens."""
    weights = replace(target.weights, layers=target.weights.layers[:1])
    return replace(target, config=replace(target.config, n_layers=1), weights=weights)


@pytest.fixture(scope="module")
def other(make_small):
    """A random draft, which guesses hardly any token."""
    return make_small(seed=1, **SIZES)


def tokens(steps):
    return [step.token_id for step in steps]


@pytest.mark.parametrize("kind", ["target", "shallow", "other"])
@pytest.mark.parametrize("penalty", [1.0, 1.2])
def test_greedy_tokens_are_the_same_with_a_draft(request, target, kind, penalty):
    draft, settings = request.getfixturevalue(kind), {"repetition_penalty": penalty, "n_candidates": 2}
    drafted = list(target.generate(PROMPT, 60, draft=draft, **settings))
    plain = list(target.generate(PROMPT, 60, prompt_lookup=False, **settings))
    assert [replace(step, guessed=False) for step in drafted] == plain
    n_guessed = sum(step.guessed for step in drafted)
    expected = {"target": range(47, 48), "shallow": range(1, 48), "other": range(48)}
    # All of the target's own guesses are right: of 60 tokens, the first and every fifth is not guessed.
    assert n_guessed in expected[kind]


def test_a_right_guess_saves_passes(target, monkeypatch):
    counts, next_logits = [], decoder_module.next_logits

    def counted(ids, weights, config, cache):
        counts.append((len(ids), config.n_layers))
        return next_logits(ids, weights, config, cache)

    monkeypatch.setattr(decoder_module, "next_logits", counted)
    twin = replace(target, config=replace(target.config, max_positions=200))
    list(target.generate(PROMPT, 1 + 2 * (DRAFT_TOKENS + 1), draft=twin))
    # Drafts read their tokens one by one, at first behind the prompt, then behind the token not guessed.
    drafted = [len(PROMPT) + 1] + [1] * (DRAFT_TOKENS - 1) + [1 + DRAFT_TOKENS]
    assert [n for n, _ in counts] == [*drafted, 2, *[1] * (DRAFT_TOKENS - 1), 1 + DRAFT_TOKENS]


def exact_chances(decoder, ids, n_new, sampling):
    """Probability of every continuation that has one, by its tokens."""
    if n_new == 0:
        return {(): 1.0}
    chance = chances(decoder.logits(ids)[-1], sampling, ids)
    return {
        (int(token), *rest): chance[token] * later
        for token in np.flatnonzero(chance)
        for rest, later in exact_chances(decoder, [*ids, int(token)], n_new - 1, sampling).items()
    }


def chi_squared(counts, expected):
    """The sum of ``(count - expected)^2 / expected``, and its degrees of freedom; rare cells count as one."""
    frequent = expected >= 5
    counts, expected = (np.append(x[frequent], x[~frequent].sum()) for x in (counts, expected))
    kept = expected > 0
    return (np.square(counts - expected)[kept] / expected[kept]).sum(), kept.sum() - 1


def test_drawn_tokens_have_the_distribution_without_a_draft(make_small):
    target = make_small(compiled=False, head_dim=16, **SIZES)
    norm = target.weights.final_norm
    moved = (norm * np.random.default_rng(0).uniform(0.5, 1.5, norm.shape)).astype(np.float32)
    draft = replace(target, weights=replace(target.weights, final_norm=moved))
    sampling, n_draws, n_new = Sampling(1.5, top_k=4, top_p=0.95, repetition_penalty=1.3), 1500, 4
    p, q = (exact_chances(one, PROMPT, n_new, sampling) for one in (target, draft))
    found, n_right = Counter(), 0
    for seed in range(n_draws):
        steps = list(target.generate(PROMPT, n_new, replace(sampling, seed=seed), draft=draft))
        found[tuple(tokens(steps))] += 1
        n_right += sum(step.guessed for step in steps)
    assert set(found) <= set(p)
    assert 0.2 < n_right / (n_draws * (n_new - 1)) < 0.9
    counts = np.array([found[cell] for cell in p])
    for expected, is_right in ((p, True), (q, False)):
        chance = np.array([expected.get(cell, 0) for cell in p])
        statistic, freedom = chi_squared(counts, n_draws * chance)
        assert freedom > 20
        assert (abs(statistic - freedom) < 4 * np.sqrt(2 * freedom)) == is_right


@pytest.mark.parametrize("compiled", [True, False])
def test_draws_with_a_draft_can_be_repeated(make_small, compiled):
    target, draft = (make_small(compiled=compiled, seed=seed, **SIZES) for seed in (0, 1))
    first, again, another = (
        tokens(target.generate(PROMPT, 30, temperature=1.0, seed=seed, draft=draft)) for seed in (3, 3, 4)
    )
    assert first == again
    assert first != another


def test_a_draft_of_another_vocabulary_is_refused(make_small, target, decoder, tmp_path):
    reason = f"draft {target.name} .257 tokens. has another vocabulary than {decoder.name} .49152 tokens."
    with pytest.raises(InputError, match=reason):
        decoder.generate("Once", draft=target)
    with pytest.raises(InputError, match=reason):
        Writer(decoder, draft=target).check(DEFAULT_ANSWER)
    folder = make_model(tmp_path, "llama", **SIZES)
    content = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = content["model"]["vocab"]
    vocabulary["a"], vocabulary["b"] = vocabulary["b"], vocabulary["a"]
    (folder / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match="give a smaller model of the same family"):
        target.generate(PROMPT, draft=Decoder.load(folder))


def test_a_draft_without_the_cache_is_refused(target):
    with pytest.raises(InputError, match="a draft needs the KV cache"):
        target.generate(PROMPT, draft=target, kv_cache=False)


@pytest.mark.parametrize("room", [1, 2, 5, 6, 30])
def test_the_contexts_of_both_models_end(target, room):
    ends = replace(target, config=replace(target.config, max_positions=len(PROMPT) + room))
    plain = tokens(target.generate(PROMPT, 20, prompt_lookup=False))
    by_short_draft = list(target.generate(PROMPT, 20, draft=ends))
    assert tokens(by_short_draft) == plain
    # The draft reads all but its last guess, which may have the place behind its last position.
    assert not any(step.guessed for step in by_short_draft[room + 1 :])
    short = list(ends.generate(PROMPT, 20, draft=target))
    assert tokens(short) == plain[:room]
    assert short[-1].finish_reason == "length"


@pytest.mark.parametrize("most", [0, 1, 3, 20])
def test_no_more_is_guessed_than_is_of_use(target, most):
    sampling, rng = Sampling(1.0), np.random.default_rng(0)
    guess = DraftModel(target, sampling, rng).guess(PROMPT, most)
    assert len(guess.tokens) == len(guess.chances) == min(most, DRAFT_TOKENS)
