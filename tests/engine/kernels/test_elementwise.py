import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from engine import Encoder
from engine.kernels import attention as kernels
from engine.kernels import elementwise, gemm, rows
from engine.kernels.gemm import NARROW, WIDE
from engine.kernels.primitives import best_primitives, prepare_compiled
from engine.layers import activation, linear, norm
from engine.layers.attention import attention, split_heads, windowed_attention
from engine.layers.positions import apply_rope, rope_tables
from engine.layers.primitives import NUMPY
from tests.command_line import run_python


def matrices(largest=100.0, max_side=70):
    numbers = st.floats(-largest, largest, width=32, allow_subnormal=False)
    return arrays(np.float32, array_shapes(min_dims=2, max_dims=2, max_side=max_side), elements=numbers)


@given(matrices())
def test_gelu_and_layer_norm_equal_their_numpy_twins(x):
    np.testing.assert_allclose(elementwise.gelu(x.copy()), activation.gelu(x.copy()), rtol=1e-6, atol=1e-6)
    weight, bias = np.linspace(-2, 2, 2 * x.shape[1], dtype=np.float32).reshape(2, -1)
    ours, exact = elementwise.layer_norm(x.copy(), weight, bias, 1e-5), x.astype(np.float64)
    # Both divide what is left after subtracting the mean by its size, however small.
    error = 3e-7 * np.abs(x).max() / np.sqrt(exact.var(axis=1, keepdims=True) + 1e-5)
    assert (np.abs(ours - norm.layer_norm(exact, weight, bias, 1e-5)) <= 1e-5 + 3 * error).all()


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


SEEDS, HEAD_SIZES = st.integers(0, 9), st.sampled_from([8, 24, NARROW, 3 * NARROW])


def random_heads(rng, largest, n_tokens, d_head, *n_heads):
    """Views ``(n_heads, n_tokens, d_head)`` of the heads of one map's output, as in the models."""
    stacked = rng.uniform(-largest, largest, (n_tokens, sum(n_heads) * d_head)).astype(np.float32)
    return np.split(split_heads(stacked, sum(n_heads)), np.cumsum(n_heads)[:-1])


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


@given(matrices(50), st.sampled_from(list(activation.ACTIVATIONS)))
def test_gated_units_equal_their_numpy_twin(x, name):
    gate_up = np.hstack([x, x[:, ::-1], x])
    gate, up = gate_up[:, : x.shape[1]], gate_up[:, x.shape[1] : 2 * x.shape[1]]
    expected = activation.gated(gate.astype(np.float64), up, name)
    np.testing.assert_allclose(elementwise.gated(gate, up, name), expected, rtol=2e-6, atol=2e-5)


