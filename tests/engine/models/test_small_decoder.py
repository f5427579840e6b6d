from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ContextLengthError, InputError
from engine.kernels.primitives import compiled_training
from engine.layers.positions import alibi_bias, rope_tables, sinusoidal
from engine.layers.primitives import NUMPY_TRAINING
from engine.models.kv_cache import KVCache
from engine.models.small_decoder import SmallDecoderConfig, forward
from engine.models.small_decoder_params import init_params, parameter_shapes
from engine.training.backward.small_decoder import loss_and_gradients

POSITIONS = ("sinusoidal", "learned", "rope", "alibi")
SMALL = {"vocab_size": 11, "d_model": 16, "n_layers": 2, "n_heads": 4, "d_ff": 24, "context": 9}


def official_logits(torch, params, ids, config):
    """The same model in torch, with its layer norm, softmax attention and activations."""
    functional = torch.nn.functional
    n, d_model = ids.shape[-1], config.d_model
    heads, places = config.n_heads, np.arange(n)

    def norm(x, name):
        weight, bias = params[f"{name}.norm.weight"], params[f"{name}.norm.bias"]
        return functional.layer_norm(x, (d_model,), weight, bias)

    def affine(x, name):
        return functional.linear(x, params[f"{name}.weight"], params[f"{name}.bias"])

    def turn(x):
        cos, sin = (torch.tensor(t) for t in rope_tables(places, config.d_head, 10_000.0, np.float64))
        one, two = x.chunk(2, dim=-1)
        return torch.cat([one * cos - two * sin, two * cos + one * sin], dim=-1)

    def attend(x, name):
        query, key, value = (
            part.unflatten(-1, (heads, -1)).transpose(-3, -2)
            for part in affine(x, f"{name}.qkv").split(d_model, dim=-1)
        )
        if config.positions == "rope":
            query, key = turn(query), turn(key)
        mask = torch.zeros(n, n, dtype=x.dtype).masked_fill(torch.ones(n, n).triu(1) > 0, -torch.inf)
        if config.positions == "alibi":
            mask = mask + torch.tensor(alibi_bias(heads, n, n, np.dtype(np.float64)))
        context = functional.scaled_dot_product_attention(query, key, value, mask)
        return affine(context.transpose(-3, -2).flatten(-2), f"{name}.output")

    def feed_forward(x, name):
        act = getattr(functional, config.activation)
        return affine(act(affine(x, f"{name}.hidden")), f"{name}.output")

    x = functional.embedding(ids, params["embedding.weight"])
    if config.positions == "sinusoidal":
        x = x * d_model**0.5 + torch.tensor(sinusoidal(places, d_model, np.dtype(np.float64)))
    if config.positions == "learned":
        x = x + params["positions.weight"][:n]
    for i in range(config.n_layers):
        for name, part in ((f"layers.{i}.attention", attend), (f"layers.{i}.ffn", feed_forward)):
            x = x + part(norm(x, name), name) if config.norm_first else norm(x + part(x, name), name)
    if config.norm_first:
        x = norm(x, "final")
    return x @ params["embedding.weight"].T


def shaken(config, dtype=np.float64, seed=0):
    """Parameters large enough, biases and all, for every gradient to count."""
    rng = np.random.default_rng(seed)
    return {
        name: (rng.normal(size=shape) * 0.3 + name.endswith("norm.weight")).astype(dtype)
        for name, shape in parameter_shapes(config).items()
    }


