from dataclasses import replace
from functools import cache

import gguf
import numpy as np
import pytest

from engine.errors import ContextLengthError, InputError
from engine.generation import decoder as decoder_module
from engine.generation.sampling import Sampling, chances
from engine.layers.activation import log_softmax, softmax
from engine.models.kv_cache import KVCache
from engine.weights.catalog import DEFAULT_DECODER
from engine.weights.fetch import model_path
from tests.pytorch import transformers

CHAT = [{"role": "user", "content": "What is the capital of France? Answer in one sentence."}]
PROMPTS = [
    CHAT,
    [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why is the sky blue? 🌤"}],
    "Once upon a time, in 東京, there lived",
    "def fibonacci(n):\n    ",
    "The tower was begun in 1891. " * 10 + "It was finished in",
]


N_GREEDY = 32


@pytest.fixture(scope="module")
def official(gguf_reader, torch):
    """Logits ``(n_tokens, vocab_size)`` of the same GGUF file, dequantised by transformers."""
    path = model_path(DEFAULT_DECODER)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gguf, "GGUFReader", lambda path: gguf_reader)
        patch.setattr(gguf, "get_tensor_name_map", cache(gguf.get_tensor_name_map))  # called for every module
        model = transformers.AutoModelForCausalLM.from_pretrained(
            path.parent, gguf_file=path.name, dtype=torch.float32
        )

    def logits(ids):
        with torch.inference_mode():
            return model.eval()(torch.tensor([ids])).logits[0]

    return logits


@pytest.fixture(scope="module")
def chat_steps(decoder):
    """The answer to `CHAT`, which ends by itself."""
    return list(decoder.generate(CHAT, max_new_tokens=64, n_candidates=1))


def tokens(steps):
    return [step.token_id for step in steps]


def text(steps):
    return "".join(step.text for step in steps)


# As transformers decodes them, which the nightly test below does anew.
GREEDY = [
    [504, 3575, 282, 4649, 314, 7042, 30, 2],
    [504, 6376, 4461, 314, 253, 966, 282, 260, 2591, 506, 5264, 24484, 8118, 281, 511, 8939],
    [253, 3953, 16305, 3365, 13223, 123, 227, 18310, 227, 177, 129, 227, 30, 2306, 436, 253],
]


@pytest.mark.parametrize(
    ("prompt", "expected"), list(zip(PROMPTS, GREEDY, strict=False)), ids=range(len(GREEDY))
)
def test_greedy_tokens_are_those_of_transformers(decoder, prompt, expected):
    assert tokens(decoder.generate(prompt, max_new_tokens=16)) == expected


def test_logits_are_those_of_transformers(readable_decoder):
    last = readable_decoder.logits(readable_decoder.prompt_ids(PROMPTS[2]))[-1]
    assert np.argsort(-last)[:5].tolist() == [253, 827, 354, 800, 216]
    np.testing.assert_allclose(np.sort(last)[:-6:-1], [13.819, 10.047, 10.007, 9.858, 9.373], atol=1e-2)


@pytest.mark.nightly
@pytest.mark.parametrize("prompt", PROMPTS, ids=range(len(PROMPTS)))
def test_logits_and_greedy_tokens_equal_transformers(decoder, readable_decoder, official, prompt):
    ids, ours = decoder.prompt_ids(prompt), tokens(decoder.generate(prompt, max_new_tokens=N_GREEDY))
    logits = official(ids + ours).numpy()  # (n_prompt + n_new, vocab_size)
    np.testing.assert_allclose(readable_decoder.logits(ids), logits[: len(ids)], rtol=0, atol=1e-3)
    # Where every token is the most probable after those before it, they are what greedy decoding gives.
    assert ours == logits[len(ids) - 1 : -1].argmax(axis=1).tolist()
    assert not decoder.end_ids & set(ours[:-1])
    assert len(ours) == N_GREEDY or ours[-1] in decoder.end_ids


