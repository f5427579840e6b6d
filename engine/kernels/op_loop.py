"""The compiled operations of a decoder (numba), and the loop in which threads run a tape of them.

An *operation* is a primitive of the decoder's forward pass for float32; `matrix_ops`, `row_ops` and
`attention_ops` hold the code. On a *tape*, an operation is a row of integers: the opcode, the number of
*tasks* it is split into, and the addresses and sizes of its arrays; strides are in bytes. Threads take
tasks until none is left, and start the next operation when all tasks are done. So one call from Python
runs a whole model, and a thread that is late or absent only means that others do its tasks.
"""

from numba import boolean, carray, int64

from ..layers.tracing import Array
from .attention_ops import attend, attend_to_split, merge_splits, widen_cache, write_cache
from .gemm import WIDE
from .jit import njit
from .matrix_ops import call, linear, to_fixed_point
from .memory import cpu_pause, fetch_add, floats_at, int64_pointer, load, split_range, store, yield_thread
from .row_ops import add_rows, geglu, gelu_new, layer_norm, rms_norm, rotate, swiglu
from .simd import prefetch

OP_SIZE = 16  # integers of an operation
N_TOKENS = 4  # index of the number of tokens in an operation on few tokens
LINE = 8  # integers of a cache line: counters of different threads lie in different lines

LINEAR, TO_FIXED_POINT, RMS_NORM, LAYER_NORM, ROTATE, ADD, SWIGLU, GEGLU, GELU_NEW = range(9)
WRITE_CACHE, ATTEND_TO_SPLIT, MERGE_SPLITS, WIDEN_CACHE, ATTEND = range(9, 14)

SPINS_BEFORE_YIELD = 1000  # spins within which a running thread finishes its task


@njit(inline="always")
def execute(op: Array, task: int, thread: int) -> None:
    """Do one task of an operation."""
    opcode = op[0]
    if opcode == LINEAR:
        linear(op, task, thread)
    elif opcode == TO_FIXED_POINT:
        to_fixed_point(op, task)
    elif opcode == RMS_NORM:
        rms_norm(op, task)
    elif opcode == LAYER_NORM:
        layer_norm(op, task)
    elif opcode == ROTATE:
        rotate(op, task)
    elif opcode == ADD:
        add_rows(op, task)
    elif opcode == SWIGLU:
        swiglu(op, task)
    elif opcode == GEGLU:
        geglu(op, task)
    elif opcode == GELU_NEW:
        gelu_new(op, task)
    elif opcode == WRITE_CACHE:
        write_cache(op, task)
    elif opcode == ATTEND_TO_SPLIT:
        attend_to_split(op, task)
    elif opcode == MERGE_SPLITS:
        merge_splits(op, task)
    elif opcode == WIDEN_CACHE:
        widen_cache(op, task, thread)
    elif opcode == ATTEND:
        attend(op, task, thread)


@njit
def run_ops(tape: int, n_ops: int, counters: int, thread: int, n_threads: int) -> int:
    """Run the operations of a tape together with other threads; return the longest wait for them, in spins.

    Every thread has tasks of its own, side by side, and afterwards takes those that others have not
    started. An operation has ``1 + n_threads`` counters, a cache line each: the tasks done, and those
    started of every thread. Consecutive operations of one task run on one thread, without waiting between.
    """
    longest_wait, i = 0, 0
    while i < n_ops:
        n_tasks = op_at(tape, i)[1]
        done = counters + 8 * LINE * (1 + n_threads) * i
        n_chained = 1
        while n_tasks == 1 and i + n_chained < n_ops and op_at(tape, i + n_chained)[1] == 1:
            n_chained += 1
        i += n_chained
        if i < n_ops:
            prefetch_weights(op_at(tape, i), thread, n_threads)
        for other in range(n_threads):
            owner = (thread + other) % n_threads
            first, last = split_range(n_tasks, owner, n_threads)
            started = done + 8 * LINE * (1 + owner)
            while load(started) < last - first:
                task = first + fetch_add(started, 1)
                if task < last:
                    for j in range(i - n_chained, i):
                        execute(op_at(tape, j), task, thread)
                    fetch_add(done, 1)
        n_spins = 0
        while load(done) < n_tasks:
            spin(n_spins)
            n_spins += 1
        longest_wait = max(longest_wait, n_spins)
    return longest_wait


