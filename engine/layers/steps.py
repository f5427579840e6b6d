"""The steps of a decoder, compiled (numba), and the loop in which threads go through a list of them.

Each is a primitive of the decoder's forward pass for float32, made like those in `products`; they stand in
`matrix_steps`, `row_steps` and `attention_steps`. A *step* is a row of integers: what to do, in how many
*shares*, and the addresses and sizes of its arrays; strides are in bytes. Threads take share after share
until none is left, and go on to the next step when all shares are done. So one call from Python goes
through a whole model, and a thread that comes late, or never, costs no more than its help.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path

from numba import boolean, carray, int64

from engine.layers.atomics import add, give_way, integers_at, pause, read, write
from engine.layers.attention_steps import attend, attend_to_part, lay_out, merge_parts, remember
from engine.layers.jit import njit
from engine.layers.matrix_steps import linear, to_fixed_point, unpack
from engine.layers.products import WIDE
from engine.layers.registers import prefetch
from engine.layers.row_steps import add_rows, gelu_new, layer_norm, rms_norm, rotate, swiglu
from engine.layers.shares import numbers, part_of
from engine.layers.tracing import Array

ROW = 16  # integers of a step
N_TOKENS = 4  # where a step of few tokens says how many they are
LINE = 8  # integers of a cache line: what one thread writes often stands in a line of its own

LINEAR, TO_FIXED_POINT, RMS_NORM, LAYER_NORM, ROTATE, ADD, SWIGLU, GELU_NEW = range(8)
REMEMBER, ATTEND_TO_PART, MERGE_PARTS, LAY_OUT, ATTEND = range(8, 13)

AT_HAND = 1000  # rounds of waiting within which a thread that runs is done with its share


@njit(inline="always")
def do(step: Array, share: int, thread: int) -> None:
    """Do one share of a step."""
    what = step[0]
    if what == LINEAR:
        linear(step, share, thread)
    elif what == TO_FIXED_POINT:
        to_fixed_point(step, share)
    elif what == RMS_NORM:
        rms_norm(step, share)
    elif what == LAYER_NORM:
        layer_norm(step, share)
    elif what == ROTATE:
        rotate(step, share)
    elif what == ADD:
        add_rows(step, share)
    elif what == SWIGLU:
        swiglu(step, share)
    elif what == GELU_NEW:
        gelu_new(step, share)
    elif what == REMEMBER:
        remember(step, share)
    elif what == ATTEND_TO_PART:
        attend_to_part(step, share)
    elif what == MERGE_PARTS:
        merge_parts(step, share)
    elif what == LAY_OUT:
        lay_out(step, share, thread)
    elif what == ATTEND:
        attend(step, share, thread)


@njit
def go_through(program: int, n_steps: int, counters: int, thread: int, n_threads: int) -> int:
    """Take part in every step of a program, until all shares of all steps are done.

    Returns the longest wait for other threads, in rounds.

    Every thread has shares of its own, which lie side by side, and then takes what others have left. A
    step counts in ``1 + n_threads`` cache lines: the shares done, and those taken of every thread's own.
    Steps of one share that follow each other are done by one thread, who has not to wait in between.
    """
    longest, i = 0, 0
    while i < n_steps:
        n_shares = step_of(program, i)[1]
        done = counters + 8 * LINE * (1 + n_threads) * i
        n_chained = 1
        while n_shares == 1 and i + n_chained < n_steps and step_of(program, i + n_chained)[1] == 1:
            n_chained += 1
        i += n_chained
        if i < n_steps:
            prepare(step_of(program, i), thread, n_threads)
        for other in range(n_threads):
            owner = (thread + other) % n_threads
            first, last = part_of(n_shares, owner, n_threads)
            taken = done + 8 * LINE * (1 + owner)
            while read(taken) < last - first:
                share = first + add(taken, 1)
                if share < last:
                    for j in range(i - n_chained, i):
                        do(step_of(program, j), share, thread)
                    add(done, 1)
        waited = 0
        while read(done) < n_shares:
            wait(waited)
            waited += 1
        longest = max(longest, waited)
    return longest


@njit(inline="always")
def step_of(program: int, i: int) -> Array:
    """Return a step of a program: ``(ROW,)``."""
    return carray(integers_at(program + 8 * ROW * i), (ROW,))


@njit(inline="always")
def prepare(step: Array, thread: int, n_threads: int) -> None:
    """Ask for the first weights that a thread will need in the next step, while it is busy with this one."""
    if step[0] == LINEAR:
        n_shares, panels, n_panels, panel_bytes = step[1], step[6], step[7], step[8]
        first, _ = part_of(n_shares, thread, n_threads)
        prefetch(panels + first * n_panels // n_shares * panel_bytes)


@njit
def wait(waited: int) -> None:
    """Wait a moment for another thread, who may have lost his core where that has been long."""
    if waited < AT_HAND:
        pause()
    else:
        give_way()


# What the leader of a program and its helpers tell each other, each in a cache line of its own: a number
# that is odd while a program may be joined, how many helpers are in it, where it is and for how many
# threads, and how many helpers are awake.
EPOCH, INSIDE, PROGRAM, N_STEPS, COUNTERS, N_THREADS, AWAKE = (8 * LINE * i for i in range(7))
BOARD = 7 * LINE


def sources() -> str:
    """Hash of the files that the entries below are compiled from."""
    folder = Path(__file__).parent
    kernels = ("atomics", "products", "registers", "matrix_registers", "head_registers")
    names = (*kernels, "shares", "matrix_steps", "row_steps", "attention_steps", "steps")
    return hashlib.sha256(b"".join((folder / f"{name}.py").read_bytes() for name in names)).hexdigest()


def entries(version: str) -> tuple[Callable[..., int], Callable[..., bool]]:
    """Return the two functions that Python calls.

    numba keeps what it compiled for as long as the file of a function and what it closes over are the
    same; it does not look at other files. So these close over the ``version`` of all of them.
    """

    @njit(int64(int64, int64, int64, int64, int64, int64, int64), nogil=True, cache=True)
    def take_part(
        board: int, thread: int, n_threads: int, patience: int, program: int, n_steps: int, counters: int
    ) -> int:
        """Lead through a program (thread 0), or help with every program that comes up.

        The leader has the help of those who are awake; without a board (0) there are none. A helper goes
        when no program has come up for ``patience`` rounds of waiting. Returns the longest wait for other
        threads, in rounds.
        """
        _ = version
        longest = 0
        if thread == 0:
            if board:
                write(board + PROGRAM, program)
                write(board + N_STEPS, n_steps)
                write(board + COUNTERS, counters)
                write(board + N_THREADS, n_threads)
                add(board + EPOCH, 1)
            longest = go_through(program, n_steps, counters, thread, n_threads)
            if board:
                add(board + EPOCH, 1)
                while read(board + INSIDE) > 0:
                    give_way()
            return longest
        add(board + AWAKE, 1)
        waited, seen = 0, 0
        while waited < patience:
            epoch = read(board + EPOCH)
            if epoch % 2 == 0 or epoch == seen:
                wait(waited)
                waited += 1
                continue
            add(board + INSIDE, 1)
            if read(board + EPOCH) == epoch:
                program, n_steps = read(board + PROGRAM), read(board + N_STEPS)
                counters, n_threads = read(board + COUNTERS), read(board + N_THREADS)
                if thread < n_threads:
                    longest = go_through(program, n_steps, counters, thread, n_threads)
            add(board + INSIDE, -1)
            seen, waited = epoch, 0
        add(board + AWAKE, -1)
        return longest

    @njit(boolean(*[int64] * 4, int64[::1], *[int64] * 4), nogil=True, cache=True)
    def unpack_rows(
        kind: int,
        panels: int,
        panel_bytes: int,
        n_turns: int,
        rows: Array,
        d_out: int,
        columns: int,
        y: int,
        d_in: int,
    ) -> bool:
        """Write some rows of a packed matrix as float32, or return False where it has not all of them.

        ``columns`` has room for an unpacked panel.
        """
        _ = version
        for row in rows:
            if not 0 <= row < d_out:
                return False
        unpacked = -1
        panel = numbers(columns, d_in * WIDE)
        for i in range(len(rows)):
            if rows[i] // WIDE != unpacked:
                unpacked = rows[i] // WIDE
                unpack(kind, panels + unpacked * panel_bytes, columns, n_turns)
            y_row, lane = numbers(y + 4 * d_in * i, d_in), rows[i] % WIDE
            for j in range(d_in):
                y_row[j] = panel[j * WIDE + lane]
        return True

    return take_part, unpack_rows


take_part, unpack_rows = entries(sources())
