import numpy as np
import pytest

from engine.layers.bfloat16 import Bfloat16Matrix
from engine.layers.linear import linear as numpy_linear

gemm_bfloat16 = pytest.importorskip("engine.kernels.gemm_bfloat16")


def random_case(n_tokens, d_in, d_out):
    rng = np.random.default_rng(0)
    x, weight = (rng.normal(size=(n, d_in)).astype(np.float32) for n in (n_tokens, d_out))
    return x, Bfloat16Matrix.of(weight), rng.normal(size=d_out).astype(np.float32)


# The last two fit no panel or no tile.
@pytest.mark.parametrize(("d_in", "d_out"), [(32, 64), (384, 192), (1536, 384), (128, 70), (40, 64)])
@pytest.mark.parametrize("n_tokens", [1, 31, 32, 33, 200])
def test_the_compiled_product_equals_the_readable_one(n_tokens, d_in, d_out):
    x, weight, bias = random_case(n_tokens, d_in, d_out)
    expected = numpy_linear(x, weight, bias)
    np.testing.assert_allclose(gemm_bfloat16.bfloat16_linear(x, weight, bias), expected, rtol=1e-5, atol=1e-4)
    found = gemm_bfloat16.bfloat16_linear(x[::-1], weight)
    np.testing.assert_allclose(found, expected[::-1] - bias, rtol=1e-5, atol=1e-4)


def test_what_is_not_finite_stays_in_its_row():
    x, weight, bias = random_case(6, 64, 64)
    x[1, 3], x[2, 4], x[3] = np.nan, np.inf, 0
    found = gemm_bfloat16.bfloat16_linear(x, weight, bias)
    assert not np.isfinite(found[[1, 2]]).any()
    np.testing.assert_array_equal(found[3], bias)
    assert np.isfinite(found[[0, 4, 5]]).all()