@njit(inline="always")
def op_at(tape: int, i: int) -> Array:
    """Return an operation of a tape: ``(OP_SIZE,)``."""
    return carray(int64_pointer(tape + 8 * OP_SIZE * i), (OP_SIZE,))


@njit(inline="always")
def prefetch_weights(op: Array, thread: int, n_threads: int) -> None:
    """Prefetch the first weights that a thread needs in the next operation, while it works on this one."""
    if op[0] == LINEAR:
        n_tasks, panels, n_panels, panel_bytes = op[1], op[6], op[7], op[8]
        first, _ = split_range(n_tasks, thread, n_threads)
        prefetch(panels + first * n_panels // n_tasks * panel_bytes)


@njit
def spin(n_spins: int) -> None:
    """Spin, then yield: the other thread may be descheduled."""
    if n_spins < SPINS_BEFORE_YIELD:
        cpu_pause()
    else:
        yield_thread()


# The board that a leader and its workers share, a cache line each: a number that is odd while a tape may be
# joined, the number of workers in it, its address, length, counters and threads, and the workers awake.
EPOCH, N_INSIDE, TAPE, N_OPS, COUNTERS, N_THREADS, N_AWAKE = (8 * LINE * i for i in range(7))
BOARD_SIZE = 7 * LINE


@njit(int64(int64, int64, int64, int64, int64, int64, int64), nogil=True, cache=True)
def run_thread(
    board: int, thread: int, n_threads: int, spin_limit: int, tape: int, n_ops: int, counters: int
) -> int:
    """Lead a tape (thread 0), or work on every tape that a leader announces.

    The leader announces its tape on the board; without a board (0) it works alone. A worker returns
    after ``spin_limit`` spins without a tape. Returns the longest wait for other threads, in spins.
    """
    longest_wait = 0
    if thread == 0:
        if board:
            store(board + TAPE, tape)
            store(board + N_OPS, n_ops)
            store(board + COUNTERS, counters)
            store(board + N_THREADS, n_threads)
            fetch_add(board + EPOCH, 1)
        longest_wait = run_ops(tape, n_ops, counters, thread, n_threads)
        if board:
            fetch_add(board + EPOCH, 1)
            while load(board + N_INSIDE) > 0:
                yield_thread()
        return longest_wait
    fetch_add(board + N_AWAKE, 1)
    n_spins, last_epoch = 0, 0
    while n_spins < spin_limit:
        epoch = load(board + EPOCH)
        if epoch % 2 == 0 or epoch == last_epoch:
            spin(n_spins)
            n_spins += 1
            continue
        fetch_add(board + N_INSIDE, 1)
        if load(board + EPOCH) == epoch:
            tape, n_ops = load(board + TAPE), load(board + N_OPS)
            counters, n_threads = load(board + COUNTERS), load(board + N_THREADS)
            if thread < n_threads:
                longest_wait = run_ops(tape, n_ops, counters, thread, n_threads)
        fetch_add(board + N_INSIDE, -1)
        last_epoch, n_spins = epoch, 0
    fetch_add(board + N_AWAKE, -1)
    return longest_wait


@njit(boolean(*[int64] * 4, int64[::1], *[int64] * 4), nogil=True, cache=True)
def unpack_rows(
    kernel: int,
    panels: int,
    panel_bytes: int,
    n_units: int,
    rows: Array,
    d_out: int,
    columns: int,
    y: int,
    d_in: int,
) -> bool:
    """Write rows of a packed matrix to ``y`` as float32; return False if any does not exist."""
    for row in rows:
        if not 0 <= row < d_out:
            return False
    unpacked = -1
    panel = floats_at(columns, d_in * WIDE)
    for i in range(len(rows)):
        if rows[i] // WIDE != unpacked:
            unpacked = rows[i] // WIDE
            call(kernel, (panels + unpacked * panel_bytes, columns, n_units))
        y_row, lane = floats_at(y + 4 * d_in * i, d_in), rows[i] % WIDE
        for j in range(d_in):
            y_row[j] = panel[j * WIDE + lane]
    return True
