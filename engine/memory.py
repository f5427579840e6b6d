"""Memory that is not used any more, given back to the operating system."""

import ctypes
import gc
import mmap
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Timer

from .weights.mapped import release_pages

M_MMAP_THRESHOLD, M_ARENA_MAX = -3, -8  # from glibc's malloc.h
LARGE_ARRAY = 4 * 1024**2  # bytes of an array that a small server gives back as soon as it is freed
QUIET_S = 1.0  # after the last call of `give_back_soon`
_timer: Timer | None = None


def bound_freed_memory(is_small: bool) -> None:
    """Bound what glibc keeps of freed memory: threads open no more arenas, since each keeps its own.

    A small server also gives back every large array at once, which slows down embedding by a tenth.
    """
    if (mallopt := glibc("mallopt")) is not None:
        mallopt(M_ARENA_MAX, 1)
        if is_small:
            mallopt(M_MMAP_THRESHOLD, LARGE_ARRAY)


def give_back_soon() -> None:
    """Give memory back once nobody has called this for `QUIET_S`: runs of pages follow one another.

    A public server that is ready to be asked takes 383 MB with it, and 524 without (`benchmarks.memory`).
    """
    global _timer
    if _timer is not None:
        _timer.cancel()
    _timer = Timer(QUIET_S, give_back)
    _timer.daemon = True
    _timer.start()


def give_back() -> None:
    """Collect garbage, and return freed memory and the pages of files to the operating system, now."""
    gc.collect()
    release_pages()
    release_code()
    if (malloc_trim := glibc("malloc_trim")) is not None:
        malloc_trim(0)


def release_code() -> None:
    """Drop the code of libraries from memory: it comes back from the system's cache of files when it runs.

    The compiler of kernels and Arrow have 100 MB of it; most of that runs once.
    """
    if (madvise := glibc("madvise")) is None:
        return
    for line in Path("/proc/self/maps").read_text(errors="replace").splitlines():
        place, rights, *_, name = line.split()
        if rights == "r-xp" and ".so" in name:  # not changed by anybody, unlike data
            start, end = (int(each, 16) for each in place.split("-"))
            madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), mmap.MADV_DONTNEED)


def glibc(name: str) -> Callable[..., int] | None:
    """Return a function of the GNU C library, None where there is another library."""
    if not sys.platform.startswith("linux"):
        return None
    return getattr(ctypes.CDLL(None), name, None)
