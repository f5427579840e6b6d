from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from engine.errors import InputError
from engine.models.seq2seq import Seq2SeqConfig, greedy_decode
from engine.models.seq2seq_params import init_params, parameter_shapes
from engine.training.backward.seq2seq import loss_and_gradients
from engine.training.language.seq2seq_loop import (
    Recipe,
    Training,
    Translation,
    learning_rate,
    least_loss,
    train,
    translate_pairs,
)
from engine.training.language.tasks import MAX_TOKENS, Pair, batch, date_task, draw_pairs, number_task

SMALL = Seq2SeqConfig(
    vocab_size=11,
    d_model=12,
    n_heads=3,
    d_head=5,
    d_ff=20,
    n_encoder_layers=2,
    n_decoder_layers=2,
    max_positions=12,
)
SOURCE = np.array([[3, 4, 5, 6, 7], [8, 9, 10, 0, 0], [5, 5, 0, 0, 0]])
TARGET = np.array([[1, 3, 4, 5, 2], [1, 9, 2, 0, 0], [1, 6, 7, 2, 0]])
TINY = Recipe(d_model=32, n_heads=2, d_ff=64, n_layers=1, n_steps=30, report_every=10, n_exam=7, batch_size=8)
SMALL_NUMBERS = number_task(99)


def noisy_params(config):
    """Random parameters, those of biases and norms too, so that none of their gradients goes unnoticed."""
    rng = np.random.default_rng(1)
    start = init_params(config, 0, np.dtype(float))
    return {name: value + 0.1 * rng.standard_normal(value.shape) for name, value in start.items()}


def torch_affine(x, params, name):
    return x @ params[f"{name}.weight"].T + params[f"{name}.bias"]


def torch_part(x, sublayer, params, name, config):
    import torch

    total = x + sublayer if config.residual else sublayer
    if config.norm == "none":
        return total
    weight, bias = params[f"{name}.norm.weight"], params[f"{name}.norm.bias"]
    return torch.nn.functional.layer_norm(total, (config.d_model,), weight, bias, config.norm_eps)


def torch_attention(x, source, mask, params, name, config):
    import torch

    def heads(y):
        return y.unflatten(-1, (config.n_heads, config.d_head)).transpose(-3, -2)

    query, key, value = (
        heads(torch_affine(of, params, f"{name}.{part}"))
        for of, part in ((x, "query"), (source, "key"), (source, "value"))
    )
    context = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    merged = context.transpose(-3, -2).flatten(-2)
    return torch_part(x, torch_affine(merged, params, f"{name}.output"), params, name, config)


def torch_ffn(x, params, name, config):
    hidden = torch_affine(x, params, f"{name}.hidden").relu()
    return torch_part(x, torch_affine(hidden, params, f"{name}.output"), params, name, config)


