import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from engine import Encoder
from engine.kernels import attention as kernels
from engine.kernels import elementwise, gemm, rows
from engine.kernels.gemm import NARROW, WIDE
from engine.kernels.op_tape import OpTape
from engine.layers import activation, linear, norm, positions
from engine.layers.attention import attention, split_heads, windowed_attention
from tests.command_line import run_python


@given(st.integers(1, 40), st.integers(1, 70), st.sampled_from([1, 24, WIDE, 3 * WIDE]), st.integers(0, 9))
def test_linear_equals_its_numpy_twin(n_tokens, d_in, d_out, seed):
    rng = np.random.default_rng(seed)
    x, weight, bias = (
        rng.normal(size=shape).astype(np.float32) for shape in ((n_tokens, d_in), (d_out, d_in), d_out)
    )
    expected = linear.linear(x.astype(np.float64), weight, bias)
    np.testing.assert_allclose(gemm.linear(x, weight, bias), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(gemm.linear(x, np.asfortranarray(weight), bias), expected, atol=1e-4)
    np.testing.assert_allclose(gemm.linear(x[::-1], weight, bias), expected[::-1], atol=1e-4)


def part_of_wider(rng, n_rows, width, scale=1.0):
    """Random rows within longer ones, as parts of a stacked matrix are: what reads beside them gets NaN."""
    wide = np.full((n_rows, width + 5), np.nan, np.float32)
    x = wide[:, 2 : 2 + width]
    x[:] = scale * rng.normal(size=x.shape)
    return x


def tape(name):
    """An operation of the decoders, done at once."""
    return lambda *arguments: getattr(OpTape(0), name)(*arguments)


def copying(function):
    return lambda x, *arguments: function(x.copy(), *arguments)


few_rows, widths, seeds = st.integers(1, 20), st.integers(1, 150), st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("layer_norm", [copying(elementwise.layer_norm), tape("layer_norm")])
@given(few_rows, widths, st.sampled_from([0.0, 1.0, 100.0]), seeds)
def test_layer_norm_equals_its_numpy_twin(layer_norm, n_tokens, d_model, mean, seed):
    rng = np.random.default_rng(seed)
    x = part_of_wider(rng, n_tokens, d_model)
    x += np.float32(mean)
    weight, bias = rng.normal(size=(2, d_model)).astype(np.float32)
    expected = norm.layer_norm(x.astype(np.float64), weight, bias, 1e-5)
    # Both divide what is left after subtracting the mean by its size, however small.
    size = np.sqrt(x.var(axis=1, keepdims=True, dtype=np.float64) + 1e-5)
    rounding = 2e-6 * (1 + np.abs(x).max() / size) * (1 + np.abs(weight))
    assert (np.abs(layer_norm(x, weight, bias, 1e-5) - expected) <= rounding).all()


@pytest.mark.parametrize("rms_norm", [elementwise.rms_norm, tape("rms_norm")])
@given(few_rows, widths, st.integers(1, 3), st.sampled_from([1e-3, 1.0, 1e3]), seeds)
def test_rms_norm_of_rows_and_of_heads_equals_its_numpy_twin(rms_norm, n_tokens, d, n_heads, scale, seed):
    rng = np.random.default_rng(seed)
    heads = split_heads(part_of_wider(rng, n_tokens, (n_heads + 1) * d, scale), n_heads + 1)[1:]
    weight = rng.normal(size=d).astype(np.float32)
    for x in (heads, heads[0]):
        ours = rms_norm(x, weight, 1e-5)
        np.testing.assert_allclose(ours, norm.rms_norm(x.astype(np.float64), weight, 1e-5), rtol=2e-6)
        assert ours.strides[0] == 4 * d  # the heads of a token lie side by side, as rotations need them


far, near = st.floats(-(2.0**100), 2.0**100, width=32), st.floats(-110, 110, width=32)
GATED = [(elementwise.gated, name) for name in activation.ACTIVATIONS]
GATED += [(tape("gated"), "silu"), (tape("gated"), "gelu_new")]
GELUS = [(copying(elementwise.gelu), activation.gelu), (tape("gelu_new"), activation.gelu_new)]


@given(arrays(np.float32, (3, 20), elements=far | near), seeds)
def test_activations_and_gated_units_equal_their_numpy_twins(gate, seed):
    gate_up = part_of_wider(np.random.default_rng(seed), 3, 40)
    gate_up[:, :20] = gate
    gate, up = gate_up[:, :20], gate_up[:, 20:]
    exact, close = gate.astype(np.float64), {"rtol": 1e-6, "atol": 1e-6}
    with np.errstate(over="ignore"):  # where exp(-gate) is infinite, the 0 meant comes out
        for gated, name in GATED:
            np.testing.assert_allclose(gated(gate, up, name), activation.gated(exact, up, name), **close)
        for function, numpy_twin in GELUS:
            np.testing.assert_allclose(function(gate), numpy_twin(exact.copy()), **close)


def test_what_is_not_a_number_stays_visible_in_an_activation():
    x = np.float32([[1, np.nan, -2]])
    found = [gated(x, np.ones_like(x), name) for gated, name in GATED]
    for y in (*found, *(function(x) for function, _ in GELUS)):
        np.testing.assert_array_equal(np.isnan(y), np.isnan(x))
    rows.softmax(x[0])
    assert np.isnan(x[0, 1])


@pytest.mark.parametrize("apply_rope", [elementwise.apply_rope, tape("apply_rope")])
@given(
    few_rows,
    st.integers(1, 5),
    st.integers(0, 3),
    st.sampled_from([2, 6, 64, 128]),
    st.sampled_from([1, 2, 4]),
    seeds,
)
def test_apply_rope_equals_its_numpy_twin_and_leaves_other_heads_alone(
    apply_rope, n_tokens, n_rotated, n_values, d_head, part, seed
):
    rng = np.random.default_rng(seed)
    stacked = part_of_wider(rng, n_tokens, (n_rotated + n_values) * d_head)
    heads = split_heads(stacked, n_rotated + n_values)
    d_rotary = max(2, d_head // part // 2 * 2)
    cos, sin = positions.rope_tables(rng.integers(0, 8192, n_tokens), d_rotary, 1e4, np.dtype(np.float32))
    before = heads.copy()
    expected = positions.apply_rope(before[:n_rotated].astype(np.float64), cos, sin)
    rotated = apply_rope(heads[:n_rotated], cos, sin)
    np.testing.assert_allclose(rotated, expected, rtol=0, atol=3e-7 * np.abs(before).max())
    np.testing.assert_array_equal(heads[:n_rotated], rotated)  # in place
    np.testing.assert_array_equal(heads[n_rotated:], before[n_rotated:])
    assert np.isnan(stacked.base[:, [0, 1, -3, -2, -1]]).all()


def random_heads(rng, largest, n_tokens, d_head, *n_heads):
    """Views ``(n_heads, n_tokens, d_head)`` of the heads of one map's output, as in the models."""
    stacked = rng.uniform(-largest, largest, (n_tokens, sum(n_heads) * d_head)).astype(np.float32)
    return np.split(split_heads(stacked, sum(n_heads)), np.cumsum(n_heads)[:-1])


SEEDS, HEAD_SIZES = st.integers(0, 9), st.sampled_from([8, 24, NARROW, 3 * NARROW])


def assert_close_attention(found, expected, largest, d_head):
    # Rounding in a score of size s moves a weight by a share of s.
    np.testing.assert_allclose(found, expected, atol=1e-6 * (1 + largest**2 * np.sqrt(d_head)) * largest)


@given(st.integers(1, 200), st.integers(1, 3), HEAD_SIZES, st.floats(0.1, 30), st.booleans(), SEEDS)
def test_attention_equals_its_numpy_twin(n_tokens, n_kv_heads, d_head, largest, biased, seed):
    rng, n_heads = np.random.default_rng(seed), 2 * n_kv_heads
    heads = random_heads(rng, largest, n_tokens, d_head, n_heads, n_kv_heads, n_kv_heads)
    bias = rng.normal(size=(n_heads, n_tokens, n_tokens)).astype(np.float32)
    for mask in (bias, bias[0], bias.swapaxes(1, 2)) if biased else (None,):
        expected = attention(*(array.astype(np.float64) for array in heads), mask)
        assert_close_attention(kernels.attention(*heads, mask), expected, largest, d_head)


@given(st.integers(1, 300), HEAD_SIZES, st.integers(0, 150), st.integers(0, 150), SEEDS)
def test_windowed_attention_equals_its_numpy_twin(n_tokens, d_head, before, after, seed):
    heads = random_heads(np.random.default_rng(seed), 3, n_tokens, d_head, 2, 1, 1)
    expected = windowed_attention(*(array.astype(np.float64) for array in heads), before, after)
    assert_close_attention(kernels.windowed_attention(*heads, before, after), expected, 3, d_head)


def test_panels_of_a_weight_go_when_it_goes():
    weight = np.ones((WIDE, 3), np.float32)
    before = len(gemm._panels)
    gemm.linear(np.ones((2, 3), np.float32), weight, np.zeros(WIDE, np.float32))
    assert len(gemm._panels) == before + 1
    del weight
    assert len(gemm._panels) == before


def test_far_numbers_neither_overflow_nor_lose_mass():
    x = np.float32([[1000, 1000, -1000, 7], [0, -200, -200, 7], [-3e38, -3e38, -3e38, 7]])
    for row in x:
        rows.softmax(row[:3])
    expected = [[0.5, 0.5, 0, 7], [1, 0, 0, 7], [1 / 3, 1 / 3, 1 / 3, 7]]
    np.testing.assert_allclose(x, expected, atol=1e-7)
    far = elementwise.gelu(np.float32([[-1e30, 1e30, 0]]))
    np.testing.assert_array_equal(far, [[0, np.float32(1e30), 0]])


def test_other_precisions_are_left_to_numpy():
    encoder = Encoder.load(dtype=np.float64)
    assert encoder.compiled is False
    assert encoder.encode(["x"]).dtype == np.float64


def test_the_first_vector_does_not_wait_for_the_compiler(tmp_path):
    code = (
        "import threading\n"
        "from engine.kernels import primitives\n"
        "release = threading.Event(); load = primitives._load_compiled\n"
        "primitives._load_compiled = lambda: release.wait(60) and load()\n"
        "from engine import Encoder\n"
        "encoder = Encoder.load(); before = encoder.encode(['The cat sat.'])\n"
        "assert primitives.best_primitives() is primitives.NUMPY\n"
        "release.set(); primitives.prepare_compiled().join()\n"
        "assert primitives.best_primitives() is not primitives.NUMPY\n"
        "print(abs(before - encoder.encode(['The cat sat.'])).max() < 1e-6)"
    )
    assert run_python(code) == ["True"]