@pytest.mark.parametrize(
    ("positions", "norm_first", "activation"),
    [
        *((positions, norm_first, "gelu") for positions, norm_first in product(POSITIONS, (True, False))),
        ("learned", True, "relu"),
        ("rope", False, "silu"),
    ],
)
def test_loss_and_gradients_are_those_of_autograd(torch, positions, norm_first, activation):
    config = SmallDecoderConfig(**SMALL, positions=positions, norm_first=norm_first, activation=activation)
    params = shaken(config)
    ids = np.random.default_rng(1).integers(0, config.vocab_size, (6, 8))  # two shares, one not full
    loss, grads = loss_and_gradients(params, ids[:, :-1], ids[:, 1:], config)

    tensors = {name: torch.tensor(array, requires_grad=True) for name, array in params.items()}
    logits = official_logits(torch, tensors, torch.tensor(ids[:, :-1]), config)
    official = torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.tensor(ids[:, 1:]).flatten())
    official.backward()

    np.testing.assert_allclose(forward(params, ids[:, :-1], config), logits.detach(), rtol=1e-9, atol=1e-9)
    assert loss == pytest.approx(official.item(), rel=1e-9)
    assert grads.keys() == tensors.keys()
    for name, tensor in tensors.items():
        np.testing.assert_allclose(grads[name], tensor.grad, rtol=1e-6, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("norm_first", [True, False])
def test_gradients_through_dropout_are_the_slope_of_the_loss(norm_first):
    config = SmallDecoderConfig(**SMALL, norm_first=norm_first, dropout=0.3)
    params, rng = shaken(config), np.random.default_rng(2)
    ids = rng.integers(0, config.vocab_size, (5, 8))

    def loss_at(step):
        moved = {name: array + step * way[name] for name, array in params.items()}
        return loss_and_gradients(moved, ids[:, :-1], ids[:, 1:], config, np.random.default_rng(3))

    way = {name: rng.normal(size=array.shape) for name, array in params.items()}
    _, grads = loss_at(0)
    slope = (loss_at(1e-6)[0] - loss_at(-1e-6)[0]) / 2e-6
    assert slope == pytest.approx(sum(np.vdot(grads[name], way[name]) for name in params), rel=1e-5)
    assert loss_at(0)[0] != loss_and_gradients(params, ids[:, :-1], ids[:, 1:], config)[0]


@given(st.sampled_from(POSITIONS), st.booleans(), st.integers(1, 6), st.integers(1, 9), st.integers(0, 99))
def test_compiled_steps_are_numpys_to_rounding(positions, norm_first, n_sequences, n_tokens, seed):
    config = SmallDecoderConfig(**SMALL, positions=positions, norm_first=norm_first)
    params = shaken(config, np.float32, seed)
    inputs, targets = np.random.default_rng(seed).integers(0, config.vocab_size, (2, n_sequences, n_tokens))
    loss, grads = loss_and_gradients(params, inputs, targets, config, ops=NUMPY_TRAINING)
    fast_loss, fast_grads = loss_and_gradients(params, inputs, targets, config, ops=compiled_training())
    assert compiled_training() is not NUMPY_TRAINING
    assert fast_loss == pytest.approx(loss, rel=1e-5)
    for name, grad in grads.items():
        assert fast_grads[name].dtype == np.float32
        np.testing.assert_allclose(fast_grads[name], grad, rtol=1e-3, atol=3e-6, err_msg=name)


@pytest.mark.parametrize("positions", POSITIONS)
def test_reading_token_by_token_with_a_cache_changes_nothing(positions):
    """So no token sees a later one, either."""
    config = SmallDecoderConfig(**SMALL, positions=positions)
    params = shaken(config)
    ids = np.random.default_rng(4).integers(0, config.vocab_size, config.context)
    cache = KVCache(config, config.context, dtype=np.float64)
    pieces = [forward(params, piece, config, cache=cache) for piece in np.split(ids, [1, 2, 6, 7])]
    np.testing.assert_allclose(np.concatenate(pieces), forward(params, ids, config), atol=1e-12)


def test_sizes_that_no_model_has_are_told():
    for wrong, message in (
        ({"d_model": 18}, "give a multiple"),
        ({"d_model": 20, "positions": "rope"}, "even number"),
        ({"n_layers": 0}, "give 1 or more"),
        ({"positions": "absolute"}, "sinusoidal, learned, rope or alibi"),
        ({"activation": "step"}, "give one of"),
        ({"dropout": 1.0}, "less than 1"),
    ):
        with pytest.raises(InputError, match=message):
            SmallDecoderConfig(**{**SMALL, **wrong})


def test_ids_that_the_model_cannot_read_are_told():
    config = SmallDecoderConfig(**SMALL)
    params = init_params(config, 0)
    with pytest.raises(InputError, match="id 11 is not in the vocabulary: ids go from 0 to 10"):
        forward(params, np.array([3, 11]), config)
    with pytest.raises(ContextLengthError, match="10 tokens exceed the model's context of 9"):
        forward(params, np.zeros(10, int), config)
    with pytest.raises(InputError, match="give at least one"):
        forward(params, np.zeros(0, int), config)
