"""One worker a core, each with a single-threaded BLAS.

Products of a few thousand rows gain little from a BLAS that splits each of them over the cores,
and everything between the products gains nothing; whole batches side by side gain from both.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from typing import TypeVar

from threadpoolctl import threadpool_limits

from engine.layers.cores import n_cores

T = TypeVar("T")

# The BLAS's thread count belongs to the process: two callers that set and restore it in turn would
# leave it at one.
_lock = threading.Lock()
_n_inside = 0
_limits: threadpool_limits | None = None


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Hold the BLAS to one thread while anybody is inside; the last to leave restores what was."""
    global _n_inside, _limits
    with _lock:
        _n_inside += 1
        if _limits is None:
            _limits = threadpool_limits(1, user_api="blas")
    try:
        yield
    finally:
        with _lock:
            _n_inside -= 1
            if _n_inside == 0 and _limits is not None:
                _limits.restore_original_limits()
                _limits = None


def run_parallel(work: Callable[[T], None], batches: Sequence[T]) -> Iterator[T]:
    """Run ``work`` on every batch, yielding each batch when it is done, in any order."""
    if len(batches) <= 1:
        for batch in batches:
            work(batch)
            yield batch
        return
    with single_threaded_blas():
        pool = ThreadPoolExecutor(max_workers=n_cores())
        try:
            futures = {pool.submit(work, batch): batch for batch in batches}
            for future in as_completed(futures):
                future.result()
                yield futures[future]
        finally:  # where the caller stops half-way, what has not begun never does
            pool.shutdown(cancel_futures=True)
