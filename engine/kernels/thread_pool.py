"""Thread pool for op tapes: the calling thread, and one worker thread for every other core."""

import threading
from contextlib import suppress
from time import perf_counter

import numpy as np

from ..cores import n_cores
from ..layers.tracing import Array
from .memory import address
from .op_loop import BOARD_SIZE, LINE, N_AWAKE, run_thread

# Spins of some 20 ns after which an idle worker sleeps: longer than the time between two tokens.
SPIN_LIMIT = 20_000

# A wait of this many spins (some milliseconds) means that another process took a worker's core. For the
# next seconds the caller works alone, which is faster than waiting at every operation.
STALL_SPINS, SOLO_S = 5_000, 0.1

n_threads = n_cores()
_leader_lock = threading.Lock()
_wake_events: list[threading.Event] = []
_solo_until = 0.0


def aligned_zeros(n_integers: int) -> tuple[Array, int]:
    """Return int64 zeros and the address, at the start of a cache line, of ``n_integers`` of them."""
    zeros = np.zeros(n_integers + LINE, np.int64)
    return zeros, -(-address(zeros) // (8 * LINE)) * 8 * LINE


_board, BOARD_ADDRESS = aligned_zeros(BOARD_SIZE)


def run(tape: Array) -> None:
    """Run the operations of a tape, int64 ``(n_ops, OP_SIZE)``; the caller keeps their arrays alive.

    The caller works alone while another thread's tape uses the workers.
    """
    global _solo_until
    solo = n_threads == 1 or perf_counter() < _solo_until or not _leader_lock.acquire(blocking=False)
    n, board = (1, 0) if solo else (n_threads, BOARD_ADDRESS)
    try:
        if not solo:
            wake_workers()
        _counters, counters = aligned_zeros(len(tape) * (1 + n) * LINE)
        longest_wait = run_thread(board, 0, n, 0, address(tape), len(tape), counters)
        if longest_wait > STALL_SPINS:
            _solo_until = perf_counter() + SOLO_S
    finally:
        if not solo:
            _leader_lock.release()


def wake_workers() -> None:
    """Start the workers the first time; later, wake those that sleep."""
    while len(_wake_events) < n_threads - 1:
        _wake_events.append(threading.Event())
        number = len(_wake_events)
        arguments = (number, _wake_events[-1])
        with suppress(RuntimeError):  # no more threads can be started: those there are do the work
            threading.Thread(target=worker_loop, args=arguments, daemon=True, name=f"worker-{number}").start()
    if _board[(BOARD_ADDRESS - address(_board) + N_AWAKE) // 8] < len(_wake_events):
        for event in _wake_events:
            event.set()


def worker_loop(number: int, wake: threading.Event) -> None:
    """Work on tapes whenever woken; workers are numbered from 1."""
    _kept = _board  # also while the interpreter shuts down
    while True:
        wake.wait()
        wake.clear()
        run_thread(BOARD_ADDRESS, number, 0, SPIN_LIMIT, 0, 0, 0)
