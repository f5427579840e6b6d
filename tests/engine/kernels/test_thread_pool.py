import gc
import threading
import time
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kernels import op_tape, thread_pool
from engine.kernels.memory import address
from engine.kernels.op_loop import N_AWAKE
from engine.kernels.op_tape import BufferPool, OpTape, cache_rows
from engine.kernels.packed import pack
from engine.layers.attention import merge_heads, split_heads
from engine.models.kv_cache import KVCache
from tests.command_line import run_python

SECONDS = 120  # far more than anything here takes, unless it hangs
D_MODEL, D_HEAD = 96, 64

several_cores = pytest.mark.skipif(thread_pool.n_threads == 1, reason="needs a second core")


class Layer:
    """A random layer: attention of two heads to one key head, and what follows."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        shapes = (
            (4 * D_HEAD, D_MODEL),
            (D_MODEL, 2 * D_HEAD),
            (6 * D_MODEL, D_MODEL),
            (D_MODEL, 3 * D_MODEL),
        )
        self.matrices = [pack("F32", rng.normal(size=shape).astype(np.float32) / 9) for shape in shapes]
        self.scale = rng.normal(size=D_MODEL).astype(np.float32)
        self.cache = KVCache(SimpleNamespace(n_layers=1, n_kv_heads=1, d_head=D_HEAD), 300, dtype=np.float16)
        angles = rng.normal(size=(300, D_HEAD // 2)).astype(np.float32)
        self.rope = np.cos(angles), np.sin(angles)
        self.texts = [rng.normal(size=(n, D_MODEL)).astype(np.float32) for n in (1, 5, 130, 1, 70, 1)]

    def forward(self, ops, x, cos, sin):
        """``(n_tokens, d_model)`` to the same, behind the tokens in the cache."""
        heads_in, heads_out, gate_up, down = self.matrices
        heads = split_heads(ops.linear(ops.rms_norm(x, self.scale, 1e-5), heads_in), 4)
        rotated = ops.apply_rope(heads[:3], cos, sin)
        context = ops.causal_attention(rotated[:2], rotated[2:], heads[3:], self.cache, 0)
        x = ops.add(x, ops.linear(merge_heads(context), heads_out))
        both = ops.linear(x, gate_up)
        hidden = ops.gated(both[:, : 3 * D_MODEL], both[:, 3 * D_MODEL :], "silu")
        return ops.add(x, ops.linear(hidden, down))

    def read(self):
        """Read all texts, one behind the other: ``(n_tokens, d_model)``."""
        self.cache.length, results = 0, []
        for x in self.texts:
            places = slice(self.cache.length, self.cache.length + len(x))
            rope = (np.ascontiguousarray(table[places]) for table in self.rope)
            results.append(self.forward(OpTape(self.cache.length), x, *rope))
            self.cache.length += len(x)
        return np.concatenate(results)


def results(n_layers=2):
    return np.array([Layer(seed).read() for seed in range(n_layers)])


@pytest.fixture
def alone(monkeypatch):
    """A function that runs another on one thread."""

    def run_alone(function):
        with monkeypatch.context() as context:
            context.setattr(thread_pool, "n_threads", 1)
            return function()

    return run_alone


@pytest.fixture
def together(monkeypatch):
    """Workers take part though they may be descheduled meanwhile."""
    monkeypatch.setattr(thread_pool, "STALL_SPINS", np.inf)
    monkeypatch.setattr(thread_pool, "_solo_until", 0.0)


def finished(*threads):
    """Start threads, and fail where one of them hangs."""
    for thread in threads:
        thread.start()
    end = time.monotonic() + SECONDS
    for thread in threads:
        thread.join(max(0, end - time.monotonic()))
    assert not any(thread.is_alive() for thread in threads), "it hangs"


def in_thread(function):
    """A thread, and a list that takes what the function returns in it."""
    found = []
    return threading.Thread(target=lambda: found.append(function()), daemon=True), found


def n_awake():
    return thread_pool._board[(thread_pool.BOARD_ADDRESS - thread_pool._board.ctypes.data + N_AWAKE) // 8]


def wait_until(condition):
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_results_do_not_depend_on_who_does_the_work(alone, together, monkeypatch):
    expected = alone(results)
    assert np.isfinite(expected).all()
    assert expected.std() > 0.1
    for n_threads in (2, 4):  # 4 are more than there are cores
        monkeypatch.setattr(thread_pool, "n_threads", n_threads)
        monkeypatch.setattr(op_tape, "n_threads", n_threads)  # each has memory of its own
        for _ in range(3):
            np.testing.assert_array_equal(results(), expected)


@pytest.mark.nightly
@pytest.mark.parametrize("n_cores", [1, 3, 16])
def test_results_depend_on_the_number_of_cores_by_rounding_alone(tmp_path, n_cores):
    code = (
        f"from engine import cores; cores.n_cores = lambda: {n_cores}\n"
        "import numpy as np; from engine.kernels import thread_pool\n"
        "from tests.engine.kernels.test_thread_pool import results\n"
        f"assert thread_pool.n_threads == {n_cores}\n"
        f"np.save({str(tmp_path / 'results.npy')!r}, results())\n"
        f"assert len(thread_pool._wake_events) == {n_cores} - 1"
    )
    run_python(code)
    np.testing.assert_allclose(np.load(tmp_path / "results.npy"), results(), rtol=0, atol=1e-4)


@several_cores
def test_the_caller_works_alone_while_a_worker_is_descheduled(alone, together, monkeypatch):
    expected = alone(results)
    led = []
    monkeypatch.setattr(thread_pool, "wake_workers", lambda: led.append(time.perf_counter()))
    monkeypatch.setattr(thread_pool, "STALL_SPINS", -1)  # every wait is too long
    for _ in range(5):
        np.testing.assert_array_equal(results(), expected)
    assert led
    assert (np.diff(led) >= thread_pool.SOLO_S).all()
    assert not thread_pool._leader_lock.locked()


@several_cores
def test_workers_sleep_when_idle_and_wake_again(together):
    x = np.ones((64, 64), np.float32)
    for _ in range(3):
        results(1)
        wait_until(lambda: n_awake() == 0)
        wait_until(lambda: OpTape(0).add(x, x).any() and n_awake() == len(thread_pool._wake_events))


def recorded_pass(layer):
    """A recorded pass of one token through a layer: its tape, inputs and output."""
    ops = OpTape(0, capacity=300)
    begin = tuple(np.zeros((1, n), np.float32) for n in (D_MODEL, D_HEAD // 2, D_HEAD // 2))
    return ops, begin, layer.forward(ops, *begin)


def test_recorded_tapes_of_many_threads_at_once_give_each_its_own_result(alone, together):
    def read_singly(seed):
        layer, rng = Layer(seed), np.random.default_rng(seed)
        ops, begin, end = recorded_pass(layer)
        found = []
        for length in range(100):
            for place in begin:
                place[:] = rng.normal(size=place.shape)
            ops.replay(cache_rows(layer.cache, length, 1))
            found.append(end.copy())
        return np.concatenate(found)

    expected = [alone(lambda s=seed: read_singly(s)) for seed in range(4)]
    threads, found = zip(*[in_thread(lambda s=seed: read_singly(s)) for seed in range(4)], strict=True)
    finished(*threads)
    for one, [ours] in zip(expected, found, strict=True):
        np.testing.assert_array_equal(ours, one)


def test_a_short_tape_replayed_thousands_of_times_never_hangs(together):
    layer = Layer(0)
    layer.cache.keys[:] = layer.cache.values[:] = 0
    ops, begin, end = recorded_pass(layer)
    begin[0][:] = layer.texts[0]
    ops.replay(rows := cache_rows(layer.cache, 7, 1))
    expected = end.copy()

    def run_thousands_of_times():
        pauses = np.random.default_rng(0).exponential(0.008, 50)
        for turn in range(2000):
            end[:] = np.nan
            ops.replay(rows)
            np.testing.assert_array_equal(end, expected)
            if turn % 40 == 0:  # so that workers fall asleep and wake at any time
                time.sleep(pauses[turn // 40])
        return True

    thread, found = in_thread(run_thousands_of_times)
    finished(thread)
    assert found == [True]


def test_a_failure_to_wake_releases_the_thread_pool(monkeypatch, alone):
    def fail():
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as context:
        context.setattr(thread_pool, "n_threads", 2)
        context.setattr(thread_pool, "wake_workers", fail)
        with pytest.raises(RuntimeError):
            results(1)
    assert not thread_pool._leader_lock.locked()
    np.testing.assert_array_equal(results(1), alone(lambda: results(1)))


@pytest.mark.nightly
def test_a_process_may_end_while_workers_are_awake():
    code = (
        "from tests.engine.kernels.test_thread_pool import Layer, n_awake, wait_until\n"
        "from engine.kernels import thread_pool\n"
        "layer = Layer(0)\n"
        "wait_until(lambda: layer.read().any() and n_awake() == len(thread_pool._wake_events))"
    )
    run_python(code)


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
        assert all(end <= start for (_, end), (start, _) in pairwise(byte_ranges(now)))
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
