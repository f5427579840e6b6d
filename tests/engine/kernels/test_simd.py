import numpy as np
import pytest
from numba import types

from engine.kernels import simd
from engine.kernels.jit import instructions, njit
from engine.kernels.simd import INTEGERS, LANES, Code
from engine.weights.quantized import IQ4_NUMBERS


@pytest.mark.parametrize("permutes", [True, False], ids=["as this processor", "without permutations"])
def test_bytes_are_looked_up_on_every_processor(monkeypatch, permutes):
    if not permutes:
        monkeypatch.setattr(simd, "WIDE_REGISTERS", False)
        monkeypatch.setattr(simd, "FEATURES", {})

    @instructions(types.void(types.intp, types.intp))
    def look_up(builder, words, found):
        code = Code(builder)
        code.store(code.look_up_bytes(IQ4_NUMBERS, code.load(words, 0, INTEGERS)), found, 0)

    @njit
    def run(words, found):
        look_up(words, found)

    codes = np.random.default_rng(0).integers(0, 16, 4 * LANES).astype(np.uint8)
    found = np.empty(4 * LANES, np.int8)
    run(codes.ctypes.data, found.ctypes.data)
    np.testing.assert_array_equal(found, np.array(IQ4_NUMBERS)[codes])
