from dataclasses import replace

import numpy as np
import pytest

from engine import Decoder
from engine.errors import ContextLengthError, InputError
from engine.generation.sampling import log_probability
from engine.inspection.model.logit_lens import logit_lens
from engine.inspection.model.patching import (
    align_prompts,
    expected_seconds,
    patch_each_head,
    patch_heads,
    patch_positions,
    read_pair,
    replacing,
    strongest,
)
from tests.engine.models.test_decoder_families import TEXT, save_folder
from tests.tokenizer_files import small_byte_level

ANSWER = [7, 9]
FACT = 4  # the place of the token that differs


def prompts(decoder):
    """Two prompts of one length that differ in one token."""
    clean = decoder.tokenizer.encode(TEXT).ids
    return clean, [*clean[:FACT], 11, *clean[FACT + 1 :]]


def answered(decoder, prompt, answer=ANSWER):
    return decoder.log_probabilities([*prompt, *answer], len(prompt)).sum()


def test_a_run_with_nothing_patched_is_the_corrupted_one(family):
    clean, corrupted = prompts(family)
    runs = read_pair(family, align_prompts(clean, corrupted, ANSWER))
    assert expected_seconds(runs, 2, 100) > 0  # and changes nothing in the runs
    assert runs.log_p_clean == pytest.approx(answered(family, clean), abs=1e-4)
    assert runs.log_p_corrupted == pytest.approx(answered(family, corrupted), abs=1e-4)
    for first in range(runs.n_layers + 1):
        assert runs.patched(first=first) == runs.log_p_corrupted
    assert patch_heads(runs, []) == runs.log_p_corrupted
    for row, states in enumerate(runs.clean.states):
        assert runs.patched(first=row, states=states) == runs.log_p_clean


def test_all_heads_of_a_layer_are_its_attention_output(family):
    runs = read_pair(family, align_prompts(*prompts(family), ANSWER))
    for layer in range(runs.n_layers):
        output = runs.clean.attention[layer, -len(ANSWER) :]
        trace = replacing({f"layers.{layer}.attention.output": (slice(-len(ANSWER), None), output)})
        heads = [(layer, head) for head in range(family.config.n_heads)]
        assert patch_heads(runs, heads) == pytest.approx(runs.patched(trace, layer), abs=1e-5)


def test_only_a_vector_that_differs_and_that_the_answer_still_sees_has_an_effect(family):
    clean, corrupted = prompts(family)
    pair = align_prompts(clean, corrupted, ANSWER)
    assert pair.n_aligned == len(clean) - FACT + len(ANSWER) - 1
    runs = read_pair(family, pair)
    patched = patch_positions(runs, "residual")
    assert patched.shape == (family.config.n_layers + 1, pair.n_aligned)
    assert patched[0, 0] == runs.log_p_clean  # the fact's own embedding
    np.testing.assert_array_equal(patched[0, 1:], runs.log_p_corrupted)  # the others are the same in both
    np.testing.assert_array_equal(patched[-1, : -len(ANSWER)], runs.log_p_corrupted)


def test_prompts_of_other_lengths_are_aligned_from_the_end(family):
    clean, _ = prompts(family)
    pair = align_prompts(clean, clean[FACT:], ANSWER)
    assert pair.n_aligned == len(clean) - FACT + len(ANSWER) - 1
    runs = read_pair(family, pair)
    assert runs.log_p_corrupted == pytest.approx(answered(family, clean[FACT:]), abs=1e-4)
    assert runs.patched(first=runs.n_layers, states=runs.clean.states[-1]) == runs.log_p_clean
    few = read_pair(family, pair, len(ANSWER))
    np.testing.assert_allclose(patch_each_head(few), patch_each_head(runs), atol=1e-5)


def official_module(model, part, layer):
    """The module whose output is a part, or for heads its input."""
    own = model.model.layers[layer]
    return {"residual": own, "attention": own.self_attn.o_proj, "ffn": own.mlp, "head": own.self_attn.o_proj}[
        part
    ]


def official_run(torch, model, ids, hooks):
    """Log-probability of the answer, with hooks (module, whether before it, function) on the way."""
    handles = [
        module.register_forward_pre_hook(lambda _, given, f=f: (f(given[0]),))
        if before
        else module.register_forward_hook(lambda _, given, out, f=f: f(out))
        for module, before, f in hooks
    ]
    with torch.inference_mode():
        logits = model(torch.tensor([[*ids, *ANSWER[:-1]]])).logits[0, -len(ANSWER) :].numpy()
    for handle in handles:
        handle.remove()
    return log_probability(logits, np.array(ANSWER)).sum()


def official_patch(torch, model, clean, corrupted, part, layer, places, columns=slice(None)):
    module, kept = official_module(model, part, layer), []

    def keep(value):
        kept.append(value.clone())
        return value

    def replace(value):
        patched = value.clone()
        patched[:, places, columns] = kept[0][:, places, columns]
        return patched

    official_run(torch, model, clean, [(module, part == "head", keep)])
    return official_run(torch, model, corrupted, [(module, part == "head", replace)])


def test_patches_equal_those_of_forward_hooks_in_transformers(torch, tmp_path):
    model = save_folder(tmp_path, small_byte_level(), "llama")
    decoder = Decoder.load(tmp_path)
    clean, corrupted = prompts(decoder)
    runs = read_pair(decoder, align_prompts(clean, corrupted, ANSWER))
    n_tokens, n = len(clean) + len(ANSWER) - 1, len(runs.ids)
    for part in ("residual", "attention", "ffn"):
        patched = patch_positions(runs, part)
        for layer in range(runs.n_layers):
            expected = [
                official_patch(torch, model, clean, corrupted, part, layer, place)
                for place in range(n_tokens - n, n_tokens)
            ]
            np.testing.assert_allclose(patched[layer + (part == "residual")], expected, atol=1e-4)
    heads = patch_each_head(runs)
    width, ends = decoder.config.d_head, slice(-len(ANSWER), None)
    for (layer, head), found in np.ndenumerate(heads):
        own = slice(head * width, (head + 1) * width)
        expected = official_patch(torch, model, clean, corrupted, "head", layer, ends, own)
        assert found == pytest.approx(expected, abs=1e-4)
    assert np.ptp(heads) > 0.01


