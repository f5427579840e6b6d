import gc

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.kernels.memory import address
from engine.kernels.op_tape import BufferPool

SHAPES = [(3,), (2, 3), (4, 8)]


def byte_ranges(arrays):
    """First and last byte of each array."""
    return sorted((address(array), address(array) + array.nbytes) for array in arrays)


@given(st.lists(st.tuples(st.sampled_from(SHAPES), st.booleans())))
def test_no_two_arrays_in_use_share_memory_and_none_is_taken_that_is_free(wanted):
    pool, in_use, taken, most = BufferPool(), [], set(), dict.fromkeys(SHAPES, 0)
    for shape, kept in wanted:
        array = pool.empty(shape)
        assert array.shape == shape
        assert array.dtype == np.float32
        assert pool.owns(array)
        now = [*in_use, array]
        assert all(
            end <= start for (_, end), (start, _) in zip(byte_ranges(now), byte_ranges(now)[1:], strict=False)
        )
        most[shape] = max(most[shape], sum(other.shape == shape for other in now))
        taken.add(address(array))
        in_use += [array] if kept else []
        del array, now
    assert len(taken) == sum(most.values())


def test_memory_is_in_use_for_as_long_as_a_view_is_left():
    pool = BufferPool()
    block = pool.empty((4, 8))
    start, column = address(block), block[:, 3].reshape(2, 2)[::-1]
    del block
    assert pool.owns(column)
    assert address(pool.empty((4, 8))) != start
    del column
    assert start in {address(array) for array in [pool.empty((4, 8)), pool.empty((4, 8))]}
    assert not pool.owns(np.empty(3))


def test_an_array_outlives_its_pool():
    array = BufferPool().empty((1000,), np.uint8)
    array[:] = 7
    gc.collect()
    others = [bytearray(1000) for _ in range(100)]
    assert (array == 7).all()
    assert len(others) == 100
