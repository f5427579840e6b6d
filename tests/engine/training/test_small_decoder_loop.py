from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from engine.documents.loaders import load_corpus
from engine.errors import InputError
from engine.generation.sampling import Sampling
from engine.generation.small import generate
from engine.models.small_decoder import SmallDecoderConfig, forward
from engine.models.small_decoder_params import init_params
from engine.training.language.small_decoder_loop import TrainingSettings, TrainingState, held_out_loss, train
from engine.training.language.text_stream import even_windows, random_windows, split_tokens, write_tokens
from engine.training.language.vocabulary import Vocabulary, learn_vocabulary, token_texts

TINY = SmallDecoderConfig(vocab_size=8, d_model=16, n_layers=1, n_heads=2, d_ff=32, context=8)
TOKENS = np.tile(np.arange(8), 100)  # each token tells the next
CORPUS = "\n\n".join(document.text for document in load_corpus())
GREEDY = Sampling()


def trained(settings, state=None, config=TINY, n_reports=None):
    state = state or TrainingState.fresh(config, settings.seed)
    batches = random_windows(TOKENS, 4, config.context, np.random.default_rng(0))
    reports = train(state, batches, even_windows(TOKENS, 4, config.context), settings)
    return state, list(islice(reports, n_reports))


def test_a_rule_is_learnt_and_told():
    state, reports = trained(TrainingSettings(n_steps=120, learning_rate=1e-2, held_out_every=40))
    assert [report.update for report in reports] == list(range(1, 121))
    assert reports[0].loss == pytest.approx(np.log(8), abs=0.1)
    assert reports[-1].held_out_loss < 0.1
    measured = [report.update for report in reports if report.held_out_loss is not None]
    assert measured == [1, 40, 80, 120]
    assert all(report.grad_norm > 0 and report.tokens_per_s > 0 for report in reports)
    steps = list(generate(state.params, TINY, [5], 12, GREEDY, stop_ids={4}))
    assert [step.token_id for step in steps] == [6, 7, 0, 1, 2, 3, 4]
    assert steps[-1].finish_reason == "stop"
    expected = forward(state.params, np.array([5]), TINY)[-1]
    assert steps[0].log_probability == pytest.approx(expected[6] - np.log(np.exp(expected).sum()), abs=1e-5)


def test_a_step_is_torchs(torch):
    settings = TrainingSettings(n_steps=3, learning_rate=1e-2, n_warmup=0, max_norm=0.5)
    config = replace(TINY, n_layers=1, positions="learned")
    tensors = {name: torch.tensor(array) for name, array in init_params(config, 0).items()}
    optimizer = torch.optim.AdamW(tensors.values(), weight_decay=0.01, betas=(0.9, 0.99))
    losses = []
    batches = random_windows(TOKENS, 4, config.context, np.random.default_rng(0))
    for step, (inputs, targets) in zip(range(3), batches, strict=False):
        for tensor in tensors.values():
            tensor.grad = None
            tensor.requires_grad_()
        optimizer.param_groups[0]["lr"] = 1e-2 * 0.5 * (1 + np.cos(np.pi * step / 3))
        loss = torch_loss(torch.nn.functional, tensors, torch.tensor(inputs), torch.tensor(targets))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(tensors.values(), 0.5)
        optimizer.step()
        losses.append(loss.item())
    state, reports = trained(settings, config=config)
    np.testing.assert_allclose([report.loss for report in reports], losses, rtol=1e-4)
    for name, tensor in tensors.items():
        np.testing.assert_allclose(state.params[name], tensor.detach(), atol=2e-4, err_msg=name)


def torch_loss(functional, params, inputs, targets):
    def affine(x, name):
        return functional.linear(x, params[f"{name}.weight"], params[f"{name}.bias"])

    def norm(x, name):
        return functional.layer_norm(x, (16,), params[f"{name}.norm.weight"], params[f"{name}.norm.bias"])

    x = params["embedding.weight"][inputs] + params["positions.weight"]
    qkv = affine(norm(x, "layers.0.attention"), "layers.0.attention.qkv").split(16, dim=-1)
    heads = (part.unflatten(-1, (2, 8)).transpose(-3, -2) for part in qkv)
    context = functional.scaled_dot_product_attention(*heads, is_causal=True).transpose(-3, -2).flatten(-2)
    x = x + affine(context, "layers.0.attention.output")
    hidden = functional.gelu(affine(norm(x, "layers.0.ffn"), "layers.0.ffn.hidden"))
    x = norm(x + affine(hidden, "layers.0.ffn.output"), "final")
    return functional.cross_entropy((x @ params["embedding.weight"].T).flatten(0, 1), targets.flatten())


