import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from engine import Encoder
from engine.layers import activation, kernels, linear, norm
from engine.layers.attention import attention, split_heads
from engine.layers.primitives import NUMPY, best_primitives, prepare_compiled

ROOT = Path(__file__).parent.parent.parent


def matrices(largest=100.0, max_side=70):
    numbers = st.floats(-largest, largest, width=32, allow_subnormal=False)
    return arrays(np.float32, array_shapes(min_dims=2, max_dims=2, max_side=max_side), elements=numbers)


@given(matrices())
def test_gelu_equals_its_numpy_twin(x):
    np.testing.assert_allclose(kernels.gelu(x.copy()), activation.gelu(x.copy()), rtol=1e-6, atol=1e-6)


@given(matrices())
def test_layer_norm_equals_its_numpy_twin(x):
    weight, bias = np.linspace(-2, 2, 2 * x.shape[1], dtype=np.float32).reshape(2, -1)
    ours = kernels.layer_norm(x.copy(), weight, bias, 1e-5)
    # Both divide what is left after subtracting the mean by its size, however small.
    theirs = norm.layer_norm(x.astype(np.float64), weight, bias, 1e-5)
    error = 3e-7 * np.abs(x).max() / np.sqrt(x.astype(np.float64).var(axis=1, keepdims=True) + 1e-5)
    assert (np.abs(ours - theirs) <= 1e-5 + 3 * error).all()


@given(matrices(max_side=40), st.integers(1, 40))
def test_linear_equals_its_numpy_twin(x, d_out):
    rng = np.random.default_rng(0)
    weight, bias = rng.normal(size=(d_out, x.shape[1])), rng.normal(size=d_out)
    weight, bias = weight.astype(np.float32), bias.astype(np.float32)
    np.testing.assert_allclose(
        kernels.linear(x, weight, bias), linear.linear(x, weight, bias), rtol=1e-5, atol=1e-3
    )


@given(
    arrays(np.float32, st.tuples(st.integers(1, 70), st.just(24)), elements=st.floats(-9, 9, width=32)),
    st.sampled_from([1, 2, 3, 4]),
)
def test_attention_equals_its_numpy_twin(x, n_heads):
    query, key, value = (split_heads(array, n_heads) for array in (x, x[::-1] * 2, np.cos(x)))
    np.testing.assert_allclose(
        kernels.attention(query, key, value), attention(query, key, value), rtol=1e-5, atol=2e-6
    )


def test_attention_over_many_tokens_takes_some_heads_at_a_time(monkeypatch):
    x = np.random.default_rng(0).normal(size=(50, 96)).astype(np.float32)
    heads = split_heads(x, 12)
    whole = kernels.attention(heads, heads, heads)
    for size in (1, 50 * 50 * 4 * 5, 10**9):
        monkeypatch.setattr(kernels, "SCORE_BYTES", size)
        np.testing.assert_allclose(kernels.attention(heads, heads, heads), whole, atol=1e-6)


def test_far_numbers_neither_overflow_nor_lose_mass():
    x = np.float32([[1000, 1000, -1000], [0, -200, -200], [-3e38, -3e38, -3e38]])
    kernels._softmax(x)
    np.testing.assert_allclose(x, [[0.5, 0.5, 0], [1, 0, 0], [1 / 3, 1 / 3, 1 / 3]], atol=1e-7)
    np.testing.assert_array_equal(kernels.gelu(np.float32([[-1e30, 1e30, 0]])), [[0, np.float32(1e30), 0]])


@pytest.mark.parametrize("kernel", [kernels._softmax, kernels._gelu])
def test_what_is_not_a_number_stays_visible(kernel):
    x = np.float32([[1.0, np.nan, 2.0]])
    kernel(x)
    assert np.isnan(x[0, 1])


def test_a_compiled_encoder_equals_the_numpy_one():
    texts = ["word " * n for n in (0, 1, 7, 60, 200, 600)] + ["Naïve 東京 🙂, LLMs rock."]
    compiled, plain = Encoder.load(), Encoder.load(compiled=False)
    prepare_compiled().join()
    assert best_primitives() is not NUMPY
    for pooling in ("mean", "cls", "pooler"):
        np.testing.assert_allclose(
            compiled.encode(texts, pooling, max_tokens=512),
            plain.encode(texts, pooling, max_tokens=512),
            rtol=0,
            atol=1e-6,
        )


def test_other_precisions_are_left_to_numpy():
    assert Encoder.load(dtype=np.float64).compiled is False
    assert Encoder.load(dtype=np.float64).encode(["x"]).dtype == np.float64


def test_without_numba_the_engine_works():
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "from engine import Encoder\n"
        "from engine.layers.primitives import NUMPY, best_primitives, prepare_compiled\n"
        "encoder = Encoder.load(); prepare_compiled().join()\n"
        "print(best_primitives() is NUMPY, encoder.encode(['The cat sat.']).shape)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True (1, 384)"


def test_the_first_vector_does_not_wait_for_the_compiler(tmp_path):
    code = (
        "import threading\n"
        "from engine.layers import primitives\n"
        "release = threading.Event(); load = primitives._load_compiled\n"
        "primitives._load_compiled = lambda: (release.wait(60), load())\n"
        "from engine import Encoder\n"
        "encoder = Encoder.load(); before = encoder.encode(['The cat sat.'])\n"
        "assert primitives.best_primitives() is primitives.NUMPY\n"
        "release.set(); primitives.prepare_compiled().join()\n"
        "assert primitives.best_primitives() is not primitives.NUMPY\n"
        "print(abs(before - encoder.encode(['The cat sat.'])).max() < 1e-6)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
