import numpy as np
import pytest

from engine.layers.linear import linear as numpy_linear
from engine.layers.quantization import Int8Matrix, hadamard

gemm_int8 = pytest.importorskip("engine.kernels.gemm_int8")
needs_instruction = pytest.mark.skipif(
    not gemm_int8.DOT_PRODUCTS, reason="this processor does not multiply bytes"
)


def random_case(n_tokens, d_in, d_out, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_tokens, d_in)).astype(np.float32)
    x[:, 5] *= 60  # one component is far larger than all others, as in the layers of trained models
    weight = rng.normal(size=(d_out, d_in)).astype(np.float32) / np.sqrt(d_in).astype(np.float32)
    return x, Int8Matrix.of(weight), rng.normal(size=d_out).astype(np.float32)


@needs_instruction
@pytest.mark.parametrize("n_tokens", [1, 6, 7, 97])
@pytest.mark.parametrize(("d_in", "d_out"), [(128, 64), (384, 192)])
def test_the_compiled_product_equals_the_readable_one(n_tokens, d_in, d_out):
    x, weight, bias = random_case(n_tokens, d_in, d_out)
    expected = numpy_linear(x, weight, bias)
    found = gemm_int8.int8_linear(x, weight, bias)
    # Sums are whole numbers; a number halfway between two codes may become the other in some rows.
    assert np.abs(found - expected).max() < 0.02 * np.abs(expected).max()
    same_codes = np.isclose(found, expected, rtol=1e-5, atol=1e-5).all(axis=1)
    assert same_codes.mean() >= 0.5
    np.testing.assert_allclose(gemm_int8.int8_linear(x, weight), found - bias, atol=1e-4)


@needs_instruction
def test_every_code_is_multiplied():
    """Rows of the Hadamard matrix rotate to a single component, whose code is 127 or -127."""
    for sign in (1, -1):
        found = gemm_int8.int8_linear(sign * hadamard(128), Int8Matrix.of(hadamard(128)[:64]))
        np.testing.assert_allclose(found, sign * np.eye(128, 64), atol=1e-6)


@needs_instruction
def test_a_row_of_zeros_gives_the_bias_and_one_that_is_not_finite_nothing_finite():
    x, weight, bias = random_case(8, 128, 64)
    x[2], x[3, 7], x[4, 9] = 0, np.nan, np.inf
    found = gemm_int8.int8_linear(x, weight, bias)
    np.testing.assert_array_equal(found[2], bias)
    assert not np.isfinite(found[[3, 4]]).any()
    assert np.isfinite(found[[0, 1, 5, 6, 7]]).all()


@pytest.mark.skipif(not gemm_int8.TILES, reason="this processor has no tile registers")
@pytest.mark.parametrize("n_tokens", [1, 31, 32, 33, 96])
def test_tile_registers_give_the_same_sums(n_tokens):
    from numba import njit

    from engine.kernels import tiles
    from engine.kernels.gemm import WIDE, make_product

    of_tiles, of_vectors = tiles.tile_product, make_product(WIDE, bits=8)
    shapes, d_in = tiles.TILE_SHAPES, 384

    @njit
    def both(codes, panel, starts, sums):
        tiles.set_tiles(shapes.ctypes.data)
        x, w, start = codes.ctypes.data, panel.ctypes.data, starts.ctypes.data
        of_tiles(x, d_in, w, 4 * WIDE, sums[0].ctypes.data, 4 * WIDE, start, d_in // 4, n_tokens)
        tiles.release_tiles()
        of_vectors(x, d_in, w, 4 * WIDE, sums[1].ctypes.data, 4 * WIDE, start, d_in // 4, n_tokens)

    rng = np.random.default_rng(0)
    codes = rng.integers(0, 256, (n_tokens + tiles.ROWS, d_in), np.uint8)
    panel = rng.integers(-127, 128, (d_in // 4, 4 * WIDE), np.int8)
    starts = rng.integers(-(10**6), 10**6, WIDE, np.int32)
    sums = np.empty((2, n_tokens + tiles.ROWS, WIDE), np.int32)
    both(codes, panel, starts, sums)
    np.testing.assert_array_equal(*sums[:, :n_tokens])


def test_widths_that_fit_no_panel_are_left_to_numpy():
    x, weight, bias = random_case(3, 128, 70)
    np.testing.assert_array_equal(gemm_int8.int8_linear(x, weight, bias), numpy_linear(x, weight, bias))
