import pytest

from engine.errors import InputError
from engine.generation.prefix_cache import PrefixCache
from engine.generation.replay import replay
from engine.generation.sampling import Sampling

PROMPT = [{"role": "user", "content": "Name three colours. Answer in one sentence."}]


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_a_known_answer_is_replayed_as_it_was_when_it_was_generated(decoder, temperature):
    prompt_ids = decoder.prompt_ids(PROMPT)
    generated = list(
        decoder.generate(prompt_ids, 8, temperature=temperature, top_k=40, seed=3, n_candidates=5)
    )
    known = replay(decoder, prompt_ids, [s.token_id for s in generated], 5, Sampling(temperature, top_k=40))
    assert [step.token_id for step in known] == [step.token_id for step in generated]
    assert "".join(step.text for step in known) == "".join(step.text for step in generated)
    for ours, theirs in zip(known, generated, strict=True):
        assert ours.log_probability == pytest.approx(theirs.log_probability, abs=1e-2)
        assert ours.entropy == pytest.approx(theirs.entropy, abs=1e-2)
        assert ours.token_id in [candidate.token_id for candidate in ours.candidates]
        chances = {candidate.token_id: candidate.chance for candidate in theirs.candidates}
        for candidate in ours.candidates:
            if candidate.token_id in chances:
                assert candidate.chance == pytest.approx(chances[candidate.token_id], abs=1e-2)


def test_the_token_that_ended_an_answer_has_no_text_and_what_was_read_is_kept(decoder):
    prompt_ids, cache = decoder.prompt_ids(PROMPT), PrefixCache()
    answer = [*decoder.tokenizer.encode("Red.").ids, min(decoder.end_ids)]
    steps = replay(decoder, prompt_ids, answer, 3, Sampling(), cache)
    assert [step.finish_reason for step in steps] == [None] * (len(steps) - 1) + ["stop"]
    assert "".join(step.text for step in steps) == "Red."
    next(decoder.generate([*prompt_ids, *answer[:2]], 1, reuse=cache))
    assert cache.reused_tokens == len(prompt_ids) + 1
    with pytest.raises(InputError, match="prompt is empty"):
        replay(decoder, [], [5], 1, Sampling())