def test_a_prompt_read_in_blocks_gives_the_same_logits(decoder, monkeypatch):
    ids = decoder.prompt_ids(PROMPTS[1])
    whole = decoder.next_logits(ids, KVCache(decoder.config, len(ids)))
    monkeypatch.setattr(decoder_module, "BLOCK_TOKENS", 7)
    np.testing.assert_allclose(decoder.next_logits(ids, KVCache(decoder.config, len(ids))), whole, atol=1e-3)


def test_an_answer_ends_by_itself_or_at_its_length(decoder, chat_steps):
    assert chat_steps[-1].finish_reason == "stop"
    assert "Paris" in text(chat_steps)
    assert "<|im_end|>" not in text(chat_steps)
    steps = list(decoder.generate("Once", max_new_tokens=3))
    assert [step.finish_reason for step in steps] == [None] * 2 + ["length"]
    assert text(steps) == decoder.tokenizer.decode(tokens(steps))


def test_a_stop_text_ends_the_answer_and_is_not_shown_wherever_tokens_cut_it(decoder):
    steps = list(decoder.generate("Once upon", max_new_tokens=6))
    full = text(steps)
    for start in range(1, len(full) - 4, 5):
        stop = full[start : start + 4]
        for given in (stop, [stop]):
            stopped = list(decoder.generate("Once upon", max_new_tokens=6, stop=given))
            assert text(stopped) == full[: full.index(stop)]
            assert stopped[-1].finish_reason == "stop"
            assert tokens(stopped) == tokens(steps)[: len(stopped)]


@pytest.mark.parametrize(
    "settings",
    [
        {"repetition_penalty": 1.3},
        {"temperature": 1.2, "top_k": 40, "min_p": 0.05, "seed": 3, "repetition_penalty": 1.3},
    ],
)
def test_a_step_names_the_candidates_with_their_probabilities(readable_decoder, torch, settings):
    ids = readable_decoder.prompt_ids("The capital of France is")
    steps = list(readable_decoder.generate(ids, max_new_tokens=3, n_candidates=4, **settings))
    assert tokens(steps) == tokens(readable_decoder.generate(ids, max_new_tokens=3, **settings))
    sampling = Sampling(**{name: value for name, value in settings.items() if name != "seed"})
    all_logits = readable_decoder.logits(ids + tokens(steps[:-1]))[len(ids) - 1 :]  # (n_steps, vocab_size)
    for number, (step, logits) in enumerate(zip(steps, all_logits, strict=True)):
        probability, chance = softmax(logits), chances(logits, sampling, ids + tokens(steps[:number]))
        numbers = [candidate.token_id for candidate in step.candidates]
        assert numbers[:4] == np.argsort(-logits)[:4].tolist()
        assert step.token_id in numbers
        assert len(numbers) == (4 if step.token_id in numbers[:4] else 5)
        assert step.log_probability == pytest.approx(log_softmax(logits)[step.token_id], abs=1e-4)
        for candidate in step.candidates:
            special = readable_decoder.special_text(candidate.token_id)
            assert candidate.text == (special or readable_decoder.tokenizer.decode([candidate.token_id]))
            assert candidate.probability == pytest.approx(probability[candidate.token_id], abs=1e-4)
            assert candidate.chance == pytest.approx(chance[candidate.token_id], abs=1e-3)
        entropy = torch.distributions.Categorical(logits=torch.tensor(logits)).entropy()
        assert step.entropy == pytest.approx(float(entropy), abs=1e-3)


def test_log_probabilities_of_a_text_are_those_of_its_logits_a_few_at_once(readable_decoder, monkeypatch):
    ids = readable_decoder.prompt_ids(PROMPTS[4])[:20]
    expected_of_all = log_softmax(readable_decoder.logits(ids))
    monkeypatch.setattr(decoder_module, "BLOCK_TOKENS", 12)
    monkeypatch.setattr(decoder_module, "LOGIT_TOKENS", 3)
    for start in (1, 10, 20):
        expected = expected_of_all[np.arange(start - 1, 19), ids[start:]]
        np.testing.assert_allclose(readable_decoder.log_probabilities(ids, start), expected, atol=1e-3)
    for start in (0, -1, 21):
        with pytest.raises(InputError, match=f"start is {start}: give 1 to 20"):
            readable_decoder.log_probabilities(ids, start)