def fact_runs(decoder, n=1):
    """A passage that contradicts the model, and the same one with what it knows."""
    [answer] = decoder.tokenizer.encode(" Berlin").ids
    clean, corrupted = (
        decoder.prompt_ids(f"By a new law, the capital of France is now{city}. The capital of France is now")
        for city in (" Berlin", " Paris")
    )
    return read_pair(decoder, align_prompts(clean, corrupted, [answer]), n)


def test_a_few_heads_carry_a_fact_that_contradicts_the_model(decoder):
    runs = fact_runs(decoder)
    lens = logit_lens(runs.clean.states, decoder, 1)
    own = logit_lens(runs.corrupted.states, decoder, 1)
    assert [decoder.token_text(int(one.targets[0])) for one in (lens, own)] == [" Berlin", " Paris"]
    heads = [(layer, head) for layer in range(runs.n_layers) for head in range(decoder.config.n_heads)]
    late, n_best = heads[20 * decoder.config.n_heads :], 5
    effects = runs.effects(np.array([patch_heads(runs, [head]) for head in late]))
    best = [late[place] for place in np.argsort(-effects)[:n_best]]
    assert runs.effects(np.array(patch_heads(runs, best))) > 0.5
    reverse = align_prompts(runs.pair.corrupted, runs.pair.clean, runs.pair.answer)
    damaged = read_pair(decoder, reverse, 1)  # the passage is there, and the heads do not see it
    fall = damaged.log_p_corrupted - patch_heads(damaged, best)
    assert fall > 2  # nats
    rng = np.random.default_rng(0)
    for _ in range(3):
        others = [heads[place] for place in rng.choice(len(heads), n_best, replace=False)]
        assert abs(runs.effects(np.array(patch_heads(runs, others)))) < 0.3
        assert abs(damaged.log_p_corrupted - patch_heads(damaged, others)) < fall / 2


def test_compiled_runs_equal_numpys(decoder, readable_decoder):
    heads = [(20, 3), (23, 1), (23, 4)]
    compiled, readable = fact_runs(decoder, n=8), fact_runs(readable_decoder, n=8)
    np.testing.assert_allclose(compiled.clean.heads, readable.clean.heads, atol=0.05)
    assert compiled.gap == pytest.approx(readable.gap, abs=0.03)
    assert patch_heads(compiled, heads) == pytest.approx(patch_heads(readable, heads), abs=0.03)


def test_a_cache_of_8_bits_is_that_of_the_model_and_changes_little(decoder, readable_decoder):
    for model in (decoder, readable_decoder):
        whole, eighth = fact_runs(model), fact_runs(replace(model, kv_bits=8))
        assert eighth.cache.keys.dtype == np.int8
        assert eighth.patched() == eighth.log_p_corrupted != whole.log_p_corrupted
        assert eighth.gap == pytest.approx(whole.gap, abs=0.3)


def test_a_sweep_can_be_stopped_and_shows_its_progress(family):
    runs, seen = read_pair(family, align_prompts(*prompts(family), ANSWER)), []

    def go_on(done, total):
        seen.append((done, total))
        return done < 3

    found = patch_each_head(runs, go_on)
    assert seen == [(done, found.size) for done in (1, 2, 3)]
    assert np.isnan(found).sum() == found.size - 3


def test_the_strongest_come_first_and_what_was_not_measured_never():
    effects = np.array([[0.1, np.nan], [0.7, -2.0], [0.4, np.nan]])
    assert strongest(effects, 2) == [(1, 0), (2, 0)]
    assert strongest(effects, 6) == [(1, 0), (2, 0), (0, 0), (1, 1)]


def test_prompts_that_cannot_be_compared_are_refused():
    for clean, corrupted, answer, reason in (
        ([5, 6], [5, 6], [7], "both prompts are the same"),
        ([5, 6], [5, 7], [7], "end in different tokens"),
        ([5, 6], [], [7], "a prompt is empty"),
        ([5, 6], [4, 6], [], "the answer is empty"),
    ):
        with pytest.raises(InputError, match=reason):
            align_prompts(clean, corrupted, answer)


def test_what_cannot_be_measured_is_refused_with_the_limit(family):
    decoder = family
    pair = align_prompts([5, 6, 7], [4, 6, 7], ANSWER)
    with pytest.raises(InputError, match="1 positions for an answer of 2 tokens: give 2 to 64"):
        read_pair(decoder, pair, 1)
    with pytest.raises(InputError, match="token id 9999 is not one"):
        read_pair(decoder, align_prompts([5, 9999, 7], [4, 6, 7], ANSWER))
    with pytest.raises(ContextLengthError, match="65 tokens exceed the 64 positions"):
        read_pair(decoder, align_prompts([5] * 64, [4, 6, 5], ANSWER))
    runs = read_pair(decoder, pair)
    with pytest.raises(InputError, match="part is 'head': give one of residual, attention, ffn"):
        patch_positions(runs, "head")
    with pytest.raises(InputError, match=r"by \+0\.40 nats, too little to be traced: 0\.5 are needed"):
        replace(runs, log_p_clean=runs.log_p_corrupted + 0.4).effects(np.zeros(1))
