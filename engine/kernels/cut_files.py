"""Mapped files that somebody cuts while they are read: what is missing is read as zeros.

The system ends a process that reads beyond the end of a mapped file, by the signal SIGBUS. Here its handler
puts a page of zeros there, and what has read it finds out by the file's length. It is compiled, since it runs
in whichever thread has read, which may not wait for Python's lock.
"""

import ctypes
import mmap
import signal
import struct
import sys
from functools import cache
from typing import Any
from weakref import finalize

import numpy as np
from numba import cfunc, int32, intp, void

from ..layers.tracing import Array
from .memory import address, load

BEYOND_FILE = 2  # BUS_ADRERR of Linux's siginfo.h
PAGE, WORD = mmap.PAGESIZE, 8
READ, HERE = 1, 0x32  # PROT_READ; MAP_PRIVATE, MAP_ANONYMOUS and MAP_FIXED
ACTION, WITH_INFO = "P128xiP", 4  # struct sigaction of glibc and musl; SA_SIGINFO
PLACES = np.zeros((64, 2), np.int64)  # first address of each map, and that behind it


@cache
def handle_cuts() -> Any:
    """Install the handler; return it."""
    libc = ctypes.CDLL(None)
    new_map, default = libc.mmap, libc.signal
    new_map.argtypes, new_map.restype = [ctypes.c_ssize_t] * 6, ctypes.c_ssize_t
    default.argtypes, default.restype = [ctypes.c_int, ctypes.c_ssize_t], ctypes.c_ssize_t
    places, n, bus = address(PLACES), len(PLACES), int(signal.SIGBUS)

    @cfunc(void(int32, intp, intp))
    def handler(number: int, info: int, context: int) -> None:
        place = load(info + 2 * WORD)
        is_beyond = load(info + WORD) & 0xFFFFFFFF == BEYOND_FILE
        for row in range(n):
            if is_beyond and load(places + 2 * WORD * row) <= place < load(places + 2 * WORD * row + WORD):
                new_map(place // PAGE * PAGE, PAGE, READ, HERE, -1, 0)
                return
        default(bus, 0)  # the same read ends the process

    action = struct.pack(ACTION, handler.address, WITH_INFO, 0)
    libc.sigaction(bus, action, None)
    return handler.ctypes


def survive_cuts(array: Array) -> None:
    """Have the process go on where the file of a mapped array is cut, on Linux."""
    if not sys.platform.startswith("linux") or not (free := np.flatnonzero(PLACES[:, 1] == 0)).size:
        return
    handle_cuts()
    start = address(array) // PAGE * PAGE
    PLACES[free[0]] = start, start + len(array.base)  # type: ignore[arg-type]
    finalize(array.base, PLACES[free[0]].fill, 0)