def test_the_same_seed_draws_the_same_tokens(decoder):
    def draw(seed, **settings):
        return tokens(decoder.generate("Once upon", max_new_tokens=4, temperature=1.0, seed=seed, **settings))

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)
    greedy = tokens(decoder.generate("Once upon", max_new_tokens=4))
    assert draw(1, top_k=1) == greedy
    assert tokens(decoder.generate("Once upon", max_new_tokens=4, seed=1)) == greedy  # at temperature 0


@pytest.mark.parametrize(
    ("settings", "error", "reason"),
    [
        ({"prompt": [5] * 9000}, ContextLengthError, "by 808"),
        ({"prompt": ""}, InputError, "empty"),
        ({"temperature": -1}, InputError, "temperature is -1"),
        ({"max_new_tokens": 0}, InputError, "max_new_tokens is 0"),
        ({"n_candidates": -1}, InputError, "n_candidates is -1: give 0 to 49152"),
        ({"seed": -1}, InputError, "seed is -1"),
        ({"prompt": [10**6]}, InputError, "token id 1000000"),
    ],
)
def test_bad_settings_are_refused_before_the_first_token(decoder, settings, error, reason):
    with pytest.raises(error, match=reason):
        decoder.generate(**{"prompt": "Once", **settings})


def test_a_trace_names_every_step_is_causal_and_ends_in_the_logits(readable_decoder):
    ids = readable_decoder.prompt_ids("The cat sat")
    trace = readable_decoder.trace(ids)
    n, config = len(ids), readable_decoder.config
    steps = [
        *(f"attention.{name}" for name in ("norm", "query", "key", "value", "scores", "weights")),
        *("attention.context", "attention.output"),
        *(f"ffn.{name}" for name in ("norm", "gate", "hidden", "activation", "output")),
        "output",
    ]
    layers = {f"layers.{i}.{step}" for i in range(config.n_layers) for step in steps}
    assert set(trace) == layers | {"tokens", "ids", "embeddings.output", "norm", "logits"}
    assert trace["ids"].tolist() == ids
    assert trace["tokens"].tolist() == ["The", " cat", " sat"]
    for i in (0, config.n_layers - 1):
        weights = trace[f"layers.{i}.attention.weights"]
        assert weights.shape == (config.n_heads, n, n)
        assert np.all(np.triu(weights, k=1) == 0)
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
        assert trace[f"layers.{i}.attention.key"].shape == (config.n_kv_heads, n, config.d_head)
        assert trace[f"layers.{i}.output"].shape == (n, config.d_model)
    np.testing.assert_allclose(trace["logits"], readable_decoder.logits(ids), atol=1e-4)
    chat = readable_decoder.trace(CHAT, keep=["tokens"])["tokens"].tolist()
    assert chat[:2] == ["<|im_start|>", "system"]


@pytest.mark.parametrize("adds_bos", [True, False])
def test_a_model_without_a_chat_template_gets_messages_behind_four_examples(decoder, adds_bos):
    start = (decoder.bos_id,) if adds_bos else ()
    plain = replace(decoder, chat_template=None, start_ids=start)
    chat, encoding = plain.chat_encoding([*CHAT, {"role": "assistant", "content": "<|im_end|>"}, CHAT[-1]])
    own = CHAT[-1]["content"]
    assert chat.text.count("Answer:") == 4 + 2
    assert chat.text.endswith(f"{own}\nAnswer: <|im_end|>\n\n{own}\nAnswer:")
    assert [chat.text[start:end] for start, end in chat.contents][-3:] == [own, "<|im_end|>", own]
    special = [number for number in encoding.ids if number in decoder.tokenizer.special.values()]
    assert special == list(start)
