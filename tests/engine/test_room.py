import gc

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.layers.atomics import address
from engine.layers.room import Room

SHAPES = [(3,), (2, 3), (4, 8)]


def places(arrays):
    """First and last byte of each array."""
    return sorted((address(array), address(array) + array.nbytes) for array in arrays)


@given(st.lists(st.tuples(st.sampled_from(SHAPES), st.booleans())))
def test_no_two_arrays_in_use_share_memory_and_none_is_taken_that_is_free(wanted):
    room, in_use, taken, most = Room(), [], set(), dict.fromkeys(SHAPES, 0)
    for shape, kept in wanted:
        array = room.empty(shape)
        assert array.shape == shape
        assert array.dtype == np.float32
        assert room.has_lent(array)
        now = [*in_use, array]
        assert all(end <= start for (_, end), (start, _) in zip(places(now), places(now)[1:], strict=False))
        most[shape] = max(most[shape], sum(other.shape == shape for other in now))
        taken.add(address(array))
        in_use += [array] if kept else []
        del array, now
    assert len(taken) == sum(most.values())


def test_memory_is_lent_for_as_long_as_a_view_is_left():
    room = Room()
    block = room.empty((4, 8))
    place, column = address(block), block[:, 3].reshape(2, 2)[::-1]
    del block
    assert room.has_lent(column)
    assert address(room.empty((4, 8))) != place
    del column
    assert place in {address(array) for array in [room.empty((4, 8)), room.empty((4, 8))]}
    assert not room.has_lent(np.empty(3))


def test_an_array_outlives_its_room():
    array = Room().empty((1000,), np.uint8)
    array[:] = 7
    gc.collect()
    others = [bytearray(1000) for _ in range(100)]
    assert (array == 7).all()
    assert len(others) == 100
