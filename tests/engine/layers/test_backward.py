import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.layers import activation, attention
from engine.layers.dropout import dropout, dropout_backward
from engine.layers.embedding import embedding, embedding_backward
from engine.layers.linear import linear, linear_backward
from engine.layers.norm import l2_normalize, l2_normalize_backward, layer_norm, layer_norm_backward
from engine.layers.positions import apply_rope, rope_backward, rope_tables
from tests.pytorch import Library, torch

EPS = 1e-5
TURNS = 5  # rotary tables of that many tokens are cut to the tokens there are
functional = Library("torch.nn.functional")
batches = st.lists(st.integers(1, 3), max_size=2)  # leading axes
seeds = st.integers(0, 2**32 - 1)


def assert_close(ours, expected):
    """Equal to 1e-6 of each number, or of the largest where sums cancel."""
    expected = np.asarray(expected)
    assert np.shape(ours) == expected.shape
    np.testing.assert_allclose(ours, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max(initial=1e-3))


def assert_gradients(forward, backward, official, inputs, rng):
    """``backward(d_y)`` gives what autograd does, and the slope of ``forward`` in a random direction."""
    y = forward(*inputs)
    d_y = rng.normal(size=y.shape)
    before = [x.copy() for x in inputs]
    ours = backward(d_y)
    assert len(ours) == len(inputs)
    for x, kept in zip(inputs, before, strict=True):
        np.testing.assert_array_equal(x, kept)

    tensors = [torch.tensor(x, requires_grad=True) for x in inputs]
    official_y = official(*tensors)
    official_y.backward(torch.tensor(d_y))
    assert_close(y, official_y.detach())
    for gradient, tensor in zip(ours, tensors, strict=True):
        assert_close(gradient, tensor.grad)

    for i, gradient in enumerate(ours):
        step = 1e-6 * rng.normal(size=inputs[i].shape)
        ends = [forward(*inputs[:i], inputs[i] + end, *inputs[i + 1 :]) for end in (step, -step)]
        rise, size = float((d_y * (ends[0] - ends[1])).sum()), float((np.abs(gradient * step)).sum())
        assert float((gradient * 2 * step).sum()) == pytest.approx(rise, rel=1e-6, abs=1e-6 * size + 1e-13)


def away_from_zero(x):
    """ReLU has no slope at 0."""
    return x + np.copysign(0.1, x)


def rotary(x):
    cos, sin = rope_tables(np.arange(TURNS), x.shape[-1], 10000.0, np.dtype(np.float64))
    return cos[: x.shape[-2]], sin[: x.shape[-2]]


def official_rope(x):
    """Multiply each pair, as a complex number, by e^(i angle): the paper's own form."""
    cos, sin = (torch.tensor(table) for table in rotary(x.detach().numpy()))
    half = x.shape[-1] // 2
    turned = torch.complex(x[..., :half], x[..., half:]) * torch.complex(cos, sin)
    return torch.cat([turned.real, turned.imag], dim=-1)


def of_one(forward, backward, official, n_parts=1):
    """The case of an operation of one input, whose width is a multiple of a number of parts."""
    return (lambda batch, d: [(*batch, n_parts * d)], forward, lambda d_y, x: (backward(d_y, x),), official)