def test_a_learning_rate_that_diverges_is_found_and_the_last_good_weights_come_back():
    calm = TrainingSettings(n_steps=60, n_warmup=0)
    state, _ = trained(calm, n_reports=30)
    before = held_out_loss(state, even_windows(TOKENS, 4, TINY.context))
    assert "became" in trained(replace(calm, learning_rate=1e20))[1][-1].diverged  # not finite
    _, wild = trained(replace(calm, learning_rate=30.0), state)
    assert wild[-1].diverged is not None
    assert "lower learning rate" in wild[-1].diverged
    assert all(report.diverged is None for report in wild[:-1])
    assert state.n_updates < wild[-1].update
    assert all(np.isfinite(array).all() for array in state.params.values())
    assert held_out_loss(state, even_windows(TOKENS, 4, TINY.context)) <= before + 0.5
    _, again = trained(calm, state)
    assert again[-1].diverged is None


def test_settings_that_train_nothing_are_told():
    with pytest.raises(InputError, match="n_steps is 0: give 1 or more"):
        TrainingSettings(n_steps=0)
    with pytest.raises(InputError, match=r"max_norm is -1\.0: give a number above 0"):
        TrainingSettings(max_norm=-1.0)


@pytest.mark.parametrize(
    ("positions", "temperature"), [("sinusoidal", 1.0), ("learned", 0.0), ("rope", 1.0), ("alibi", 0.0)]
)
def test_the_cache_changes_nothing_but_the_time(positions, temperature):
    config = replace(TINY, positions=positions, n_layers=2)
    params = init_params(config, 1)
    runs = [
        list(generate(params, config, [1, 2, 3], 40, Sampling(temperature, seed=7), kv_cache=kept))
        for kept in (True, False)
    ]
    assert [step.token_id for step in runs[0]] == [step.token_id for step in runs[1]]
    for cached, uncached in zip(*runs, strict=True):
        assert cached.first_seen == uncached.first_seen
        assert cached.log_probability == pytest.approx(uncached.log_probability, abs=1e-5)
        np.testing.assert_allclose(cached.attention, uncached.attention, atol=1e-6)
        np.testing.assert_allclose(cached.attention.sum(axis=-1), 1, atol=1e-5)
    assert [step.finish_reason for step in runs[0][-2:]] == [None, "length"]


def test_nothing_to_write_on_from_is_told():
    params = init_params(TINY, 0)
    with pytest.raises(InputError, match="give a prompt"):
        next(generate(params, TINY, [], 5, GREEDY))
    with pytest.raises(InputError, match="id 9 is not in the vocabulary"):
        next(generate(params, TINY, [9], 5, GREEDY))


@pytest.mark.parametrize("kind", ["characters", "bpe"])
def test_the_file_holds_the_tokens_of_each_block(kind, tmp_path):
    blocks = [CORPUS[:10_000], CORPUS[10_000:30_000]]
    vocabulary = learn_vocabulary(kind, "".join(blocks), 400)
    tokenizer = vocabulary.tokenizer()
    assert tokenizer.vocab_size == vocabulary.size
    ids = {block: tokenizer.encode(block).ids for block in blocks}
    tokens = write_tokens(blocks, ids.get, vocabulary.size, tmp_path / "tokens")
    assert tokens.tolist() == [number for block in blocks for number in ids[block]]
    assert (tmp_path / "tokens").stat().st_size == 2 * len(tokens)
    assert tokenizer.decode(tokens) == "".join(blocks)
    many = write_tokens(["ab"], lambda text: [70_000 + ord(c) for c in text], 70_200, tmp_path / "many")
    assert many.tolist() == [70_097, 70_098]  # four bytes each


def test_tokens_have_a_text_each():
    bpe = learn_vocabulary("bpe", "thé thé thé", 260).tokenizer()
    assert "".join(token_texts(bpe, bpe.encode("thé").ids)) == "thé"
    assert token_texts(bpe, bpe.encode("ü").ids) == ["�", "�"]
    characters = Vocabulary("characters", ("a", "b")).tokenizer()
    assert token_texts(characters, [1, 0]) == ["b", "a"]


def test_a_corpus_shorter_than_the_context_is_told():
    training, held_out = split_tokens(np.arange(1000), 64)
    assert (len(training), len(held_out)) == (900, 100)
    with pytest.raises(InputError, match=r"40 tokens is too short for a context of 64: .* at most 19"):
        split_tokens(np.arange(40), 64)
    with pytest.raises(InputError, match=r"of 1 token is too short .* give more text$"):
        split_tokens(np.arange(1), 64)
    split_tokens(np.arange(40), 19)
    with pytest.raises(InputError, match="at most 7"):
        next(random_windows(np.arange(8), 1, 8, np.random.default_rng(0)))


def test_texts_that_are_none_are_told(tmp_path):
    with pytest.raises(InputError, match="no tokens"):
        write_tokens([], lambda text: [], 10, tmp_path / "t")
    for kind in ("characters", "bpe"):
        with pytest.raises(InputError, match="no text to learn a vocabulary from"):
            learn_vocabulary(kind, "", 300)