def torch_loss(source, target, params, config, label_smoothing):
    """The same model and loss from torch's own parts, for autograd."""
    import torch

    def embed(ids):
        angle = torch.arange(ids.shape[1])[:, None] / 10000 ** (
            torch.arange(0, config.d_model, 2, dtype=torch.float64) / config.d_model
        )
        position = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2)
        return params["embedding.weight"][ids] * config.d_model**0.5 + position

    seen = (source != config.pad_id)[:, None, None, :]
    memory = embed(source)
    for i in range(config.n_encoder_layers):
        name = f"encoder.layers.{i}"
        memory = torch_attention(memory, memory, seen, params, f"{name}.attention", config)
        memory = torch_ffn(memory, params, f"{name}.ffn", config)
    x = embed(target[:, :-1])
    before = torch.ones(x.shape[1], x.shape[1]).tril().bool()
    for i in range(config.n_decoder_layers):
        name = f"decoder.layers.{i}"
        x = torch_attention(x, x, before, params, f"{name}.attention", config)
        x = torch_attention(x, memory, seen, params, f"{name}.cross_attention", config)
        x = torch_ffn(x, params, f"{name}.ffn", config)
    logits = x @ params["embedding.weight"].T
    return torch.nn.functional.cross_entropy(
        logits.flatten(0, 1),
        target[:, 1:].flatten(),
        ignore_index=config.pad_id,
        label_smoothing=label_smoothing,
    )


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
@pytest.mark.parametrize(
    "config",
    [SMALL, replace(SMALL, norm="none"), replace(SMALL, residual=False), replace(SMALL, n_decoder_layers=1)],
    ids=["paper", "no norm", "no residual", "uneven"],
)
def test_loss_and_every_gradient_are_those_of_torch_s_autograd(config, label_smoothing):
    import torch

    params = noisy_params(config)
    loss, grads = loss_and_gradients(SOURCE, TARGET, params, config, label_smoothing)
    leaves = {name: torch.tensor(value, requires_grad=True) for name, value in params.items()}
    expected = torch_loss(torch.tensor(SOURCE), torch.tensor(TARGET), leaves, config, label_smoothing)
    expected.backward()
    assert abs(loss - expected.item()) < 1e-10 * abs(loss)
    largest = max(leaf.grad.abs().max().item() for leaf in leaves.values())
    assert {name: grad.shape for name, grad in grads.items()} == parameter_shapes(config)
    for name, leaf in leaves.items():
        theirs = leaf.grad.numpy()
        # A bias of the keys shifts all scores of a query alike, so its gradient is 0 but for rounding.
        tolerance = 1e-7 * np.abs(theirs).max() + 1e-14 * largest
        assert np.abs(grads[name] - theirs).max() < tolerance, name
        assert theirs.any(), name


def test_more_padding_changes_no_gradient():
    params = noisy_params(SMALL)
    _, grads = loss_and_gradients(SOURCE, TARGET, params, SMALL, 0.1)
    wider = (np.pad(ids, ((0, 0), (0, 2))) for ids in (SOURCE, TARGET))
    _, again = loss_and_gradients(*wider, params, SMALL, 0.1)
    for name, grad in grads.items():
        np.testing.assert_allclose(again[name], grad, atol=1e-12)


def test_gradients_keep_float32_and_are_near_those_of_float64():
    params = noisy_params(SMALL)
    single = {name: value.astype(np.float32) for name, value in params.items()}
    _, grads = loss_and_gradients(SOURCE, TARGET, params, SMALL, 0.1)
    _, rounded = loss_and_gradients(SOURCE, TARGET, single, SMALL, 0.1)
    for name, grad in grads.items():
        assert rounded[name].dtype == np.float32
        assert np.abs(rounded[name] - grad).max() < 1e-4 * max(1, np.abs(grad).max())


def test_a_tiny_model_learns_numbers_it_was_never_shown():
    task = number_task(999)
    recipe = replace(
        TINY, n_heads=4, batch_size=32, n_steps=300, report_every=300, learning_rate=4e-3, n_warmup=30
    )
    training = Training(task, recipe)
    reports = list(train(training))
    pairs = draw_pairs(task, np.random.default_rng(0), 200, held_out=True)
    right = np.mean([one.right for one in translate_pairs(task, pairs, training.good, training.config)])
    untrained = Training(task, recipe)
    before = translate_pairs(task, pairs, untrained.good, untrained.config)
    assert not any(one.right for one in before)
    assert right > 0.9
    assert reports[-1].n_updates == 300


def test_reports_tell_where_a_training_stands():
    training = Training(date_task(), TINY)
    reports = list(train(training))
    assert [report.n_updates for report in reports] == [10, 20, 30]
    assert reports == training.reports
    assert training.done
    assert training.failure is None
    assert list(train(training)) == []
    assert reports[-1].loss < reports[0].loss
    assert reports[0].seconds < reports[1].seconds < reports[2].seconds
    assert reports[-1].learning_rate == learning_rate(TINY, 30)
    for report in reports:
        assert len(report.exam) == 7
        assert report.exact == sum(one.output == one.pair.target for one in report.exam) / 7
    assert [one.pair for one in reports[0].exam] == [one.pair for one in reports[2].exam]