# name: shapes of the inputs for a batch and a width; forward; backward; official
CASES = {
    "linear": (
        lambda batch, d: [(*batch, d), (3, d), (3,)],
        linear,
        lambda d_y, x, weight, bias: linear_backward(d_y, x, weight),
        lambda *inputs: functional.linear(*inputs),
    ),
    "layer_norm": (
        lambda batch, d: [(*batch, d), (d,), (d,)],
        lambda *inputs: layer_norm(*inputs, EPS),
        lambda d_y, x, weight, bias: layer_norm_backward(d_y, x, weight, EPS),
        lambda x, weight, bias: functional.layer_norm(x, x.shape[-1:], weight, bias, EPS),
    ),
    "l2_normalize": of_one(l2_normalize, l2_normalize_backward, lambda x: functional.normalize(x, dim=-1)),
    "relu": of_one(
        lambda x: activation.relu(away_from_zero(x)),
        lambda d_y, x: activation.relu_backward(d_y, away_from_zero(x)),
        lambda x: functional.relu(x + torch.copysign(torch.tensor(0.1), x.detach())),
    ),
    "gelu": of_one(activation.gelu, activation.gelu_backward, lambda x: functional.gelu(x)),
    "gelu_new": of_one(
        activation.gelu_new, activation.gelu_new_backward, lambda x: functional.gelu(x, approximate="tanh")
    ),
    "silu": of_one(activation.silu, activation.silu_backward, lambda x: functional.silu(x)),
    "tanh": of_one(np.tanh, activation.tanh_backward, lambda x: torch.tanh(x)),
    "quick_gelu": of_one(
        activation.quick_gelu, activation.quick_gelu_backward, lambda x: x * torch.sigmoid(1.702 * x)
    ),
    "softmax": of_one(
        activation.softmax,
        lambda d_y, x: activation.softmax_backward(d_y, activation.softmax(x)),
        lambda x: functional.softmax(x, dim=-1),
    ),
    "rope": of_one(
        lambda x: apply_rope(x, *rotary(x)),
        lambda d_y, x: rope_backward(d_y, *rotary(x)),
        official_rope,
        n_parts=2,
    ),
    "heads": of_one(
        lambda x: attention.split_heads(x, 2),
        lambda d_y, x: attention.merge_heads(d_y),
        lambda x: x.unflatten(-1, (2, -1)).transpose(-3, -2),
        n_parts=2,
    ),
}


@pytest.mark.parametrize("name", CASES)
@given(batch=batches, n_tokens=st.integers(1, TURNS), d=st.integers(2, 6), seed=seeds)
def test_gradients_equal_autograd_and_finite_differences(name, batch, n_tokens, d, seed):
    shapes, forward, backward, official = CASES[name]
    rng = np.random.default_rng(seed)
    inputs = [rng.normal(size=shape) for shape in shapes([*batch, n_tokens], d)]
    assert_gradients(forward, lambda d_y: backward(d_y, *inputs), official, inputs, rng)


@given(
    batch=batches,
    n_kv_heads=st.integers(1, 2),
    group=st.integers(1, 3),
    n_query=st.integers(1, 5),
    n_key=st.integers(1, 5),
    d_head=st.integers(1, 4),
    causal=st.booleans(),
    padded=st.booleans(),
    seed=seeds,
)
def test_attention_gradients_equal_autograd_and_finite_differences(
    batch, n_kv_heads, group, n_query, n_key, d_head, causal, padded, seed
):
    rng = np.random.default_rng(seed)
    n_query = min(n_query, n_key) if causal else n_query  # else a cross-attention of any two lengths
    mask = np.zeros((*batch, 1, n_query, n_key))
    if causal:
        mask = mask + attention.causal_mask(n_query, n_key, mask.dtype)
    if padded:  # on the right, so the first key stays for every query
        n_kept = rng.integers(1, n_key + 1, size=(*batch, 1, 1, 1))
        mask = mask + np.where(np.arange(n_key) < n_kept, 0, -np.inf)
    query = rng.normal(size=(*batch, n_kv_heads * group, n_query, d_head))
    key, value = rng.normal(size=(2, *batch, n_kv_heads, n_key, d_head))

    def official(*tensors):
        flat = [tensor.reshape(-1, *tensor.shape[-3:]) for tensor in tensors]
        given = torch.tensor(mask.reshape(-1, *mask.shape[-3:]))
        context = functional.scaled_dot_product_attention(*flat, attn_mask=given, enable_gqa=True)
        return context.reshape(query.shape)

    weights = attention.attention_weights(query, key, mask)
    assert_gradients(
        lambda *inputs: attention.attention(*inputs, mask),
        lambda d_context: attention.attention_backward(d_context, query, key, value, weights),
        official,
        [query, key, value],
        rng,
    )
    np.testing.assert_array_equal(
        attention.attention_context(weights, value), attention.attention(query, key, value, mask)
    )


