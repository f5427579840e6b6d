import numpy as np
import pytest
import torch

from engine.errors import ContextLengthError, InputError
from engine.generation import decoder as decoder_module
from engine.generation.decoder import Decoder
from engine.layers.activation import log_softmax
from engine.models.kv_cache import KVCache
from engine.weights.catalog import DEFAULT_DECODER
from engine.weights.fetch import model_path

CHAT = [{"role": "user", "content": "What is the capital of France? Answer in one sentence."}]
PROMPTS = [
    CHAT,
    [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why is the sky blue? 🌤"}],
    "Once upon a time, in 東京, there lived",
    "def fibonacci(n):\n    ",
    "The tower was begun in 1891. " * 30 + "It was finished in",
]


@pytest.fixture(scope="module")
def official():
    """The same GGUF file, read and dequantised by transformers."""
    from transformers import AutoModelForCausalLM

    path = model_path(DEFAULT_DECODER)
    return AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32).eval()


def tokens(steps):
    return [step.token_id for step in steps]


def text(steps):
    return "".join(step.text for step in steps)


@pytest.mark.parametrize("prompt", PROMPTS, ids=range(len(PROMPTS)))
def test_logits_and_64_greedy_tokens_equal_transformers(decoder, official, official_greedy, prompt):
    ids = decoder.prompt_ids(prompt)
    with torch.inference_mode():
        logits = official(torch.tensor([ids])).logits[0].numpy()
    np.testing.assert_allclose(decoder.logits(ids), logits, rtol=0, atol=1e-3)
    expected = official_greedy(official, ids, 64, sorted(decoder.end_ids))
    assert tokens(decoder.generate(prompt, max_new_tokens=64)) == expected


@pytest.mark.parametrize("prompt", PROMPTS[:3], ids=range(3))
def test_cached_and_uncached_generation_give_the_same_tokens(decoder, prompt):
    cached = tokens(decoder.generate(prompt, max_new_tokens=20))
    assert tokens(decoder.generate(prompt, max_new_tokens=20, kv_cache=False)) == cached


def test_a_prompt_read_in_blocks_gives_the_same_logits(decoder, monkeypatch):
    ids = decoder.prompt_ids(PROMPTS[1])
    whole = decoder.next_logits(ids, KVCache(decoder.config, len(ids)))
    monkeypatch.setattr(decoder_module, "BLOCK_TOKENS", 7)
    np.testing.assert_allclose(decoder.next_logits(ids, KVCache(decoder.config, len(ids))), whole, atol=1e-3)


def test_the_cache_has_a_fixed_size(decoder):
    cache = KVCache(decoder.config, capacity=4)
    decoder.next_logits([1, 2, 3, 4], cache)
    with pytest.raises(ContextLengthError, match="5 tokens do not fit"):
        decoder.next_logits([5], cache)


def test_a_chat_answer_ends_by_itself(decoder):
    steps = list(decoder.generate(CHAT, max_new_tokens=64))
    assert steps[-1].finish_reason == "stop"
    assert "Paris" in text(steps)
    assert "<|im_end|>" not in text(steps)


def test_an_answer_is_cut_at_its_length(decoder):
    steps = list(decoder.generate("Once", max_new_tokens=5))
    assert [step.finish_reason for step in steps] == [None] * 4 + ["length"]
    assert text(steps) == decoder.tokenizer.decode(tokens(steps))


def test_log_probabilities_are_those_of_the_model(decoder):
    ids = decoder.prompt_ids("Once upon a")
    [step] = decoder.generate(ids, max_new_tokens=1)
    assert step.log_probability == pytest.approx(
        log_softmax(decoder.logits(ids)[-1])[step.token_id], abs=1e-4
    )


def test_a_stop_text_ends_the_answer_and_is_not_shown(decoder):
    full = text(decoder.generate(CHAT, max_new_tokens=32))
    assert "of France" in full
    steps = list(decoder.generate(CHAT, max_new_tokens=32, stop=["l of Fra"]))
    assert text(steps) == full[: full.index("l of Fra")]
    assert steps[-1].finish_reason == "stop"


def test_the_same_seed_draws_the_same_tokens(decoder):
    def draw(seed, **settings):
        return tokens(decoder.generate("Once upon", max_new_tokens=8, temperature=1.0, seed=seed, **settings))

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)
    assert draw(1, top_k=1) == tokens(decoder.generate("Once upon", max_new_tokens=8))


@pytest.mark.parametrize(
    ("settings", "error", "reason"),
    [
        ({"prompt": [5] * 9000}, ContextLengthError, "by 808"),
        ({"prompt": ""}, InputError, "empty"),
        ({"temperature": -1}, InputError, "temperature is -1"),
        ({"temperature": float("nan")}, InputError, "temperature is nan"),
        ({"top_p": 0}, InputError, "top_p is 0"),
        ({"top_p": 1.5}, InputError, "top_p is 1.5"),
        ({"top_k": 0}, InputError, "top_k is 0"),
        ({"max_new_tokens": 0}, InputError, "max_new_tokens is 0"),
    ],
)
def test_bad_settings_are_refused_before_the_first_token(decoder, settings, error, reason):
    with pytest.raises(error, match=reason):
        decoder.generate(**{"prompt": "Once", **settings})


def test_a_trace_is_causal_and_ends_in_the_logits(decoder):
    ids = decoder.prompt_ids("The cat sat on the mat.")
    trace = decoder.trace(ids)
    n, config = len(ids), decoder.config
    for i in (0, config.n_layers - 1):
        weights = trace[f"layers.{i}.attention.weights"]
        assert weights.shape == (config.n_heads, n, n)
        assert np.all(np.triu(weights, k=1) == 0)
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
        assert trace[f"layers.{i}.attention.key"].shape == (config.n_kv_heads, n, config.d_head)
        assert trace[f"layers.{i}.output"].shape == (n, config.d_model)
    np.testing.assert_allclose(trace["logits"], decoder.logits(ids), atol=1e-4)


def test_a_model_without_a_chat_template_says_so(decoder):
    plain = Decoder(**{**vars(decoder), "chat_template": None})
    with pytest.raises(InputError, match="no chat template"):
        plain.generate(CHAT)


def test_at_temperature_0_the_seed_does_not_matter(decoder):
    first, second = (tokens(decoder.generate("Once", max_new_tokens=4, seed=seed)) for seed in (1, 2))
    assert first == second


def test_a_trace_names_every_step(decoder):
    ids = decoder.prompt_ids("The cat")
    trace = decoder.trace(ids)
    steps = [
        *(f"attention.{name}" for name in ("norm", "query", "key", "value", "scores", "weights")),
        *("attention.context", "attention.output"),
        *(f"ffn.{name}" for name in ("norm", "gate", "hidden", "activation", "output")),
        "output",
    ]
    layers = {f"layers.{i}.{step}" for i in range(decoder.config.n_layers) for step in steps}
    assert set(trace) == layers | {"tokens", "ids", "embeddings.output", "norm", "logits"}
    assert trace["ids"].tolist() == ids
    assert trace["tokens"].tolist() == ["The", " cat"]


@pytest.mark.parametrize("number", [-5, 10**6])
def test_an_id_outside_the_vocabulary_is_refused(decoder, number):
    with pytest.raises(InputError):
        list(decoder.generate([number], max_new_tokens=1))