@given(st.integers(1, 20), st.integers(1, 40), SEEDS)
def test_rotations_and_the_rms_norm_equal_their_numpy_twins(n_tokens, half, seed):
    rng = np.random.default_rng(seed)
    [heads, _] = random_heads(rng, 3, n_tokens, 2 * half, 3, 1)
    tables = rope_tables(np.arange(n_tokens), 2 * half, 100.0, heads.dtype)
    expected = apply_rope(heads.astype(np.float64), *tables)
    weight = rng.normal(size=2 * half).astype(np.float32)
    for x in (heads, heads[0], heads[1].copy()):
        normed = norm.rms_norm(x.astype(np.float64), weight, 1e-6)
        np.testing.assert_allclose(elementwise.rms_norm(x, weight, 1e-6), normed, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(elementwise.apply_rope(heads, *tables), expected, atol=2e-6)


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
    np.testing.assert_array_equal(
        elementwise.gelu(np.float32([[-1e30, 1e30, 0]])), [[0, np.float32(1e30), 0]]
    )


@pytest.mark.parametrize("kernel", [lambda x: rows.softmax(x[0]), elementwise.gelu])
def test_what_is_not_a_number_stays_visible(kernel):
    x = np.float32([[1.0, np.nan, 2.0]])
    kernel(x)
    assert np.isnan(x[0, 1])


def test_a_compiled_encoder_equals_the_numpy_one():
    texts = ["word " * n for n in (0, 1, 7, 60, 200, 600)] + ["Naïve 東京 🙂, LLMs rock."]
    compiled, plain = Encoder.load(), Encoder.load(compiled=False)
    prepare_compiled().join()
    assert best_primitives() is not NUMPY
    poolings = ["mean", "cls", "pooler"]
    ours, theirs = (model.encode(texts, poolings, max_tokens=512) for model in (compiled, plain))
    for pooling in poolings:
        np.testing.assert_allclose(ours[pooling], theirs[pooling], rtol=0, atol=1e-6)


def test_other_precisions_are_left_to_numpy():
    encoder = Encoder.load(dtype=np.float64)
    assert encoder.compiled is False
    assert encoder.encode(["x"]).dtype == np.float64


@pytest.mark.parametrize(
    ("begin", "variables"),
    [
        ("import sys; sys.modules['numba'] = None", {}),
        pytest.param("", {"NUMBA_DISABLE_JIT": "1"}, marks=pytest.mark.nightly),
    ],
    ids=["without numba", "with compiling switched off"],
)
def test_where_nothing_is_compiled_the_encoder_works(begin, variables):
    code = (
        f"{begin}\nfrom engine import Encoder\n"
        "from engine.kernels.primitives import NUMPY, best_primitives, prepare_compiled\n"
        "encoder = Encoder.load(); prepare_compiled().join()\n"
        "print(best_primitives() is NUMPY, encoder.encode(['The cat sat.']).shape)"
    )
    assert run_python(code, **variables) == ["True (1, 384)"]


def test_the_first_vector_does_not_wait_for_the_compiler(tmp_path):
    code = (
        "import threading\n"
        "from engine.kernels import primitives\n"
        "release = threading.Event(); load = primitives._load_compiled\n"
        "primitives._load_compiled = lambda: (release.wait(60), load())\n"
        "from engine import Encoder\n"
        "encoder = Encoder.load(); before = encoder.encode(['The cat sat.'])\n"
        "assert primitives.best_primitives() is primitives.NUMPY\n"
        "release.set(); primitives.prepare_compiled().join()\n"
        "assert primitives.best_primitives() is not primitives.NUMPY\n"
        "print(abs(before - encoder.encode(['The cat sat.'])).max() < 1e-6)"
    )
    assert run_python(code) == ["True"]


OTHER_PROCESSOR = """
import sys, llvmlite.binding as llvm, numpy as np
features = llvm.get_host_cpu_features()
features.update({name: False for name in features if name.startswith(tuple(sys.argv[2:]))})
llvm.get_host_cpu_features = lambda: features
from engine.kernels import attention as kernels, gemm
from engine.kernels.gemm_int8 import linear
from engine.layers import attention
from engine.layers.linear import linear as numpy_linear
from engine.layers.quantization import Int8Matrix, hadamard
assert gemm.WIDE == int(sys.argv[1])
rng = np.random.default_rng(0)
x, weight, bias = (rng.normal(size=shape).astype("f4") for shape in ((7, 128), (64, 128), 64))
heads = rng.normal(size=(2, 21, 32)).astype("f4")
mask = rng.normal(size=(2, 21, 21)).astype("f4")
gaps = [kernels.attention(heads, heads, heads, mask) - attention.attention(heads, heads, heads, mask)]
for rows, matrix in ((x, weight), (hadamard(128), Int8Matrix.of(hadamard(128)[:64]))):
    gaps.append(linear(rows, matrix, bias) - numpy_linear(rows, matrix, bias))
print([bool(abs(gap).max() < 1e-4) for gap in gaps])
"""


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("width", "missing"),
    [(16, ["avx512"]), (16, ["avx512", "avxvnni"]), (64, ["avx512vnni", "amx"])],
    ids=["AVX-VNNI", "AVX2", "AVX-512 alone"],
)
def test_older_processors_give_the_same(request, width, missing):
    """The compiler ends a process where it meets an instruction that the processor lacks."""
    if width > gemm.WIDE:
        pytest.skip("this processor has no registers so wide")
    kept = request.config.cache.mkdir("other-kernels")  # compiled once
    lines = run_python(OTHER_PROCESSOR, width, *missing, NUMBA_CACHE_DIR=str(kept))
    assert lines == ["[True, True, True]"]