def test_keys_that_a_mask_hides_get_no_gradient_at_all():
    rng = np.random.default_rng(0)
    query, key, value, d_context = rng.normal(size=(4, 2, 3, 5, 4)).astype(np.float32)
    n_kept = np.array([3, 5])[:, None, None, None]
    mask = np.where(np.arange(5) < n_kept, np.float32(0), np.float32(-np.inf))  # (n_texts, 1, 1, n_key)
    weights = attention.attention_weights(query, key, mask)
    gradients = attention.attention_backward(d_context, query, key, value, weights)
    assert {gradient.dtype for gradient in gradients} == {np.dtype(np.float32)}
    for gradient in gradients[1:]:
        assert not gradient[0, :, 3:].any()
        assert gradient[0, :, :3].all()
        assert gradient[1].all()


@given(batch=batches, n_tokens=st.integers(0, 9), n_rows=st.integers(1, 6), seed=seeds)
def test_embedding_gradients_equal_autograd(batch, n_tokens, n_rows, seed):
    rng = np.random.default_rng(seed)
    table, ids = rng.normal(size=(n_rows, 3)), rng.integers(0, n_rows, size=(*batch, n_tokens))
    official = torch.tensor(table, requires_grad=True)
    out = functional.embedding(torch.tensor(ids), official)
    np.testing.assert_array_equal(embedding(table, ids), out.detach().numpy())
    d_out = rng.normal(size=(*ids.shape, 3))
    out.backward(torch.tensor(d_out))
    assert_close(embedding_backward(d_out, ids, n_rows), official.grad)


@pytest.mark.parametrize("x", [[0.0, 0.0], [3e-13, -4e-13]])
def test_a_vector_below_the_shortest_length_has_the_gradient_torch_gives_it(x):
    official = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    functional.normalize(official, dim=-1).backward(torch.tensor([1.0, 2.0], dtype=torch.float64))
    assert_close(l2_normalize_backward(np.array([1.0, 2.0]), np.array(x)), official.grad)


@given(rate=st.floats(0, 0.9), seed=seeds, dtype=st.sampled_from([np.float32, np.float64]))
def test_dropout_scales_what_it_keeps_and_its_gradient_goes_the_same_way(rate, seed, dtype):
    x = np.random.default_rng(seed).normal(size=(2, 3, 4)).astype(dtype)
    y, mask = dropout(x, rate, np.random.default_rng(seed))
    assert y.dtype == mask.dtype == dtype
    np.testing.assert_array_equal(mask[mask != 0], dtype(1 / (1 - rate)))
    np.testing.assert_array_equal(y, x * mask)
    official = torch.tensor(x, requires_grad=True)
    (official * torch.tensor(mask)).backward(torch.tensor(y))
    np.testing.assert_array_equal(dropout_backward(y, mask), official.grad)


def test_dropout_of_one_seed_is_the_same_everywhere():
    kept = [dropout(np.ones(8, dtype), 0.5, np.random.default_rng(2))[1] > 0 for dtype in "fd"]
    np.testing.assert_array_equal(kept[0], [1, 0, 0, 0, 0, 1, 0, 0])
    np.testing.assert_array_equal(kept[0], kept[1])


@pytest.mark.parametrize("rate", [-0.1, 1.0, float("nan")])
def test_a_dropout_rate_is_a_share_below_one(rate):
    with pytest.raises(ValueError, match="outside 0 <= rate < 1"):
        dropout(np.ones(3), rate, np.random.default_rng(0))
