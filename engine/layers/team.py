"""The threads that go through the steps of a program together: the caller's, and one for every other core."""

import threading
from contextlib import suppress
from time import perf_counter

import numpy as np

from engine.layers.atomics import address
from engine.layers.cores import n_cores
from engine.layers.steps import AWAKE, BOARD, LINE, take_part
from engine.layers.tracing import Array

# Rounds of waiting, some 20 ns each, after which a helper goes to sleep: more than pass between two tokens.
PATIENCE = 20_000

# A wait of so many rounds, some milliseconds, means that a helper has lost his core to another program. For
# the seconds after it, work goes on without helpers: that beats waiting at every step.
LOST, ALONE_S = 5_000, 0.1

n_threads = n_cores()
_leading = threading.Lock()
_wake: list[threading.Event] = []
_alone_until = 0.0


def lines(n_integers: int) -> tuple[Array, int]:
    """Return 64-bit zeros with room for ``n_integers`` from the start of a cache line, and where that is."""
    room = np.zeros(n_integers + LINE, np.int64)
    return room, -(-address(room) // (8 * LINE)) * 8 * LINE


_board, BOARD_ADDRESS = lines(BOARD)


def run(program: Array) -> None:
    """Go through a program, int64 ``(n_steps, ROW)``; the arrays that its steps name stay alive meanwhile.

    While another thread's program has the helpers, this one has its own thread alone.
    """
    global _alone_until
    alone = n_threads == 1 or perf_counter() < _alone_until or not _leading.acquire(blocking=False)
    n, board = (1, 0) if alone else (n_threads, BOARD_ADDRESS)
    try:
        if not alone:
            wake_helpers()
        _counters, counters = lines(len(program) * (1 + n) * LINE)
        longest_wait = take_part(board, 0, n, 0, address(program), len(program), counters)
        if longest_wait > LOST:
            _alone_until = perf_counter() + ALONE_S
    finally:
        if not alone:
            _leading.release()


def wake_helpers() -> None:
    """Wake the helpers who sleep; the first time, start them."""
    while len(_wake) < n_threads - 1:
        _wake.append(threading.Event())
        number = len(_wake)
        arguments = (number, _wake[-1])
        with suppress(RuntimeError):  # no more threads are to be had: the shares are for those there are
            threading.Thread(target=help_out, args=arguments, daemon=True, name=f"helper-{number}").start()
    if _board[(BOARD_ADDRESS - address(_board) + AWAKE) // 8] < len(_wake):
        for event in _wake:
            event.set()


def help_out(number: int, wake: threading.Event) -> None:
    """Help whenever woken; helpers are numbered from 1."""
    _kept = _board  # also while Python takes its modules apart at the end
    while True:
        wake.wait()
        wake.clear()
        take_part(BOARD_ADDRESS, number, 0, PATIENCE, 0, 0, 0)
