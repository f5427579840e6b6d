import numpy as np
import pytest
from numba import njit, types
from numba.extending import intrinsic

from engine.kernels import simd
from engine.kernels.simd import INTEGERS, LANES, Code
from engine.weights.quantized import IQ4_NUMBERS


@pytest.mark.parametrize("permutes", [True, False], ids=["as this processor", "without permutations"])
def test_bytes_are_looked_up_on_every_processor(monkeypatch, permutes):
    if not permutes:
        monkeypatch.setattr(simd, "WIDE_REGISTERS", False)
        monkeypatch.setattr(simd, "FEATURES", {})

    @intrinsic
    def look_up(typing_context, words, found):
        def generate(context, builder, signature, arguments):
            code = Code(builder)
            result = code.look_up_bytes(IQ4_NUMBERS, code.load(arguments[0], 0, INTEGERS))
            code.store(result, arguments[1], 0)
            return context.get_dummy_value()

        return types.void(types.intp, types.intp), generate

    @njit
    def run(words, found):
        look_up(words, found)

    codes = np.random.default_rng(0).integers(0, 16, 4 * LANES).astype(np.uint8)
    found = np.empty(4 * LANES, np.int8)
    run(codes.ctypes.data, found.ctypes.data)
    np.testing.assert_array_equal(found, np.array(IQ4_NUMBERS)[codes])