def test_the_loss_of_a_report_is_the_mean_since_the_one_before():
    often = list(train(Training(SMALL_NUMBERS, replace(TINY, report_every=1))))
    rarely = list(train(Training(SMALL_NUMBERS, TINY)))
    for place, report in enumerate(rarely):
        assert report.loss == pytest.approx(np.mean([r.loss for r in often[10 * place : 10 * place + 10]]))


def test_a_pause_changes_nothing_and_neither_does_a_second_training_beside():
    whole = Training(SMALL_NUMBERS, TINY)
    paused, other = Training(SMALL_NUMBERS, TINY), Training(SMALL_NUMBERS, replace(TINY, seed=1))
    list(train(whole))
    assert len(list(islice(train(paused), 1))) == 1
    list(train(other))
    assert [report.n_updates for report in train(paused)] == [20, 30]
    for name, param in whole.params.items():
        np.testing.assert_array_equal(paused.params[name], param)
    assert not np.array_equal(whole.params["embedding.weight"], other.params["embedding.weight"])


def test_steps_to_come_leave_the_weights_of_a_report_alone():
    training = Training(SMALL_NUMBERS, TINY)
    reports = train(training)
    next(reports)
    good, copies = training.good, {name: value.copy() for name, value in training.good.items()}
    next(reports)
    for name, value in copies.items():
        np.testing.assert_array_equal(good[name], value)
    assert not np.array_equal(training.good["embedding.weight"], copies["embedding.weight"])


@pytest.mark.parametrize("rate", [30.0, 1e30])
def test_a_loss_that_runs_away_ends_training_with_the_last_good_weights(rate):
    training = Training(SMALL_NUMBERS, replace(TINY, learning_rate=rate, n_warmup=1000, n_steps=1001))
    good = {name: value.copy() for name, value in training.params.items()}
    for _ in train(training):
        good = {name: value.copy() for name, value in training.params.items()}
    assert training.done
    assert "the weights of step" in training.failure
    assert f"learning rate below {rate:g}" in training.failure
    for name, value in good.items():
        np.testing.assert_array_equal(training.params[name], value)
    assert all(np.isfinite(report.loss) for report in training.reports)


def test_the_learning_rate_rises_and_falls():
    recipe = Recipe(n_steps=100, n_warmup=10, learning_rate=0.5)
    rates = [learning_rate(recipe, number) for number in (1, 5, 10, 55, 100)]
    assert rates == pytest.approx([0.05, 0.25, 0.5, 0.25, 0.0])


def test_the_least_loss_is_that_of_a_model_that_is_never_wrong():
    import torch

    for smoothing in (0.0, 0.1, 0.4):
        targets = torch.arange(7)
        probabilities = torch.full((7, 7), smoothing / 7, dtype=torch.float64).fill_diagonal_(
            1 - 6 / 7 * smoothing
        )
        logits = probabilities.clamp(min=1e-300).log()
        expected = torch.nn.functional.cross_entropy(logits, targets, label_smoothing=smoothing)
        assert least_loss(smoothing, 7) == pytest.approx(expected.item(), abs=1e-9)


def test_translations_of_a_batch_are_those_of_each_alone():
    training = Training(SMALL_NUMBERS, TINY)
    list(train(training))
    pairs = draw_pairs(SMALL_NUMBERS, np.random.default_rng(2), 6)
    together = translate_pairs(SMALL_NUMBERS, pairs, training.good, training.config)
    for pair, one in zip(pairs, together, strict=True):
        source, _ = batch(SMALL_NUMBERS, [pair])
        ids = greedy_decode(source[0], training.good, training.config, MAX_TOKENS - 1)
        assert one == Translation(pair, SMALL_NUMBERS.text(ids.tolist()))
    assert Translation(Pair("one", "uno"), "uno").right
    assert not Translation(Pair("one", "uno"), "un").right


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"batch_size": 0}, "batch_size 0 is below 1"),
        ({"n_heads": 5}, "d_model 32 is not a multiple of 5 heads"),
        ({"learning_rate": 0.0}, "give a learning rate above 0"),
        ({"label_smoothing": 1.0}, "below 1"),
    ],
)
def test_a_recipe_that_cannot_be_followed_is_refused(change, words):
    with pytest.raises(InputError, match=words):
        replace(TINY, **change)
